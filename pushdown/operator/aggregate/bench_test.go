package aggregate

import (
	"math"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// benchmarkSeries are members with points each step ms: on one grid, each on a
// grid of its own, or on one grid with a point missing here and there.
func benchmarkSeries(members, points int, step int64, form string) (all []Series) {
	for m := range members {
		var s Series
		for k := range points {
			ms := 1_600_000_000_000 + int64(k)*step
			switch {
			case form == "unaligned":
				ms += int64(m) * 7
			case form == "gaps" && (k*31+m*17)%50 == 0:
				continue
			}
			s.Time = append(s.Time, ms)
			s.Value = append(s.Value, float64((k*m)%1000)/7)
		}
		all = append(all, s)
	}
	return all
}

func BenchmarkGroup(b *testing.B) {
	f := func(name string, function scanplan.Aggregator, all []Series) {
		b.Run(name+"/"+string(function), func(b *testing.B) {
			fn, _ := Lookup(function)
			q := Query{From: 1_599_998_400, To: 1_700_000_000, End: math.MaxInt64}
			values := 0
			for _, s := range all {
				values += len(s.Time)
			}
			var g Group
			var out encoding.Points
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				if err := g.Aggregate(fn, q, all, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(values), "ns/point")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(all)*out.Len()),
				"ns/contribution")
		})
	}
	buckets := benchmarkSeries(1000, 73, 300_000, "grid")
	gaps := benchmarkSeries(1000, 73, 300_000, "gaps")
	raw := benchmarkSeries(1000, 2160, 10_000, "grid")
	unaligned := benchmarkSeries(100, 500, 10_000, "unaligned")
	for _, function := range []scanplan.Aggregator{"sum", "avg", "max", "count", "dev", "p95", "median"} {
		f("1000x73", function, buckets)
		f("1000x73 gaps", function, gaps)
		f("1000x2160", function, raw)
		f("100x500 unaligned", function, unaligned)
	}
}
