package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
)

// A part that has panicked is attempted once more, elsewhere and at once; the server is not avoided for it. A
// second panic ends the run. The log has the part each time.
func TestRun_panics(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+3600) // a single part
	for name, c := range map[string]struct {
		servers int
		last    bool // this process panics, too
		logged  int
		ended   int // by a server: the gateway's log names it, as the query's error does not
	}{
		"one server":                   {1, false, 1, 0},
		"one server, and this process": {1, true, 2, 0},
		"three servers":                {3, true, 2, 1},
		"this process":                 {0, true, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
				defer mem.AssertSize(t, 0)
				var logged bytes.Buffer
				var servers []*scripted
				for i := range c.servers {
					servers = append(servers, &scripted{
						name:  fmt.Sprint("s", i),
						store: m,
						fault: func(context.Context, int) error { panic("boom") },
					})
				}
				st := &operatortest.Store{Rows: m.Rows}
				if c.last {
					st.Fail = func(context.Context, int) error { panic("boom") }
				}
				cfg := quiet(st, mem, servers...)
				cfg.Local, cfg.PerServer = 1, 1
				cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
				e, got, began := New(cfg), answer{}, time.Now()
				stats, err := e.Run(t.Context(), &plan, Options{Aggregation: PerSeries}, got.sink(t))
				var fault *operator.PanicError
				if c.last != errors.As(err, &fault) || !c.last && err != nil {
					t.Errorf("got %v, want a panic: %v", err, c.last)
				}
				n := strings.Count(logged.String(), "a part panicked")
				if n != c.logged || !strings.Contains(logged.String(), "Plan") {
					t.Errorf("logged %d panics of %d attempts, want %d, with the plan: %s",
						n, stats.Attempts, c.logged, logged.String())
				}
				if n := strings.Count(logged.String(), "a part ends its query"); n != c.ended {
					t.Errorf("logged %d servers that ended the query, want %d: %s", n, c.ended, logged.String())
				}
				if time.Since(began) != 0 {
					t.Errorf("took %s, want no pause", time.Since(began))
				}
				if n := len(e.servers.placement(plan.Table).places); n != c.servers {
					t.Errorf("%d servers are avoided", c.servers-n)
				}
			})
		})
	}
}
