package changefeed

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/gateway/live"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/pushdown/store"
)

// The data of the benchmarks: so many series over so many hours, with a point every benchStep
// seconds.
const (
	benchSeries = 1000
	benchHours  = 6
	benchStep   = 10
)

// history writes the benchmarks' data up to now: one append for each row or, if w.cells is set, a
// cell for each point.
func (w *world) history(b *testing.B) {
	b.Helper()
	now := w.clock.Unix() / benchStep * benchStep
	for s := range benchSeries {
		rows := map[string]*store.Mutation{}
		var cells, appends []store.Mutation
		for at := now - benchHours*3600; at <= now; at += benchStep {
			m := w.point(at*1000, false, encoding.IntValue((at/10+int64(s))%100), host(s)...)
			if w.cells {
				cells = append(cells, m)
				continue
			}
			if r := rows[string(m.Row)]; r != nil {
				r.Value = append(r.Value, m.Value...)
			} else {
				rows[string(m.Row)] = &m
			}
		}
		for _, m := range rows {
			appends = append(appends, *m)
		}
		w.apply(append(cells, appends...)...)
	}
	if err := w.store.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func host(i int) []string {
	return []string{"host", fmt.Sprintf("h%04d", i), "dc", fmt.Sprintf("d%d", i%20)}
}

// second moves the clock by a second and writes its points: those of every tenth series, in turn.
func (w *world) second() {
	w.clock = w.clock.Add(time.Second)
	now := w.clock.Unix()
	var all []store.Mutation
	for s := int(now % benchStep); s < benchSeries; s += benchStep {
		all = append(all, w.point(now*1000, false, encoding.IntValue(now%100), host(s)...))
	}
	w.apply(all...)
}

// BenchmarkTick compares a tick after 100 new points of 1,000 series with running the query in
// full, which uses all processors: by the clock and by processor time. What it costs to send the
// answer is the same for both.
func BenchmarkTick(b *testing.B) {
	for _, q := range []string{
		`"aggregator":"sum","downsample":"5m-avg"`,
		`"aggregator":"sum","downsample":"10s-avg"`,
		`"aggregator":"avg","downsample":"1m-avg","tags":{"dc":"*"}`,
		`"aggregator":"avg","downsample":"1m-avg","tags":{"host":"*"}`,
		`"aggregator":"sum","rate":true,"downsample":"1m-max-nan"`,
		`"aggregator":"sum"`,
	} {
		body := fmt.Sprintf(`{"start":"%dh-ago","queries":[{"metric":"m",%s}]}`, benchHours, q)
		b.Run("new/"+q, func(b *testing.B) { benchmarkTicks(b, (*world).changes, body) })
		b.Run("again/"+q, func(b *testing.B) { benchmarkTicks(b, (*world).reruns, body) })
	}
}

// changes returns the source of a query that is kept up to date.
func (w *world) changes(body string) live.Source { return w.openSource(body, w.store, Poll{}) }

// reruns returns the source of a query that is run in full each time.
func (w *world) reruns(body string) live.Source { return again{w, body} }

func benchmarkTicks(b *testing.B, open func(w *world, body string) live.Source, body string) {
	w := newWorld(b, false)
	defer w.close()
	w.history(b)
	from := open(w, body)
	defer from.Close()
	if _, err := from.Next(b.Context(), w.clock); err != nil {
		b.Fatal(err)
	}
	var used time.Duration
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		w.second()
		before := processors(b)
		b.StartTimer()
		if _, err := from.Next(b.Context(), w.clock); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		used += processors(b) - before
	}
	b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
}

// processors returns the processor time that the process has used.
func processors(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// again is a source that runs its query in full.
type again struct {
	*world
	body string
}

func (a again) Next(ctx context.Context, now time.Time) (live.Answer, error) {
	q, err := query.Parser{Now: now}.JSON([]byte(a.body))
	if err != nil {
		return live.Answer{}, err
	}
	results, _, err := a.engine.Run(ctx, q, engine.Options{})
	return live.Answer{Results: LiveResults(results)}, err
}

func (again) Changed() <-chan struct{} { return nil }
func (again) Close()                   {}
