package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator/operatortest"
)

// A plan whose groups had one series each is executed per series the next time, with the same
// answer; one with more series in a group is not, and neither is the same plan by other tags. A
// raw plan over a pushdown server is aligned, or executed again per series.
func TestExecutePlan_smallGroups(t *testing.T) {
	s := encoding.DefaultSchema()
	m := &operatortest.Store{}
	for i := range 6 {
		m.Load(s, operatortest.UID(9), operatortest.Series{
			Tags:   []encoding.TagPair{operatortest.Tag(1, i+1), operatortest.Tag(2, 1+i%3)},
			Points: operatortest.Every(alignedBase, alignedBase+2*3600, 60, func(k int) float64 { return float64(i*k) / 7 }),
		})
	}
	e := New(Config{Exec: overFlight(t, m, s)})
	ask := func(groupBy int, d *scanplan.Downsample, wantPartial bool) []merge.Group {
		t.Helper()
		p := operatortest.Plan(s, operatortest.UID(9), alignedBase, alignedBase+2*3600)
		p.GroupBy, p.Downsample = []encoding.UID{operatortest.UID(groupBy)}, d
		groups, stats, err := e.executePlan(t.Context(), &query.Query{}, subPlan{Compiled: &plan.Compiled{Plan: &p}}, nil)
		if err != nil || stats.Remote == 0 || (stats.Partial > 0) != wantPartial {
			t.Errorf("by tag %d: %v, %+v; want partial %t", groupBy, err, stats, wantPartial)
		}
		return groups
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
	if e.refused.count(&p, e.cfg.Now()) == 0 {
		t.Error("the raw plan was not refused: the test does not try what it should")
	}
}

// A plan whose groups have one series each is executed per series the second time, also where its
// hours could be read side by side; one with larger groups is not. The answers are the same.
func TestSmallGroups_inProcess(t *testing.T) {
	b := newBoard(t, rand.New(rand.NewPCG(7, 7)), embedded(t)) // without salt
	for range 200 {
		b.putAt(boardHours - 2) // every series has points
	}
	cfg := b.caching.cfg
	cfg.Exec = dispatch.New(dispatch.Config{Store: b.store, SideBySide: true})
	b.caching = New(cfg)

	for tags, partly := range map[string][]bool{
		`{"host":"*","dc":"*"}`: {true, false, false}, // 6 series, 6 groups
		`{"host":"*"}`:          {true, true, true},   // 3 groups
	} {
		q, err := query.ParseJSON(fmt.Appendf(nil, `{"start":%d,"end":%d,"queries":[{"metric":"m","aggregator":"sum","downsample":"5m-avg","tags":%s}]}`,
			hourZero, hourZero+boardHours*3600-1, tags), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range partly {
			_, stats, err := b.caching.Run(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if got := stats.Partial > 0; got != want {
				t.Errorf("%s, time %d: by partial aggregates: %t, want %t", tags, i+1, got, want)
			}
		}
		b.ask(q)
	}
}
