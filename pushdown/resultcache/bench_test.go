package resultcache

import (
	"testing"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// BenchmarkOpen queries 5-minute averages of 200 series, 4 hours, a point every 10 s,
// alternately from memory and by reading, and reports how many times faster memory is:
//
//	go test -run - -bench Open ./pushdown/resultcache
func BenchmarkOpen(b *testing.B) {
	st, err := pebble.Open(b.TempDir(), pebble.Options{Grouping: encoding.DefaultSchema().RowHours()})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	s := encoding.DefaultSchema()
	load(b, st, s)
	part := &scanplan.Part{Plan: operatortest.Plan(s, operatortest.UID(1), base, base+hours*3600)}
	part.Range = part.Plan.Ranges[0]
	part.Plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
	for _, mode := range []scanplan.Mode{scanplan.PerSeries, scanplan.PartialAggregation} {
		b.Run(mode.String(), func(b *testing.B) {
			p := *part
			p.Mode = mode
			versus(b, st, &p)
		})
	}
}

// versus drains the part alternately from memory and from the store.
func versus(b *testing.B, st store.Reader, p *scanplan.Part) {
	cache := New(64<<20, nil)
	drain := func(c *Cache) operator.Stats {
		op, err := Open(c, st, p, operator.Options{})
		if err == nil {
			err = operatortest.Drain(b.Context(), op, func(batch.Record) error { return nil })
		}
		if err != nil {
			b.Fatal(err)
		}
		return op.Stats()
	}
	for range 3 {
		drain(cache)
	}
	var kept, reading clock
	for b.Loop() {
		kept.time(func() {
			if drain(cache).CacheHits != 1 {
				b.Fatal("not answered from memory")
			}
		})
		reading.time(func() { drain(nil) })
	}
	b.ReportMetric(float64(kept.median().Nanoseconds()), "kept-ns")
	b.ReportMetric(float64(reading.median().Nanoseconds()), "read-ns")
	b.ReportMetric(float64(reading.median())/float64(kept.median()), "times")
}
