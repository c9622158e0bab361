//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"downpour/integration/e2e"
	"downpour/pushdown/process/version"
)

// image builds the container image of a program from what make packages lays out.
func image(ctx context.Context, t *testing.T, program string) *e2e.Image {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("building and starting container images needs root")
	}
	if err := e2e.SetUp(ctx, "image_builder"); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(packages(ctx, t), "image", program)
	return must[*e2e.Image](t)(e2e.BuildImage(ctx, source, t.TempDir()))
}

// Both images name the version and commit of the program in them, have no user root and nothing
// but the program, and refuse to serve everybody.
func TestImages(t *testing.T) {
	t.Parallel()
	ctx := within(t, 15*time.Minute)
	for program, port := range map[string]string{"gateway": "4242/tcp", "pushdown": "4280/tcp"} {
		i := image(ctx, t, program)
		c := i.Config
		if _, exposed := c.ExposedPorts[port]; c.User != "10001:10001" || !exposed || len(c.ExposedPorts) != 1 {
			t.Errorf("%s: user %s, ports %v, want 10001:10001 and %s", program, c.User, c.ExposedPorts, port)
		}

		status, out, err := i.Run(ctx, e2e.ImageRun{Args: []string{"-version"}})
		commit := c.Labels["org.opencontainers.image.revision"]
		if err != nil || status != 0 || !strings.HasPrefix(out, "downpour "+version.Version+", ") ||
			!strings.Contains(out, "without C") {
			t.Errorf("%s -version: status %d, error %v, %q, want %s without C",
				program, status, err, out, version.Version)
		}
		if c.Labels["org.opencontainers.image.version"] != version.Version ||
			commit != "" && !strings.Contains(out, "commit "+commit[:12]) {
			t.Errorf("%s: labels %v of the program %s", program, c.Labels, out)
		}

		var files []string
		err = filepath.WalkDir(i.Root, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, strings.TrimPrefix(path, i.Root))
			}
			return err
		})
		want := []string{
			"/etc/group", "/etc/passwd", "/usr/bin/downpour-" + program,
			"/usr/share/doc/downpour-" + program + "/copyright",
		}
		if err != nil || !slices.Equal(files, want) {
			t.Errorf("%s: error %v, files %q, want %q", program, err, files, want)
		}

		store := "DOWNPOUR_STORE=hbase:127.0.0.1:1"
		if status, out, err := i.Run(ctx, e2e.ImageRun{Env: []string{store}}); err != nil || status != 1 ||
			!strings.Contains(out, "beyond loopback needs DOWNPOUR_TOKEN_FILE") {
			t.Errorf("%s on all addresses without tokens: status %d, error %v\n%s", program, status, err, out)
		}
	}
}

// The gateway's container writes to its volume alone, reports whether it is well, ends on SIGTERM,
// and finds its points again.
func TestImages_gateway(t *testing.T) {
	t.Parallel()
	ctx := within(t, 15*time.Minute)
	i := image(ctx, t, "gateway")
	info := must[os.FileInfo](t)(os.Stat(filepath.Join(i.Root, "var/lib/downpour")))
	if info.Sys().(*syscall.Stat_t).Uid != 10001 {
		t.Errorf("the volume belongs to user %d, want 10001", info.Sys().(*syscall.Stat_t).Uid)
	}

	address := fmt.Sprintf("127.0.0.1:%d", must[int](t)(e2e.FreePort()))
	o := e2e.ImageRun{Env: []string{"DOWNPOUR_LISTEN=" + address, "DOWNPOUR_SELF_METRICS=0"}}
	if status, out, err := i.Healthy(ctx, o); err != nil || status != 1 ||
		!strings.Contains(out, "connection refused") {
		t.Errorf("the health check before the start: status %d, error %v, %s, want 1", status, err, out)
	}
	start := func() *e2e.Process {
		p := must[*e2e.Process](t)(i.Start(ctx, o, t.TempDir()))
		t.Cleanup(p.Kill)
		if err := e2e.UntilProcess(ctx, p, 50*time.Millisecond, func(ctx context.Context) error {
			status, out, err := i.Healthy(ctx, o)
			if err == nil && status != 0 {
				err = fmt.Errorf("status %d: %s", status, out)
			}
			return err
		}); err != nil {
			t.Fatalf("the health check of a running gateway: %v\n%s", err, p.LogTail(20))
		}
		// It is healthy while it waits for its store, too.
		if err := e2e.UntilProcess(ctx, p, 50*time.Millisecond, func(ctx context.Context) error {
			a, err := e2e.Get(ctx, "http://"+address+"/readyz")
			if err == nil && a.Status != http.StatusOK {
				err = fmt.Errorf("/readyz: %d %s", a.Status, a.Body)
			}
			return err
		}); err != nil {
			t.Fatalf("%v\n%s", err, p.LogTail(20))
		}
		return p
	}

	p := start()
	point := e2e.Point{
		Metric:    "contained",
		Timestamp: dataStart,
		Value:     json.RawMessage("7"),
		Tags:      map[string]string{"host": "a"},
	}
	if err := e2e.Put(ctx, "http://"+address, []e2e.Point{point}); err != nil {
		t.Fatal(err)
	}
	mounts := string(must[[]byte](t)(os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", p.PID()))))
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		readOnly := strings.Contains(","+fields[5]+",", ",ro,")
		if fields[4] == "/" && !readOnly || fields[4] == "/var/lib/downpour" && readOnly {
			t.Errorf("mounted: %s, want a read-only root, and data that are not", line)
		}
	}
	if !strings.Contains(mounts, " / /") && !strings.Contains(mounts, " / ") {
		t.Errorf("no root among the mounts:\n%s", mounts)
	}

	stop, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.Stop(stop); err != nil || p.ExitCode(ctx) != 0 {
		t.Errorf("SIGTERM: error %v, status %d, want 0\n%s", err, p.ExitCode(ctx), p.LogTail(20))
	}
	start()
	a := must[e2e.Answer](t)(e2e.Get(ctx, fmt.Sprintf("http://%s/api/query?start=%d&m=sum:contained",
		address, dataStart-1)))
	if want := fmt.Sprintf(`"dps":{"%d":7}`, dataStart); !strings.Contains(string(a.Body), want) {
		t.Errorf("after a restart: %s, want %s", a.Body, want)
	}
}
