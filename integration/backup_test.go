//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// loadWriter puts points into a series of its own by telnet, as fast as they are acknowledged:
// point n is at second n of the data and has the value n.
type loadWriter struct {
	series             string
	sent, acknowledged atomic.Int64
}

const loadBatch = 20_000

func (w *loadWriter) run(ctx context.Context, addr string) error {
	c, err := dialTelnet(ctx, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for ctx.Err() == nil {
		n := w.sent.Add(loadBatch)
		for i := n - loadBatch; i < n; i++ {
			fmt.Fprintf(c.out, "put load.test %d %d writer=%s\n", dataStart+i, i, w.series)
		}
		earlier, err := c.version()
		if err == nil && len(earlier) > 0 {
			err = fmt.Errorf("put: %q", earlier[0])
		}
		if err != nil {
			return err
		}
		if _, err := c.in.ReadString('\n'); err != nil { // the second line of the answer
			return err
		}
		w.acknowledged.Store(n)
	}
	return nil
}

// check asks for the writer's points: they must be the first ones, at least those that were
// acknowledged.
func (w *loadWriter) check(ctx context.Context, t *testing.T, url string, acknowledged int64) {
	t.Helper()
	number := func(function string) int64 {
		a := must[e2e.Answer](t)(e2e.Get(ctx,
			fmt.Sprintf("%s/api/query?start=%d&end=%d&arrays=true&m=sum:0all-%s:load.test%%7Bwriter=%s%%7D",
				url, dataStart, dataStart+w.sent.Load(), function, w.series)))
		var results []struct{ Dps [][2]float64 }
		if err := json.Unmarshal(a.Body, &results); err != nil || len(results) != 1 || len(results[0].Dps) != 1 {
			t.Fatalf("writer %s: %s: status %d, %.300s", w.series, function, a.Status, a.Body)
		}
		return int64(results[0].Dps[0][1])
	}
	count, last, sum := number("count"), number("max"), number("sum")
	if count < acknowledged || last != count-1 || sum != count*(count-1)/2 {
		t.Errorf("writer %s: %d points, the last is %d, their sum %d; want at least %d, from 0 on",
			w.series, count, last, sum, acknowledged)
	}
}

// Backups are taken of a gateway's store while points are put as fast as it takes them. Each
// restored backup passes the check and holds every point that was acknowledged before it began.
func TestBackup_underLoad(t *testing.T) {
	t.Parallel()
	ctx := within(t, 10*time.Minute)
	at := embeddedPlace(t)
	backups := filepath.Join(t.TempDir(), "backups")
	writers := []*loadWriter{{series: "a"}, {series: "b"}}
	total := func() (n int64) {
		for _, w := range writers {
			n += w.acknowledged.Load()
		}
		return n
	}
	var before [3][2]int64
	at.serve(ctx, t, func(url string) {
		loading, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		for _, w := range writers {
			all.Go(func() {
				if err := w.run(loading, strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")); err != nil {
					t.Error(err)
				}
			})
		}
		for i := range before {
			began, points := time.Now(), total()
			for total() < points+1_000_000 && !t.Failed() {
				<-time.After(10 * time.Millisecond)
			}
			t.Logf("%.0f points/s without a backup", float64(total()-points)/time.Since(began).Seconds())
			before[i] = [2]int64{writers[0].acknowledged.Load(), writers[1].acknowledged.Load()}
			began, points = time.Now(), total()
			out := at.tool(ctx, t, "backup", "-keep", "2", backups)
			t.Logf("%.0f points/s during a backup of %v: %s",
				float64(total()-points)/time.Since(began).Seconds(), time.Since(began), out)
		}
		stop()
		all.Wait()
	})

	kept := must[[]string](t)(filepath.Glob(filepath.Join(backups, "2*")))
	if len(kept) != 2 {
		t.Fatalf("backups %v, want two", kept)
	}
	for i, backup := range kept {
		restored := embeddedPlace(t)
		t.Log(restored.tool(ctx, t, "restore", backup), restored.tool(ctx, t, "check"))
		restored.serve(ctx, t, func(url string) {
			for j, w := range writers {
				w.check(ctx, t, url, before[i+1][j])
			}
		})
	}
}
