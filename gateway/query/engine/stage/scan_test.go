package stage

import (
	"context"
	"errors"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
)

// Sums that are added in another order may have other last bits only if the query accepts that.
func TestScan_rounding(t *testing.T) {
	s := encoding.DefaultSchema()
	s.SaltWidth, s.SaltBuckets = 1, 4
	m := &operatortest.Store{}
	for i, value := range []float64{0.1, 1e16, -1e16, 0.3, 7e15, -0.7, 1e-3, 5e15} {
		m.Load(s, operatortest.UID(9), operatortest.Series{
			Tags: []encoding.TagPair{operatortest.Tag(1, i+1)},
			Points: operatortest.Every(alignedBase, alignedBase+2*3600, 60,
				func(int) float64 { return value }),
		})
	}
	p := operatortest.Plan(s, operatortest.UID(9), alignedBase, alignedBase+2*3600)
	p.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
	scan := &scan{exec: overFlight(t, m, s)}
	for how, want := range map[dispatch.Aggregation]error{
		dispatch.PartialAggregation: nil,
		dispatch.Auto:               merge.ErrOrder,
	} {
		r := &Request{Compiled: &plan.Compiled{Plan: &p}, Query: &query.Query{},
			NewBudget: func() operator.Budget { return nil }}
		merger, stats, err := scan.merged(t.Context(), r, how)
		if err == nil {
			_, err = merger.Finish()
		}
		merger.Free()
		if !errors.Is(err, want) || stats.Partial == 0 {
			t.Errorf("%q: got %v of %d partial parts, want %v", how, err, stats.Partial, want)
		}
	}
}

// A request for another plan has that, and leaves the first as it is.
func TestRequest_With(t *testing.T) {
	first, second := &scanplan.Plan{Table: "first"}, &scanplan.Plan{Table: "second"}
	r := &Request{Compiled: &plan.Compiled{Plan: first}}
	if got := r.WithScan(second); got.Plan != second || r.Plan != first {
		t.Errorf("got the table %q, and before %q, want second and first", got.Plan.Table, r.Plan.Table)
	}
}

// A plan as a whole is executed by the stage that is given for it.
func TestPlanSplit_whole(t *testing.T) {
	executed := 0
	s := newPlanSplit(&Config{}, nil, stageFunc(func() error { executed++; return nil }))
	if _, err := s.whole.Groups(context.Background(), &Request{}); err != nil || executed != 1 {
		t.Errorf("got %v after %d executions, want one", err, executed)
	}
}
