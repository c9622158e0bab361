package dispatch

import (
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/operator/operatortest"
)

// Where a plan reads few rows of few hours, this process reads them, and the server where this process cannot.
func TestRun_here(t *testing.T) {
	var unavailable atomic.Bool
	m, s := table(false)
	server := &scripted{name: "s", store: m}
	cfg := quiet(&flaky{Store: m, fail: unavailable.Load}, memory.NewGoAllocator(), server)
	cfg.Seek = access.NewPrefixCache()
	e := New(cfg)
	run := func(name string, plan scanplan.Plan, here, away bool) {
		t.Helper()
		unavailable.Store(away)
		planned, err := e.Explain(t.Context(), &plan, Auto)
		if err != nil {
			t.Fatal(err)
		}
		got := answer{}
		stats, err := e.Run(t.Context(), &plan, Options{Aggregation: PerSeries}, got.sink(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(truth(t, m, &plan), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if explained := planned[0].Server == InProcess; explained != (here || away) || (stats.Remote == 0) != here {
			t.Errorf("%s: explained here %t, %d of %d parts by the server, want here %t", name, explained, stats.Remote,
				stats.Parts, here)
		}
	}

	host := func(tagk int, hours int64) scanplan.Plan {
		p := operatortest.Plan(s, metric, base, base+hours*3600)
		p.Tags = []scanplan.TagPredicate{{TagK: operatortest.UID(tagk), Op: scanplan.In,
			Values: []encoding.UID{operatortest.UID(3)}}}
		return p
	}
	run("first tag", host(1, 6), true, false)
	run("the store is away", host(1, 6), false, true)
	run("many hours", host(1, 25), false, false)
	run("all rows", operatortest.Plan(s, metric, base, base+6*3600), false, false)
	run("another tag", host(2, 6), false, false)
	run("another tag, known", host(2, 6), true, false)
}
