package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// VictoriaMetrics is a running single-node server with storage of its own: the program on PATH, or else that of the
// system's packages.
type VictoriaMetrics struct {
	URL     string // http://127.0.0.1:PORT, queries
	Telnet  string // host:port of OpenTSDB's telnet put
	PutURL  string // http://127.0.0.1:PORT, OpenTSDB's POST /api/put
	Version string // of the program
	Process *Process

	dir string
}

// StartVictoriaMetrics starts a server on an empty directory and returns when
// it answers. It keeps all times, caches no answers, shows what was put at once, and
// answers queries of many series.
func StartVictoriaMetrics(ctx context.Context) (*VictoriaMetrics, error) {
	path, version, err := victoriaProgram(ctx)
	if err != nil {
		return nil, fmt.Errorf("start VictoriaMetrics: %w", err)
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, fmt.Errorf("start VictoriaMetrics: %w", err)
	}
	dir, err := runDir("victoria")
	if err != nil {
		return nil, fmt.Errorf("start VictoriaMetrics: %w", err)
	}
	address := func(i int) string { return "127.0.0.1:" + strconv.Itoa(ports[i]) }
	v := &VictoriaMetrics{
		URL:     "http://" + address(0),
		Telnet:  address(1),
		PutURL:  "http://" + address(2),
		Version: version,
		dir:     dir,
	}
	v.Process, err = Start(ctx, Command{Name: "victoria-metrics", Path: path, Dir: dir, Args: []string{
		"-httpListenAddr=" + address(0), "-opentsdbListenAddr=" + address(1), "-opentsdbHTTPListenAddr=" + address(2),
		"-storageDataPath=" + filepath.Join(dir, "data"), "-retentionPeriod=100y",
		"-search.disableCache", "-search.latencyOffset=0s", "-search.maxUniqueTimeseries=20000000",
		"-search.maxQueryDuration=5m",
	}})
	if err == nil {
		err = UntilProcess(ctx, v.Process, 50*time.Millisecond, func(ctx context.Context) error {
			return errors.Join(answers(ctx, v.URL+"/health"), dials(ctx, v.Telnet))
		})
	}
	if err != nil {
		if v.Process != nil {
			v.Process.Kill()
		}
		return nil, fmt.Errorf("start VictoriaMetrics, logs kept in %s: %w", dir, err)
	}
	return v, nil
}

// victoriaProgram finds the program on PATH, which somebody may have built from newer sources, or else what setup has
// unpacked.
func victoriaProgram(ctx context.Context) (path, version string, err error) {
	if path, err = exec.LookPath("victoria-metrics"); err == nil {
		text, err := exec.CommandContext(ctx, path, "-version").Output()
		return path, "on PATH, " + strings.TrimSpace(string(text)), err
	}
	dir, err := Root()
	if err != nil {
		return "", "", err
	}
	out := filepath.Join(dir, "build", "setup")
	path = filepath.Join(out, "victoria-metrics", "usr", "bin", "victoria-metrics")
	text, err := os.ReadFile(filepath.Join(out, "victoria-metrics.stamp"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("victoria-metrics: %w", ErrNotSetUp)
	}
	return path, strings.TrimSpace(string(text)), err
}

// Dir returns the directory of its files and log.
func (v *VictoriaMetrics) Dir() string { return v.dir }

// Close ends the server and removes its files.
func (v *VictoriaMetrics) Close() error {
	err := stopWithin(v.Process, 15*time.Second)
	return errors.Join(err, os.RemoveAll(v.dir))
}

// SetUp runs integration/setup/setup.sh for the named steps, see there. Its error
// is the line in which the script says what is missing. Steps already done cost
// nothing.
func SetUp(ctx context.Context, steps ...string) error {
	dir, err := Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "bash",
		append([]string{filepath.Join(dir, "integration", "setup", "setup.sh")}, steps...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err = cmd.Run(); err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	for line := range strings.Lines(errs.String()) {
		if strings.HasPrefix(line, "setup: ") {
			return errors.New(strings.TrimSpace(line))
		}
	}
	return fmt.Errorf("setup.sh %s: %w: %s", strings.Join(steps, " "), err, strings.TrimSpace(errs.String()))
}

// Version returns the version of a server that setup has got, "hbase" or
// "opentsdb", as its stamp names it.
func Version(name string) string {
	dir, err := Root()
	if err != nil {
		return "unknown"
	}
	text, err := os.ReadFile(filepath.Join(dir, "build", "setup", name+".stamp"))
	if err != nil {
		return "unknown"
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	return version
}
