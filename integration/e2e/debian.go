package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Debian is the root of a Debian system of its own, in which packages are installed and
// programs started by chroot. It has no init: units are started by their command lines.
type Debian struct {
	Root string // on this machine
}

// NewDebian copies the system that make setup has made to a directory that does not exist yet.
// It needs root.
func NewDebian(ctx context.Context, dir string) (*Debian, error) {
	root, err := Root()
	if err != nil {
		return nil, fmt.Errorf("Debian system: %w", err)
	}
	made := filepath.Join(root, "build", "setup", "debian")
	if _, err := os.Stat(made + ".stamp"); err != nil {
		return nil, fmt.Errorf("Debian system: %w", errors.Join(ErrNotSetUp, err))
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", made, dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("Debian system: copy: %w\n%s", err, out)
	}
	return &Debian{Root: dir}, nil
}

// Run runs a command in the system to its end, as root, and returns its exit status and all it
// wrote.
func (d *Debian) Run(ctx context.Context, command ...string) (status int, output string, err error) {
	cmd := exec.CommandContext(ctx, "chroot", append([]string{d.Root}, command...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return exit.ExitCode(), string(out), nil
	}
	if err != nil {
		return -1, string(out), fmt.Errorf("run %q in the Debian system: %w", command, err)
	}
	return 0, string(out), nil
}

// StartUnit starts what the unit's ExecStart says as the user it says, in its working
// directory and with the variables of its EnvironmentFile alone. The log lies in logs.
func (d *Debian) StartUnit(ctx context.Context, name, logs string) (*Process, error) {
	unit, err := d.lines("/usr/lib/systemd/system/" + name + ".service")
	if err != nil {
		return nil, fmt.Errorf("start unit %s: %w", name, err)
	}
	environment, err := d.lines(unit["EnvironmentFile"])
	if err != nil {
		return nil, fmt.Errorf("start unit %s: %w", name, err)
	}

	args := []string{
		"--userspec=" + unit["User"] + ":" + unit["Group"], d.Root, "/usr/bin/env", "-i", "-C",
		unit["WorkingDirectory"],
	}
	for key, value := range environment {
		args = append(args, key+"="+value)
	}
	args = append(args, strings.Fields(unit["ExecStart"])...)
	return Start(ctx, Command{Name: name, Path: "chroot", Args: args, Dir: logs})
}

// lines reads the KEY=VALUE lines of a file of the system; those of a unit have different keys
// as far as tests need them.
func (d *Debian) lines(path string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(d.Root, path))
	if err != nil {
		return nil, err
	}
	values := make(map[string]string)
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), "="); ok && !strings.HasPrefix(key, "#") {
			values[key] = value
		}
	}
	return values, nil
}
