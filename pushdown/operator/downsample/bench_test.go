package downsample

import (
	"testing"

	"downpour/encoding/scanplan"
)

// BenchmarkBucketer downsamples 6 h of points every 10 s, an hour at a time.
func BenchmarkBucketer(b *testing.B) {
	const points, hour = 2160, 360
	var times []int64
	var values []float64
	for i := range points {
		times = append(times, 1_600_000_000_000+int64(i)*10_000)
		values = append(values, float64(i%97))
	}
	for _, function := range []scanplan.Aggregator{"avg", "sum", "min", "count", "last", "dev", "p95"} {
		for name, interval := range map[string]int64{"10s": 10_000, "1m": 60_000, "5m": 300_000} {
			b.Run(string(function)+"/"+name, func(b *testing.B) {
				bucketer, err := New(&scanplan.Downsample{Interval: interval, Function: function}, 1_599_998_400,
					1_600_023_600, 0, 0)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					bucketer.Reset()
					for at := 0; at < points; at += hour {
						bucketer.Points(times[at:at+hour], values[at:at+hour])
					}
					bucketer.Finish()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/points, "ns/point")
			})
		}
	}
}
