//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
	"downpour/pushdown/process/version"
)

// installation is a Debian system in which our packages are installed and used.
type installation struct {
	*testing.T
	ctx    context.Context
	debian *e2e.Debian
	logs   string
	url    string
}

// mustRun runs a command in the system that must end with status 0.
func (i *installation) mustRun(command ...string) string {
	i.Helper()
	status, out, err := i.debian.Run(i.ctx, command...)
	if err != nil || status != 0 {
		i.Fatalf("%q: status %d, error %v\n%s", command, status, err, out)
	}
	return out
}

// start starts the gateway by its unit and waits until it is ready.
func (i *installation) start() *e2e.Process {
	i.Helper()
	p := must[*e2e.Process](i.T)(i.debian.StartUnit(i.ctx, "downpour-gateway", i.logs))
	i.Cleanup(p.Kill)
	i.ready(p)
	return p
}

// ready waits until the gateway is ready.
func (i *installation) ready(p *e2e.Process) {
	i.Helper()
	if err := e2e.UntilProcess(i.ctx, p, 20*time.Millisecond, func(ctx context.Context) error {
		a, err := e2e.Get(ctx, i.url+"/readyz")
		if err == nil && a.Status != 200 {
			err = fmt.Errorf("status %d", a.Status)
		}
		return err
	}); err != nil {
		i.Fatalf("the gateway does not become ready: %v\n%s", err, p.LogTail(20))
	}
}

func (i *installation) stop(p *e2e.Process) {
	i.Helper()
	if err := p.Stop(i.ctx); err != nil {
		i.Fatal(err)
	}
}

func (i *installation) put(n int) {
	i.Helper()
	point := e2e.Point{
		Metric:    "installed",
		Timestamp: dataStart + int64(n),
		Value:     json.RawMessage(strconv.Itoa(n)),
		Tags:      map[string]string{"host": "a"},
	}
	if err := e2e.Put(i.ctx, i.url, []e2e.Point{point}); err != nil {
		i.Fatal(err)
	}
}

// holds says that points 0 to n-1 are answered.
func (i *installation) holds(n int) {
	i.Helper()
	a := must[e2e.Answer](i.T)(e2e.Get(i.ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&m=sum:0all-count:installed",
		i.url, dataStart, dataStart+1000)))
	if want := fmt.Sprintf(`":%d.0}`, n); !strings.Contains(string(a.Body), want) {
		i.Errorf("got %s, want %d points", a.Body, n)
	}
}

// later copies a package under a later revision.
func (i *installation) later(deb, revision string) {
	i.Helper()
	tree := filepath.Join(i.TempDir(), "tree")
	run := func(name string, args ...string) {
		if out, err := exec.CommandContext(i.ctx, name, args...).CombinedOutput(); err != nil {
			i.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	run("dpkg-deb", "-R", filepath.Join(i.debian.Root, deb), tree)
	run("sed", "-i", "s/^Version: .*/&"+revision+"/", filepath.Join(tree, "DEBIAN", "control"))
	run("dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, filepath.Join(i.debian.Root, "later.deb"))
}

// install makes a Debian system in which the packages lie, not installed yet.
func install(t *testing.T) *installation {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("installing packages into a system of its own needs root")
	}
	ctx := within(t, 15*time.Minute)
	i := &installation{T: t, ctx: ctx, logs: t.TempDir()}
	i.debian = must[*e2e.Debian](t)(e2e.NewDebian(ctx, filepath.Join(t.TempDir(), "root")))
	out, err := exec.CommandContext(ctx, "cp", "-a", packages(ctx, t)+"/.", i.debian.Root).CombinedOutput()
	if err != nil {
		t.Fatalf("copy packages: %v\n%s", err, out)
	}
	return i
}

// listenFree adds a line to the gateway's settings by which it listens on a free port. It returns
// where the settings lie.
func (i *installation) listenFree() (settings string) {
	i.Helper()
	listen := fmt.Sprintf("127.0.0.1:%d", must[int](i.T)(e2e.FreePort()))
	i.url = "http://" + listen
	settings = filepath.Join(i.debian.Root, "etc/downpour/gateway.env")
	file := must[*os.File](i.T)(os.OpenFile(settings, os.O_APPEND|os.O_WRONLY, 0))
	_, err := fmt.Fprintf(file, "DOWNPOUR_LISTEN=%s\n", listen)
	if err := errors.Join(err, file.Close()); err != nil {
		i.Fatal(err)
	}
	return settings
}

// What make packages makes is installed in a clean Debian, started by its unit's command line as
// its user, fed, upgraded while it runs, removed, purged and installed again: every point stays,
// and so does what the operator wrote into its settings.
func TestPackages(t *testing.T) {
	t.Parallel()
	i := install(t)
	ctx := i.ctx
	gateway, pushdown := i.built("downpour-gateway"), i.built("downpour-pushdown")
	i.mustRun("sha256sum", "-c", "SHA256SUMS")
	i.mustRun("dpkg", "-i", gateway, pushdown)
	i.mustRun("systemd-analyze", "verify", "downpour-gateway.service", "downpour-pushdown.service")
	i.mustRun("systemd-analyze", "security", "--offline=true", "--threshold=20", "downpour-gateway.service",
		"downpour-pushdown.service")
	for _, name := range []string{"downpour-gateway", "downpour-pushdown"} {
		wanted := filepath.Join(i.debian.Root, "etc/systemd/system/multi-user.target.wants", name+".service")
		if _, err := os.Lstat(wanted); err != nil {
			t.Errorf("%s would not be started at boot: %v", name, err)
		}
		if out := i.mustRun(name, "-version"); !strings.HasPrefix(out, "downpour "+version.Version+", ") {
			t.Errorf("%s -version: %q, want %s", name, out, version.Version)
		}
	}

	for _, name := range []string{"alerts.yml", "grafana.json"} {
		example := filepath.Join(i.debian.Root, "usr/share/doc/downpour-gateway/examples", name)
		if _, err := os.Stat(example); err != nil {
			t.Error(err)
		}
	}

	// The operator's own line comes into the settings; it must outlive upgrades.
	settings := i.listenFree()

	running := i.start()
	i.put(0)
	i.holds(1)
	i.refused("in use")

	// A disk with no room: the package that is there goes on, as does the program.
	i.later(gateway, "+later")
	upgrade := exec.CommandContext(ctx, "prlimit", "--fsize=1000000",
		"chroot", i.debian.Root, "dpkg", "-i", "later.deb")
	if out, err := upgrade.CombinedOutput(); err == nil {
		t.Errorf("an upgrade without room succeeds:\n%s", out)
	}
	i.put(1)
	i.stop(running)
	running = i.start()
	i.holds(2)

	i.mustRun("dpkg", "-i", "later.deb") // while it runs
	i.put(2)
	i.stop(running)
	running = i.start()
	i.holds(3)
	i.stop(running)
	if out := i.mustRun("dpkg-query", "-W", "-f", "${Version}", "downpour-gateway"); !strings.HasSuffix(out, "+later") {
		t.Errorf("version %s after the upgrade, want the later one", out)
	}

	i.mustRun("dpkg", "-r", "downpour-gateway")
	if _, err := os.Stat(settings); err != nil {
		t.Errorf("the settings after a removal: %v", err)
	}
	out := i.mustRun("dpkg", "-P", "downpour-gateway")
	if !strings.Contains(out, "data in /var/lib/downpour is kept") {
		t.Errorf("a purge does not say that data stay:\n%s", out)
	}
	i.mustRun("dpkg", "-i", gateway)
	listen := strings.TrimPrefix(i.url, "http://")
	if err := os.WriteFile(settings, fmt.Appendf(nil, "DOWNPOUR_STORE=pebble:/var/lib/downpour/data\n"+
		"DOWNPOUR_LISTEN=%s\n", listen), 0o644); err != nil {
		t.Fatal(err)
	}
	running = i.start()
	i.holds(3)
	i.stop(running)
}

// A package installed over a store that a gateway of the archive uses, which root has started:
// that gateway goes on, and the unit says why it does not start. Once the gateway has ended and
// the files are the user's, the unit has its points.
func TestPackages_overRunningStore(t *testing.T) {
	t.Parallel()
	i := install(t)
	archives := must[[]string](t)(filepath.Glob(filepath.Join(i.debian.Root, "downpour-[0-9]*-linux-*.tar.gz")))
	if len(archives) != 1 {
		t.Fatalf("archives %q, want one", archives)
	}
	archive := filepath.Base(archives[0])
	i.mustRun("tar", "-xzf", "/"+archive)
	i.mustRun("mkdir", "-p", "/var/lib/downpour")

	i.url = fmt.Sprintf("http://127.0.0.1:%d", must[int](t)(e2e.FreePort()))
	byHand := must[*e2e.Process](t)(e2e.Start(i.ctx, e2e.Command{
		Name: "by-hand",
		Path: "chroot",
		Dir:  i.logs,
		Args: []string{
			i.debian.Root, "/usr/bin/env", "-i", "DOWNPOUR_STORE=pebble:/var/lib/downpour/data",
			"DOWNPOUR_SELF_METRICS=0", "DOWNPOUR_LISTEN=" + strings.TrimPrefix(i.url, "http://"),
			"/" + strings.TrimSuffix(archive, ".tar.gz") + "/downpour-gateway",
		},
	}))
	t.Cleanup(byHand.Kill)
	i.ready(byHand)
	i.put(0)

	i.mustRun("dpkg", "-i", i.built("downpour-gateway"))
	i.refused("/var/lib/downpour/data")
	i.put(1)
	i.holds(2)
	i.stop(byHand)

	i.listenFree()
	i.refused("permission denied")
	i.mustRun("chown", "-R", "downpour:downpour", "/var/lib/downpour")
	running := i.start()
	i.holds(2)
	i.stop(running)
}

// built is the path of a package in the system.
func (i *installation) built(name string) string {
	i.Helper()
	found, err := filepath.Glob(filepath.Join(i.debian.Root, name+"_*.deb"))
	if err != nil || len(found) != 1 {
		i.Fatalf("packages %s: %q, error %v, want one", name, found, err)
	}
	return "/" + filepath.Base(found[0])
}

// refused starts the unit while its store is not to be had, which must end with words.
func (i *installation) refused(words string) {
	i.Helper()
	logs := i.TempDir()
	second := must[*e2e.Process](i.T)(i.debian.StartUnit(i.ctx, "downpour-gateway", logs))
	defer second.Kill()
	if status := second.ExitCode(i.ctx); status != 1 || !strings.Contains(second.LogTail(5), words) {
		i.Errorf("a start that cannot be: status %d, want 1 and %q\n%s", status, words, second.LogTail(5))
	}
}
