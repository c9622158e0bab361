package extra_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/prometheus/prometheus/prompb"
)

// BenchmarkRemoteWrite sends requests of 1,000 samples, one of each series, ten seconds apart. It reports the processor
// time of all threads.
func BenchmarkRemoteWrite(b *testing.B) {
	g, _ := benchGateway(b, config(0))
	series := make([]prompb.TimeSeries, 1000)
	for i := range series {
		series[i] = rwSeries([]float64{0}, "__name__", "cpu_usage_user", "dc", fmt.Sprint("dc", i%27),
			"hostname", fmt.Sprintf("host_%d", i), "rack", fmt.Sprint(i%100), "service", fmt.Sprint(i%20),
			"team", "NYC")
	}
	bodies := make([]string, 100)
	for at := range bodies {
		for i := range series {
			series[i].Samples[0] = prompb.Sample{Timestamp: rwAt + int64(at)*10_000, Value: float64(i*at%101) / 10}
		}
		bodies[at] = rwPack(series...)
	}
	at := 0
	processorTime(b, func() {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, g.URL()+"prometheus/api/v1/write",
			bytes.NewReader([]byte(bodies[at%len(bodies)])))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Content-Encoding", "snappy")
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != http.StatusNoContent {
			b.Fatalf("got %s, want 204", a.Status)
		}
		at++
	})
}
