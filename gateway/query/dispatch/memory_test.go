package dispatch

import (
	"errors"
	"testing"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
)

// stepTable holds ten series of four hours, with a point every step seconds.
func stepTable(step int64) (*operatortest.Store, encoding.Schema) {
	m, s := &operatortest.Store{}, encoding.DefaultSchema()
	for i := range 10 {
		m.Load(s, metric, operatortest.Series{
			Tags: []encoding.TagPair{operatortest.Tag(1, i+1)},
			Points: operatortest.Every(base, base+4*3600, step,
				func(j int) float64 { return float64(i) + float64(j%100)/7 }),
		})
	}
	return m, s
}

// within runs and merges a plan with a bound of bytes, 0 for none.
func within(t *testing.T, e *Executor, plan scanplan.Plan, how Aggregation, bytes int64) (Stats, error) {
	t.Helper()
	plan.MaxBytes = bytes
	m := merge.New(&plan, nil)
	m.AllowRounding()
	stats, err := e.Run(t.Context(), &plan, Options{Aggregation: how},
		func(part scanplan.KeyRange, records []batch.Record) error {
			for _, r := range records {
				if err := m.Add(part, r); err != nil {
					return err
				}
			}
			return nil
		})
	if err == nil {
		_, err = m.Finish()
	}
	return stats, err
}

// tooMuch reports whether a query was refused for its memory.
func tooMuch(err error) bool {
	var part *operator.LimitError
	var merged *merge.MemoryError
	return errors.As(err, &part) && (part.What == operator.Memory || part.What == operator.States) ||
		errors.As(err, &merged)
}

// leastBytes is the memory that a plan needs, to a hundredth.
func leastBytes(t *testing.T, e *Executor, plan scanplan.Plan, how Aggregation) int64 {
	t.Helper()
	low, high := int64(0), int64(1<<20) // too little, enough
	for high-low > max(low/100, 1) {
		middle := (low + high) / 2
		switch _, err := within(t, e, plan, how, middle); {
		case err == nil:
			high = middle
		case tooMuch(err):
			low = middle
		default:
			t.Fatal(err)
		}
	}
	return high
}

// The memory that a gateway needs, and the bytes that it is sent, depend on the answer and not on
// the points: with 16 times as many points in the same hours both grow by 5 % at most.
func TestRun_memoryByPoints(t *testing.T) {
	for _, how := range []Aggregation{PerSeries, PartialAggregation} {
		var need, shipped int64
		for _, step := range []int64{48, 12, 3} {
			m, s := stepTable(step)
			plan := operatortest.Plan(s, metric, base, base+4*3600)
			plan.Aggregator = "sum"
			plan.Downsample = &scanplan.Downsample{
				Interval: 300_000,
				Count:    5,
				Unit:     "m",
				Function: "avg",
				Fill:     scanplan.FillNone,
			}
			stats, err := within(t, overFlight(t, m, s), plan, how, 0)
			if err != nil {
				t.Fatal(err)
			}
			if want := 10 * 4 * 3600 / step; stats.Points != want || stats.Remote != stats.Parts {
				t.Fatalf("%s: %d points, %d of %d parts remote, want %d and all", how, stats.Points, stats.Remote,
					stats.Parts, want)
			}
			e := overFlight(t, m, s)
			if _, err := within(t, e, plan, how, 0); err != nil { // later runs know the sizes of hours
				t.Fatal(err)
			}
			least := leastBytes(t, e, plan, how)
			if need == 0 {
				need, shipped = least, stats.ShippedBytes
			}
			if least > need+need/20 || stats.ShippedBytes > shipped+shipped/20 {
				t.Errorf("%s, a point every %d s: needs %d bytes and ships %d, want at most %d and %d, "+
					"as with a point every 48 s",
					how, step, least, stats.ShippedBytes, need, shipped)
			}
		}
		t.Logf("%s: needs %d bytes, ships %d", how, need, shipped)
	}
}
