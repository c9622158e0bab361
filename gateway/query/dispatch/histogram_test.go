package dispatch

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/pushdown/operator/operatortest"
)

// However a plan of histograms is cut, also inside hours and buckets, and with either kind of
// aggregation, the answer is that of one part.
func TestCutting_histograms(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 7))
	partial, borders := 0, 0
	for i := range 300 {
		c := randomCutting(rng)
		c.plan.Histograms = &scanplan.Histograms{Codec: 9, Percentiles: []float32{50}, Buckets: true}
		c.plan.Rate, c.plan.Fix, c.plan.Aggregator = nil, 0, "sum"
		if d := c.plan.Downsample; d != nil {
			d.Function, d.Fill = "sum", scanplan.FillNone
		}
		for row := range c.store.Rows {
			r := &c.store.Rows[row]
			h := encoding.NewHistogram([]encoding.HistogramBucket{{
				Lower: float32(rng.IntN(3)),
				Upper: 3,
				Count: int64(rng.IntN(9)),
			}}, 1, 0)
			c.store.Cell(r.Key, encoding.AppendHistogramQualifier(nil, int32(rng.IntN(60))*60_000, false),
				encoding.AppendHistogram([]byte{9}, &h), 1)
		}
		want, err := c.one()
		if err != nil {
			t.Fatalf("seed %d, case %d: %v\n%s", seed, i, err, c.plan.String())
		}
		for _, how := range []Aggregation{PerSeries, Auto} {
			got, stats, err := c.run(t, how, false, false)
			if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); err != nil ||
				diff != "" {
				t.Fatalf("seed %d, case %d, mode %q: %v, want -, got +: %s\n%s", seed, i, how, err, diff,
					c.plan.String())
			}
			partial += stats.Partial
			borders += stats.Parts
		}
	}
	if partial < 100 || borders < 1000 {
		t.Errorf("%d parts, %d of them with sums of groups: too few, want 1000 and 100", borders, partial)
	}
}

// Parts of histograms send the sums of groups, which are partial aggregates, unless the plan or the
// mode excludes it.
func TestChooseAggregation_histograms(t *testing.T) {
	f := func(want bool, how Aggregation, change func(*scanplan.Plan)) {
		t.Helper()
		p := operatortest.Plan(encoding.DefaultSchema(), operatortest.UID(1), 0, 7200)
		p.Histograms = &scanplan.Histograms{}
		change(&p)
		if got := chooseAggregation(&p, how, places{}); got.partial != want || got.reason == "" {
			t.Errorf("%s: %+v, want %t", p.String(), got, want)
		}
	}
	f(true, Auto, func(*scanplan.Plan) {})
	f(true, PartialAggregation,
		func(p *scanplan.Plan) { p.Downsample = &scanplan.Downsample{Interval: 420_000, Function: "sum"} })
	f(true, Auto, func(p *scanplan.Plan) { p.Downsample = &scanplan.Downsample{All: true, Function: "sum"} })
	f(false, PerSeries, func(*scanplan.Plan) {})
	f(false, Auto, func(p *scanplan.Plan) { p.Aggregator = scanplan.None })
	f(false, Auto, func(p *scanplan.Plan) {
		p.Downsample = &scanplan.Downsample{Interval: 3_600_000, Calendar: true, Function: "sum"}
	})
}
