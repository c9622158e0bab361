package extra_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	prom "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
)

// BenchmarkPromQL asks for 1,000 series of 6 hours, a point every 10 s, at steps of a minute: a gateway over sealed
// rows, and Prometheus' engine over the same points in memory. It reports the processor time of all threads.
func BenchmarkPromQL(b *testing.B) {
	const hosts, hours, every = 1000, 6, 10
	cfg := config(0)
	cfg.ResultCache = "off"
	g, st := benchGateway(b, cfg)

	var series benchSeries
	for host := range hosts {
		l := labels.FromStrings("__name__", "x_total", "dc", fmt.Sprint("dc", host%27),
			"host", fmt.Sprintf("h%04d", host))
		var points []prom.FPoint
		var body []byte
		value := 0
		for i := range hours * 3600 / every {
			if value += (i*7919 + host*31) % 101; i%700 == host%700 {
				value = 0
			}
			points = append(points, prom.FPoint{T: int64(putFrom+every*i) * 1000, F: float64(value)})
			body = fmt.Appendf(body, `,{"metric":"x_total","timestamp":%d,"value":%d,"tags":{"host":%q,"dc":%q}}`,
				putFrom+every*i, value, l.Get("host"), l.Get("dc"))
		}
		series = append(series, promSeries{l, points})
		benchPut(b, g, body)
	}
	slices.SortFunc(series, func(a, b promSeries) int { return labels.Compare(a.labels, b.labels) })
	if _, err := st.Features().Seal(b.Context(), "tsdb", time.Time{}, time.Now(),
		func(store.SealReport) error { return nil }); err != nil {
		b.Fatal(err)
	}

	engine := newPromPeer().engine
	for _, text := range []string{
		"sum by (dc) (rate(x_total[5m]))", "avg by (dc) (avg_over_time(x_total[5m]))", "sum by (dc) (x_total)",
		"max by (dc) (max_over_time(x_total[5m]))", "max by (dc) (rate(x_total[5m]))", "count(x_total)",
		"quantile by (dc) (0.9, rate(x_total[5m]))", "rate(x_total[5m])",
		`rate(x_total{host="h0007"}[5m])`,
	} {
		start, end, step := time.Unix(putFrom+600, 0), time.Unix(putFrom+hours*3600-1, 0), time.Minute
		b.Run(text+"/gateway", func(b *testing.B) {
			path := fmt.Sprintf("prometheus/api/v1/query_range?start=%d&end=%d&step=60&query=%s", start.Unix(),
				end.Unix(), url.QueryEscape(text))
			processorTime(b, func() {
				if status, body := gatewaytest.Ask(b, http.MethodGet, g.URL()+path, ""); status != http.StatusOK {
					b.Fatalf("got %d %s, want 200", status, body)
				}
			})
		})
		b.Run(text+"/prometheus", func(b *testing.B) {
			processorTime(b, func() {
				q, err := engine.NewRangeQuery(b.Context(), series, nil, text, start, end, step)
				if err != nil {
					b.Fatal(err)
				}
				if r := q.Exec(b.Context()); r.Err != nil {
					b.Fatal(r.Err)
				}
				q.Close()
			})
		})
	}
}

// processorTime runs what is measured, and reports the processor time of the process.
func processorTime(b *testing.B, run func()) {
	b.ReportAllocs()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	run()
	before := used()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64((used()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// benchSeries are series as slices, which cost the engine the least.
type benchSeries []promSeries

func (s benchSeries) Querier(mint, maxt int64) (storage.Querier, error) {
	return benchQuerier{storage.NoopQuerier(), s}, nil
}

type benchQuerier struct {
	storage.Querier
	series benchSeries
}

// Select returns the series that match.
func (q benchQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints,
	matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for i := range q.series {
		s := &q.series[i]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			found = append(found, benchOne{s})
		}
	}
	return &peerSet{found, -1}
}

type benchOne struct{ *promSeries }

func (s benchOne) Labels() labels.Labels { return s.labels }
func (s benchOne) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return &benchIterator{points: s.points, at: -1}
}

type benchIterator struct {
	points []prom.FPoint
	at     int
}

func (it *benchIterator) Next() chunkenc.ValueType {
	if it.at++; it.at >= len(it.points) {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

func (it *benchIterator) Seek(t benchTime) chunkenc.ValueType {
	it.at = max(it.at, 0)
	it.at += sort.Search(len(it.points)-it.at, func(i int) bool { return it.points[it.at+i].T >= t })
	if it.at >= len(it.points) {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

type benchTime = int64

func (it *benchIterator) At() (int64, float64) { return it.points[it.at].T, it.points[it.at].F }
func (it *benchIterator) AtT() int64           { return it.points[it.at].T }
func (it *benchIterator) AtST() int64          { return 0 }
func (it *benchIterator) Err() error           { return nil }

func (it *benchIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return 0, nil
}
func (it *benchIterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return 0, nil
}
