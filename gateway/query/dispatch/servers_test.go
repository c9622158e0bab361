package dispatch

import (
	"context"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/wire"
)

// A run uses the answers of a healthy server, and executes in process what a failing one does not
// answer.
func TestRun_servers(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	f := func(server *scripted, remote bool) {
		t.Helper()
		server.store = m
		got := answer{}
		e := New(quiet(m, mem, server))
		stats, err := e.Run(t.Context(), &plan, Options{Aggregation: PerSeries}, got.sink(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(truth(t, m, &plan), got); diff != "" {
			t.Error(diff)
		}
		if remote != (stats.Remote == stats.Parts) || !remote && stats.Remote != 0 || stats.Points != 7*360 {
			t.Errorf("got %+v, want all parts or none from the server, and all points", stats)
		}
		if !remote && server.parts.Load() > int64(e.cfg.PerServer) {
			t.Errorf("%d parts were sent to a server that fails, want PerServer at most", server.parts.Load())
		}
		mem.AssertSize(t, 0)
	}
	f(&scripted{name: "good"}, true)
	f(&scripted{name: "no hello", hello: wire.ErrServer}, false)
	other := &scripted{name: "another release", batch: "1"}
	f(other, false)
	if n := other.parts.Load(); n != 0 {
		t.Errorf("%d parts were sent to a server whose batches are not understood, want none", n)
	}
	f(&scripted{name: "dead", fault: func(context.Context, int) error { return wire.ErrServer }}, false)
	f(&scripted{name: "dies", fault: func(_ context.Context, n int) error {
		if n == 1 {
			return wire.ErrIncomplete
		}
		return nil
	}}, false)
}

// A server of the release before executes what its release knows, and is sent nothing newer. A plan that is new to it
// is executed elsewhere: at a server of this release, or in this process. It is healthy all the same.
//
//fault:release-before-not-used h.Batch != batch.Previous || => true ||
//fault:aligned-at-the-release-before l.before = l.before || e.before => l.before = false
//fault:refused-plan-marks-its-server !errors.Is(a.err, operator.ErrBadPlan) { => true {
func TestRun_releaseBefore(t *testing.T) {
	m, s := table(false)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	known := operatortest.Plan(s, metric, base, base+6*3600)
	newer := known
	newer.SplitOffHour = true
	f := func(e *Executor, plan *scanplan.Plan, how Aggregation, remote bool) {
		t.Helper()
		got := answer{}
		stats, err := e.Run(t.Context(), plan, Options{Aggregation: how}, got.sink(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(truth(t, m, plan), got); diff != "" {
			t.Error(diff)
		}
		if remote != (stats.Remote == stats.Parts) || !remote && stats.Remote != 0 {
			t.Errorf("got %+v, want all parts at servers: %t", stats, remote)
		}
	}
	before := &scripted{name: "before", store: m, batch: batch.Previous}
	alone := New(quiet(m, mem, before))
	f(alone, &known, Auto, true)
	if n := before.refused.Load(); n != 0 {
		t.Errorf("%d parts of a plan that it knows were refused, want none", n)
	}
	f(alone, &newer, PerSeries, false)
	if n := before.refused.Load(); n == 0 || n > int64(alone.cfg.PerServer) {
		t.Errorf("%d parts of a plan that is new to it were refused, want 1 to PerServer", n)
	}
	f(alone, &known, PerSeries, true)

	both := New(quiet(m, mem, &scripted{name: "before", store: m, batch: batch.Previous},
		&scripted{name: "now", store: m}))
	f(both, &newer, PerSeries, true)
	f(both, &known, Auto, true)
	mem.AssertSize(t, 0)
}
