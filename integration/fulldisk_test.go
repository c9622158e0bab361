//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"downpour/encoding/seedtest"
	"downpour/integration/e2e"
)

// smallDisk is a file system in memory, of so many MiB.
func smallDisk(t *testing.T, mib int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// resize makes a small disk larger.
func resize(t *testing.T, dir string, mib int) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Fatal(err)
	}
}

// fill takes all space but so many bytes, as other programs on the machine may. What an earlier
// call took stays taken.
func fill(t *testing.T, dir string, but int64) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "ballast"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for free(t, dir) > but {
		if _, err := f.Write(block); err != nil {
			break // full, or the gateway was faster
		}
	}
}

func free(t *testing.T, dir string) int64 {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// onDisk is a gateway whose store is on a small disk.
type onDisk struct {
	t       *testing.T
	dir     string // of the disk
	url     string
	env     map[string]string
	process *e2e.Process
	points  int // acknowledged: point n is at second n of the data
}

// start starts the gateway and waits until it answers a query, ready or not.
func (g *onDisk) start(ctx context.Context) {
	g.t.Helper()
	g.process = must[*e2e.Process](g.t)(e2e.Launch(ctx, "./gateway/cmd/gateway",
		"gateway", e2e.ProgramOptions{Env: g.env, Dir: g.t.TempDir()}))
	p := g.process
	g.t.Cleanup(p.Kill)
	err := e2e.UntilProcess(ctx, p, 20*time.Millisecond, func(ctx context.Context) error {
		a, err := e2e.Get(ctx, g.url+"/api/version")
		if err == nil && a.Status != 200 {
			err = fmt.Errorf("status %d", a.Status)
		}
		return err
	})
	if err != nil {
		g.t.Fatalf("%v\n%s", err, p.LogTail(20))
	}
}

// put puts one batch of points whose values do not compress.
func (g *onDisk) put(ctx context.Context, r *rand.Rand) e2e.Answer {
	g.t.Helper()
	points := make([]e2e.Point, 5000)
	for i := range points {
		points[i] = e2e.Point{Metric: "full.disk", Timestamp: dataStart + int64(g.points+i),
			Value: json.RawMessage(strconv.FormatFloat(r.Float64(), 'g', -1, 64)), Tags: map[string]string{"host": "a"}}
	}
	a := must[e2e.Answer](g.t)(e2e.Post(ctx, g.url+"/api/put", points))
	if a.Status == 204 {
		g.points += len(points)
	}
	return a
}

// noRoom returns an error unless a put is refused because the disk is full.
func noRoom(a e2e.Answer) error {
	if a.Status != 503 || !strings.Contains(string(a.Body), "no room on the disk") {
		return fmt.Errorf("the put is answered by %d, %.300s", a.Status, a.Body)
	}
	return nil
}

// check asks for all points: at least those acknowledged must be there.
func (g *onDisk) check(ctx context.Context) {
	g.t.Helper()
	a := must[e2e.Answer](g.t)(e2e.Get(ctx,
		fmt.Sprintf("%s/api/query?start=%d&end=%d&arrays=true&m=sum:0all-count:full.disk",
			g.url, dataStart, dataStart+10_000_000)))
	var results []struct{ Dps [][2]float64 }
	err := json.Unmarshal(a.Body, &results)
	if err != nil || len(results) != 1 || len(results[0].Dps) != 1 || results[0].Dps[0][1] < float64(g.points) {
		g.t.Errorf("status %d, %.300s, want at least %d points", a.Status, a.Body, g.points)
	}
}

// quietly checks that few lines were logged since the beginning. What goes on, as the gateway's own
// points that are refused, may be logged once a second.
func (g *onDisk) quietly(began time.Time) {
	g.t.Helper()
	text, err := os.ReadFile(g.process.Log)
	if err != nil {
		g.t.Fatal(err)
	}
	if n, most := strings.Count(string(text), "\n"), max(60, 30+2*int(time.Since(began).Seconds())); n > most {
		g.t.Errorf("%d lines are logged, want at most %d: %s", n, most, g.process.LogTail(20))
	}
}

// ends tells the process to end, and waits until it has: it must, whatever the disk does.
func (g *onDisk) ends(ctx context.Context) {
	g.t.Helper()
	began := time.Now()
	if err := g.process.Signal(syscall.SIGTERM); err != nil {
		g.t.Fatal(err)
	}
	g.t.Logf("ended with status %d after %v: %s", g.process.ExitCode(ctx), time.Since(began), g.process.LogTail(2))
}

// spares waits until so many bytes are free. A compaction may have taken all that is left
// for what was put already: it removes what it has written once it meets the full disk.
func (g *onDisk) spares(ctx context.Context, bytes int64) {
	g.t.Helper()
	err := e2e.Until(ctx, 50*time.Millisecond, func(context.Context) error {
		if n := free(g.t, g.dir); n < bytes {
			return fmt.Errorf("%d bytes are free, want %d for what was put already", n, bytes)
		}
		return nil
	})
	if err != nil {
		g.t.Error(err)
	}
}

// A disk runs full under a gateway. Puts are refused while some megabytes are still free, and what
// was acknowledged can be read. When other programs take the rest, the gateway still ends when told
// to, and then does not start. With a little more space it starts and can be read; with much more
// it takes puts again without a restart.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := smallDisk(t, 48)
	port := must[int](t)(e2e.FreePort())
	g := &onDisk{t: t, dir: dir, url: fmt.Sprintf("http://127.0.0.1:%d", port), env: map[string]string{
		"DOWNPOUR_STORE": "pebble:" + filepath.Join(dir, "data"), "DOWNPOUR_LISTEN": fmt.Sprintf("127.0.0.1:%d", port),
		"DOWNPOUR_SELF_METRICS": "1s"}}
	began := time.Now()
	g.start(ctx)
	a := g.put(ctx, r)
	for a.Status == 204 {
		a = g.put(ctx, r)
	}
	if err := noRoom(a); err != nil {
		t.Errorf("the first put refused: %v", err)
	}
	t.Logf("%d points were acknowledged, %d KiB are free", g.points, free(t, dir)>>10)
	g.spares(ctx, 256<<10)
	g.check(ctx)

	fill(t, dir, 0)
	for range 20 {
		a := g.put(ctx, r)
		// A compaction that has ended since removes what it has read.
		for a.Status == 204 {
			fill(t, dir, 0)
			a = g.put(ctx, r)
		}
		if err := noRoom(a); err != nil {
			t.Errorf("filled by others: %v", err)
		}
		g.check(ctx)
	}
	g.quietly(began)
	g.ends(ctx)
	fill(t, dir, 0)

	status, out, err := e2e.Run(ctx, "./gateway/cmd/gateway", e2e.ProgramOptions{Env: g.env, Dir: t.TempDir()})
	if err != nil || status == 0 || !strings.Contains(out, "the start needs") || strings.Count(out, "\n") > 3 {
		t.Errorf("start on a full disk: status %d, %v; want a failure that says what the start needs: %s",
			status, err, out)
	}

	resize(t, dir, 48+16) // a start writes what is in the logs to tables, which needs space
	g.start(ctx)

	// A compaction that meets the full disk removes what it has written so far,
	// and then there is room for a put: the disk is filled again until nothing
	// of that kind is under way.
	err = e2e.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		fill(t, dir, 1<<20)
		return noRoom(g.put(ctx, r))
	})
	if err != nil {
		t.Fatalf("1 MiB free: %v", err)
	}
	g.check(ctx)

	resize(t, dir, 160)
	err = e2e.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		if a := g.put(ctx, r); a.Status != 204 {
			return fmt.Errorf("put with room again: %d, %.300s", a.Status, a.Body)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	g.check(ctx)
	g.ends(ctx)
	if status := g.process.ExitCode(ctx); status != 0 {
		t.Errorf("the end with free space: status %d, want 0: %s", status, g.process.LogTail(5))
	}
	g.start(ctx)
	g.check(ctx)
	g.ends(ctx)
}
