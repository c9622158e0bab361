package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Image is a container image built by buildah. Its files lie in a directory, in which its
// program is started as a container engine would: as its user, with its environment, and
// with a root that is read-only except for its volumes. It shares this machine's network and
// processes, and its working directory is the root.
type Image struct {
	Root   string // its files, on this machine
	Config ImageConfig
}

// ImageConfig is what an image says of how it is to be run.
type ImageConfig struct {
	User, WorkingDir      string
	Env, Entrypoint       []string
	Labels                map[string]string
	Volumes, ExposedPorts map[string]struct{}
	Healthcheck           struct{ Test []string }
}

// ImageRun is how a container of an image is started.
type ImageRun struct {
	Env   []string          // KEY=VALUE, in addition to those of the image
	Args  []string          // behind the entry point
	Mount map[string]string // directories of this machine, read-only, by where they are in the container
}

// BuildImage builds the image of a directory with a Dockerfile, and unpacks it. dir takes all
// files and must be empty. It needs root, and the step image_builder of make setup.
func BuildImage(ctx context.Context, source, dir string) (*Image, error) {
	const name = "built"
	here, err := Root()
	if err != nil {
		return nil, err
	}
	b := buildah{unpacked: filepath.Join(here, "build", "setup", "buildah"), dir: dir}
	_, err = b.run(ctx, "bud", b.policy(), "--isolation", "chroot", "--format", "docker", "--tag", name, source)
	if err != nil {
		return nil, err
	}
	text, err := b.run(ctx, "inspect", "--type", "image", name)
	if err != nil {
		return nil, err
	}
	var inspected struct{ Docker struct{ Config ImageConfig } }
	if err := json.Unmarshal(text, &inspected); err != nil {
		return nil, fmt.Errorf("buildah inspect: %w", err)
	}
	container, err := b.run(ctx, "from", b.policy(), name)
	if err != nil {
		return nil, err
	}
	root, err := b.run(ctx, "mount", string(bytes.TrimSpace(container)))
	if err != nil {
		return nil, err
	}
	return &Image{Root: string(bytes.TrimSpace(root)), Config: inspected.Docker.Config}, nil
}

// buildah runs the buildah that make setup has unpacked. All its state is in dir.
type buildah struct{ unpacked, dir string }

// policy is the flag that says which signatures images must have: none, for they are ours.
func (b buildah) policy() string {
	return "--signature-policy=" + filepath.Join(b.unpacked, "etc", "containers", "policy.json")
}

func (b buildah) run(ctx context.Context, args ...string) ([]byte, error) {
	program := filepath.Join(b.unpacked, "usr", "bin", "buildah")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("%s: %w", program, ErrNotSetUp)
	}

	// It mounts things; in a namespace of its own that ends with it.
	global := []string{
		"--mount", program, "--root", filepath.Join(b.dir, "root"), "--runroot", filepath.Join(b.dir, "run"),
		"--storage-driver", "vfs",
	}
	cmd := exec.CommandContext(ctx, "unshare", append(global, args...)...)
	architecture := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	cmd.Env = append(cmd.Environ(),
		"LD_LIBRARY_PATH="+filepath.Join(b.unpacked, "usr", "lib", architecture+"-linux-gnu"),
		"CONTAINERS_CONF="+filepath.Join(b.unpacked, "usr", "share", "containers", "containers.conf"),
		"CONTAINERS_REGISTRIES_CONF="+filepath.Join(b.unpacked, "etc", "containers", "registries.conf"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("buildah %s: %w\n%s%s",
			args[0], errors.Join(err, context.Cause(ctx)), out.Bytes(), errs.Bytes())
	}
	return out.Bytes(), nil
}

// Start starts a container. Its log lies in logs.
func (i *Image) Start(ctx context.Context, o ImageRun, logs string) (*Process, error) {
	args, err := i.command(o, append(i.Config.Entrypoint, o.Args...))
	if err != nil {
		return nil, fmt.Errorf("start an image: %w", err)
	}
	return Start(ctx, Command{Name: "container", Path: "unshare", Args: args, Env: i.environment(o), Dir: logs})
}

// Run runs the program with the arguments of o in a container of its own, to its end.
func (i *Image) Run(ctx context.Context, o ImageRun) (status int, output string, err error) {
	return i.run(ctx, o, append(i.Config.Entrypoint, o.Args...))
}

// Healthy runs the image's own check next to a container that was started with o, and returns
// its exit status: 0 if it is well.
func (i *Image) Healthy(ctx context.Context, o ImageRun) (status int, output string, err error) {
	test := i.Config.Healthcheck.Test
	if len(test) < 2 || test[0] != "CMD" {
		return -1, "", fmt.Errorf("the image has the health check %q, want CMD and a program", test)
	}
	return i.run(ctx, o, test[1:])
}

func (i *Image) run(ctx context.Context, o ImageRun, program []string) (status int, output string, err error) {
	args, err := i.command(o, program)
	if err != nil {
		return -1, "", fmt.Errorf("run an image: %w", err)
	}
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Env = i.environment(o)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return exit.ExitCode(), string(out), nil
	}
	if err != nil {
		return -1, string(out), fmt.Errorf("run an image: %w\n%s", err, out)
	}
	return 0, string(out), nil
}

// environment is the container's; an earlier value of a name counts no more.
func (i *Image) environment(o ImageRun) []string {
	return append(i.Config.Env[:len(i.Config.Env):len(i.Config.Env)], o.Env...)
}

// confine is the script that makes the namespace of a container and becomes its program:
// root, user and group, how many mounts, for each where and what, and the program.
const confine = `set -eu
root=$1 user=$2 mounts=$3
shift 3
/bin/mount --bind "$root" "$root"
while [ "$mounts" -gt 0 ]; do
	/bin/mount --bind "$2" "$root$1"
	[ "$root$1" = "$2" ] || /bin/mount -o remount,ro,bind "$root$1"
	shift 2
	mounts=$((mounts - 1))
done
/bin/mount -o remount,ro,bind "$root"
exec /usr/sbin/chroot --userspec="$user" --groups="${user#*:}" "$root" "$@"
`

// command returns the arguments of unshare. The places of mounts are made, as engines do.
func (i *Image) command(o ImageRun, program []string) ([]string, error) {
	mounts := make(map[string]string)
	for volume := range i.Config.Volumes {
		mounts[volume] = filepath.Join(i.Root, volume) // onto itself: only the root becomes read-only
	}
	for at, from := range o.Mount {
		mounts[at] = from
		if err := os.MkdirAll(filepath.Join(i.Root, at), 0o755); err != nil {
			return nil, err
		}
	}

	user := i.Config.User
	if !strings.Contains(user, ":") {
		return nil, fmt.Errorf("the image's user is %q, want UID:GID", user)
	}
	args := []string{"--mount", "/bin/sh", "-c", confine, "confine", i.Root, user, fmt.Sprint(len(mounts))}
	for at, from := range mounts {
		args = append(args, at, from)
	}
	return append(args, program...), nil
}
