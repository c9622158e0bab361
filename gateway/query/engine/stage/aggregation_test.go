package stage

import (
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
)

// A plan whose groups had one series each is executed per series the next time, with the same
// answer; one with more series in a group is not, and neither is the same plan by other tags. A
// raw plan over a pushdown server is aligned, or executed again per series.
func TestAggregation_smallGroups(t *testing.T) {
	s := encoding.DefaultSchema()
	m := &operatortest.Store{}
	for i := range 6 {
		m.Load(s, operatortest.UID(9), operatortest.Series{
			Tags: []encoding.TagPair{operatortest.Tag(1, i+1), operatortest.Tag(2, 1+i%3)},
			Points: operatortest.Every(alignedBase, alignedBase+2*3600, 60,
				func(k int) float64 { return float64(i*k) / 7 }),
		})
	}
	stages := New(Config{Exec: overFlight(t, m, s)})
	ask := func(groupBy int, d *scanplan.Downsample, wantPartial bool) []merge.Group {
		t.Helper()
		p := operatortest.Plan(s, operatortest.UID(9), alignedBase, alignedBase+2*3600)
		p.GroupBy, p.Downsample = []encoding.UID{operatortest.UID(groupBy)}, d
		a, err := stages.aggregation.Groups(t.Context(),
			&Request{
				Compiled:  &plan.Compiled{Plan: &p},
				Query:     &query.Query{ShowTSUIDs: true},
				NewBudget: func() operator.Budget { return nil },
			})
		if err != nil || a.Stats.Remote == 0 || (a.Stats.Partial > 0) != wantPartial {
			t.Errorf("by tag %d: %v, %+v; want partial %t", groupBy, err, a.Stats, wantPartial)
		}
		return a.Groups
	}
	d := &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
	for i := range 3 {
		first := ask(1, d, i == 0)
		if diff := sameGroups(first, ask(1, d, false)); diff != "" || len(first) != 6 {
			t.Errorf("%d groups, want 6; (- first, + next):\n%s", len(first), diff)
		}
		ask(2, d, true)
	}

	// The series have integers and floats: they are refused, and the answer is that of all points.
	raw := ask(2, nil, false)
	p := operatortest.Plan(s, operatortest.UID(9), alignedBase, alignedBase+2*3600)
	p.GroupBy = []encoding.UID{operatortest.UID(2)}
	want, _, err := mergedBy(t.Context(), dispatch.New(dispatch.Config{Store: m}), &p, dispatch.PerSeries)
	if diff := sameGroups(want, raw); diff != "" || err != nil || len(raw) != 3 {
		t.Errorf("%v, %d groups, want 3; (- per series, + raw):\n%s", err, len(raw), diff)
	}
	if stages.aggregation.partialFailed.count(&p, time.Now()) == 0 {
		t.Error("the raw plan was not refused: the test does not try what it should")
	}
}
