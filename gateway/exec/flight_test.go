package exec

import (
	"context"
	"net"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding/scanplan"
	"downpour/pushdown"
	"downpour/pushdown/client"
	"downpour/pushdown/operator/operatortest"
)

// Over a real pushdown server the answer is that of this process; when the
// server ends, queries go on without it.
func TestRun_flight(t *testing.T) {
	m, s := table(true)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	server, err := pushdown.NewServer(pushdown.Config{Table: operatortest.Table, Schema: s, Mem: mem, FlushBytes: 1000}, m)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	c, err := client.New(l.Addr().String(), client.Options{Mem: mem})
	if err != nil {
		t.Fatal(err)
	}
	cfg := quiet(m, mem)
	cfg.Servers = []Server{c}
	e := New(cfg)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	f := func(remote bool) {
		t.Helper()
		for _, d := range []*scanplan.Downsample{nil, {Interval: 60_000, Function: "avg", Fill: "none"}, {Interval: 420_000, Function: "avg", Fill: "none"}} {
			plan.Downsample = d
			got := answer{}
			stats, err := e.Run(t.Context(), &plan, got.sink(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(truth(t, m, &plan), got); diff != "" {
				t.Error(diff)
			}
			if remote && stats.Remote != stats.Parts || !remote && stats.Remote != 0 {
				t.Errorf("%+v", stats)
			}
		}
	}
	f(true)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	f(false)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	mem.AssertSize(t, 0)
}
