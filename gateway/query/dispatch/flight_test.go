package dispatch

import (
	"context"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/rpc/server"
)

// patience is how long a real server may take to answer on a busy machine.
const patience = 5 * time.Minute

// flightServer starts a pushdown server for a table and returns its client, which the caller
// closes. stop ends the server and waits for its end; the end of the test calls it, too.
func flightServer(t testing.TB, m *operatortest.Store, cfg server.Config) (c *client.Client, stop func()) {
	t.Helper()
	cfg.Table = operatortest.Table
	server, err := server.NewServer(cfg, m)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	if c, err = client.New(l.Addr().String(), client.Options{Mem: cfg.Mem, Stall: patience}); err != nil {
		t.Fatal(err)
	}
	return c, stop
}

// withServer returns an executor with one real pushdown server. It starts no part twice: on a busy machine any may
// be late.
func withServer(c *client.Client, cfg Config) *Executor {
	cfg.Servers, cfg.HelloTimeout = []Server{c}, patience
	e := New(cfg)
	e.paces.tokens = math.Inf(-1)
	return e
}

// A real pushdown server gives the same answer as this process, and after it has ended queries are
// executed in process.
func TestRun_flight(t *testing.T) {
	m, s := table(true)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	c, stop := flightServer(t, m, server.Config{Schema: s, Mem: mem, FlushBytes: 1000})
	e := withServer(c, quiet(m, mem))
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	f := func(remote bool) {
		t.Helper()
		for _, d := range []*scanplan.Downsample{nil, {Interval: 60_000, Function: "avg", Fill: "none"},
			{Interval: 420_000, Function: "avg", Fill: "none"}} {
			plan.Downsample = d
			got := answer{}
			stats, err := e.Run(t.Context(), &plan, Options{Aggregation: PerSeries}, got.sink(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(truth(t, m, &plan), got); diff != "" {
				t.Error(diff)
			}
			if remote && stats.Remote != stats.Parts || !remote && stats.Remote != 0 {
				t.Errorf("got %+v, want all parts from the server, or none after it has ended", stats)
			}
		}
	}
	f(true)
	stop()
	f(false)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	mem.AssertSize(t, 0)
}
