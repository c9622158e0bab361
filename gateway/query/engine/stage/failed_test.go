package stage

import (
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/operatortest"
)

// Tries one after the other count each, tries side by side once, and all are forgotten after a
// while or when one succeeds. A plan of other times is the same, one with rates is another.
func TestFailedTries(t *testing.T) {
	plan := func(from int64) *scanplan.Plan {
		p := operatortest.Plan(encoding.DefaultSchema(), operatortest.UID(1), from, from+3600)
		return &p
	}
	rates := plan(alignedBase)
	rates.Rate = &scanplan.Rate{}
	var r failedTries
	zero := time.Unix(alignedBase, 0)
	at := func(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }
	want := func(now, n int) {
		t.Helper()
		if got := r.count(plan(alignedBase+3600), at(now)); got != n {
			t.Errorf("after %d s: %d tries, want %d", now, got, n)
		}
	}

	want(0, 0)
	r.add(plan(alignedBase), at(0), at(2))
	want(2, 1)
	r.add(plan(alignedBase), at(1), at(3)) // while the first ran
	want(3, 1)
	r.add(plan(alignedBase), at(3), at(4))
	want(4, 2)
	if n := r.count(rates, at(4)); n != 0 {
		t.Errorf("%d tries with another plan, want none", n)
	}
	r.remove(plan(alignedBase))
	want(4, 0)

	r.add(plan(alignedBase), at(5), at(6))
	want(6+int(failuresLast/time.Second)-1, 1)
	want(6+int(failuresLast/time.Second), 0)
	r.add(plan(alignedBase), at(400), at(401))
	want(401, 1)
}

// Plans that differ in what is read or computed have hashes of their own, those of other times the same.
func TestPlanHash(t *testing.T) {
	one, two := []encoding.UID{operatortest.UID(1)}, []encoding.UID{operatortest.UID(2)}
	plans := map[string]func(p *scanplan.Plan){
		"plain":            func(*scanplan.Plan) {},
		"table":            func(p *scanplan.Plan) { p.Table = "other" },
		"metric":           func(p *scanplan.Plan) { p.Metric = operatortest.UID(2) },
		"aggregator":       func(p *scanplan.Plan) { p.Aggregator = "max" },
		"exact":            func(p *scanplan.Plan) { p.Exact = true },
		"group by":         func(p *scanplan.Plan) { p.GroupBy = one },
		"another group by": func(p *scanplan.Plan) { p.GroupBy = two },
		"TSUIDs":           func(p *scanplan.Plan) { p.TSUIDs = one },
		"other TSUIDs":     func(p *scanplan.Plan) { p.TSUIDs = two },
		"tag":              func(p *scanplan.Plan) { p.Tags = []scanplan.TagPredicate{{TagK: one[0]}} },
		"another tag":      func(p *scanplan.Plan) { p.Tags = []scanplan.TagPredicate{{TagK: two[0]}} },
		"operator": func(p *scanplan.Plan) {
			p.Tags = []scanplan.TagPredicate{{TagK: one[0], Op: scanplan.In}}
		},
		"values": func(p *scanplan.Plan) {
			p.Tags = []scanplan.TagPredicate{{TagK: one[0], Op: scanplan.In, Values: two}}
		},
		"downsample": func(p *scanplan.Plan) { p.Downsample = &scanplan.Downsample{Interval: 1000} },
		"interval":   func(p *scanplan.Plan) { p.Downsample = &scanplan.Downsample{Interval: 2000} },
		"rate":       func(p *scanplan.Plan) { p.Rate = &scanplan.Rate{} },
		"counter":    func(p *scanplan.Plan) { p.Rate = &scanplan.Rate{Counter: true} },
	}
	seen := map[uint64]string{}
	for name, change := range plans {
		var hashes [2]uint64
		for i := range hashes {
			p := operatortest.Plan(encoding.DefaultSchema(), operatortest.UID(1), alignedBase,
				alignedBase+3600*int64(i+1))
			change(&p)
			hashes[i] = planHash(&p)
		}
		if hashes[0] != hashes[1] {
			t.Errorf("%s: plans of other times have other hashes", name)
		}
		if other, ok := seen[hashes[0]]; ok {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[hashes[0]] = name
	}
}
