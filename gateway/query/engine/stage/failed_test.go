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
