package merge

import (
	"testing"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
)

// BenchmarkMerge merges 6 hours of 1,000 series into one group: whole 5-minute buckets, or raw
// points every 10 s, in one record or in one for each hour.
func BenchmarkMerge(b *testing.B) {
	f := func(name string, d *scanplan.Downsample, perHour int, records int) {
		b.Run(name, func(b *testing.B) {
			s := encoding.DefaultSchema()
			p := newPlan(s, uid(1), base*1000, (base+6*3600)*1000, d)
			p.Aggregator = "sum"
			recs := benchmarkRecords(s, d != nil, perHour, records)
			b.ReportAllocs()
			for b.Loop() {
				m := New(p, nil)
				for _, r := range recs {
					if err := m.Add(p.Ranges[0], r); err != nil {
						b.Fatal(err)
					}
				}
				if groups, err := m.Finish(); err != nil || len(groups) != 1 {
					b.Fatal(len(groups), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(1000*6*perHour), "ns/point")
		})
	}
	fiveMinutes := &scanplan.Downsample{Interval: 300_000, Function: "avg"}
	f("1000x72 buckets/1 record", fiveMinutes, 12, 1)
	f("1000x72 buckets/6 records", fiveMinutes, 12, 6)
	f("1000x2160 raw/6 records", nil, 360, 6)
}

func benchmarkRecords(s encoding.Schema, buckets bool, perHour, records int) (recs []batch.Record) {
	for r := range records {
		var rows []batch.Series
		for m := range 1000 {
			one := tagged(s, encoding.Points{}, 1, uint64(m+1))
			row := batch.Series{Span: one.span(s)}
			n := 6 * perHour / records
			for k := r * n; k < (r+1)*n; k++ {
				ms := int64(base)*1000 + int64(k)*3_600_000/int64(perHour)
				if buckets {
					row.Time, row.Value = append(row.Time, ms), append(row.Value, float64(k*m%97))
				} else {
					row.Raw.Append(ms, encoding.FloatValue(float64(k*m%97)))
				}
			}
			rows = append(rows, row)
		}
		recs = append(recs, record(rows...))
	}
	return recs
}
