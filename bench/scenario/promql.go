package scenario

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"time"

	"downpour/bench"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/extra/prometheus/promql"
	"downpour/gateway/query/engine"
)

// promStep is the step of queries in PromQL, in s.
const promStep = 60

// ratesByDC adds up rates, as most panels of Prometheus' dashboards do.
const ratesByDC = `sum by (dc) (rate({__name__="%s"}[5m]))`

// promQL asks for all of the data set in PromQL; the text has %s for the metric. The first window is whole.
func promQL(text string) func(t *set) workload.Query {
	return func(t *set) workload.Query {
		d := t.data
		return workload.Query{Start: d.Start + bucket, End: d.End() - bucket, Step: promStep,
			PromQL: fmt.Sprintf(text, d.Metric())}
	}
}

// onePromQL asks for one host in PromQL, another one each round.
func onePromQL(s *stage, i int) []workload.Query {
	host := workload.HostName((i*389 + 17) % s.set.data.Hosts)
	return []workload.Query{promQL(`avg_over_time({__name__="%s",host="` + host + `"}[5m])`)(s.set)}
}

// promEngine is the floor that evaluates ratesByDC by Prometheus' engine over the points of the data set in memory.
const promEngine = "Prometheus' engine"

// promRounds is how many queries are made ahead, more than a row has rounds.
const promRounds = 100

func promInMemory(s *stage, prefix string) bench.Step {
	t := s.set
	src, of := pointsInMemory(t.data), bench.Varied(promQL(ratesByDC)(t), promRounds, hour, bucket, s.cfg.Data.Seed)
	e := promql.NewOverPoints(time.Minute, math.MaxInt32, slog.New(slog.DiscardHandler))
	return bench.Step{
		Name: prefix + promEngine, Work: int64(t.data.Points()), Unit: "points",
		Run: bench.Timed(func(ctx context.Context, round int) error {
			q := of(round)[0]
			times := promql.Times{Start: time.Unix(q.Start, 0), End: time.Unix(q.End, 0), Step: promStep * time.Second}
			result, err := e.Query(ctx, src, q.PromQL, times)
			if err != nil {
				return err
			}
			defer result.Close()
			if series, _ := result.Series(); series == 0 {
				return fmt.Errorf("got no series")
			}
			return nil
		}),
	}
}

// memorySource is a data set of one metric in memory.
type memorySource []engine.Result

func pointsInMemory(d workload.Devops) memorySource {
	all := make(memorySource, d.Hosts)
	for i := range all {
		all[i].Metric = d.Metric()
		for _, tag := range d.Host(i) {
			all[i].Tags = append(all[i].Tags, engine.Tag{K: tag.K, V: tag.V})
		}
	}
	for h := range d.Hourly() {
		if h.Metric.Name != d.Metric() {
			continue
		}
		for i, v := range h.Values {
			all[h.Host].Points.Append((h.Base+int64(i*d.Step))*1000,
				encoding.FloatValue(float64(v)/math.Pow10(h.Metric.Decimals)))
		}
	}
	return all
}

// Metrics returns the only one.
func (m memorySource) Metrics(context.Context, string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield(m[0].Metric, nil) }
}

// KnownMetric reports whether a metric is the only one.
func (m memorySource) KnownMetric(_ context.Context, name string) (bool, error) {
	return name == m[0].Metric, nil
}

// TagValues returns none: the questions have no regular expressions.
func (m memorySource) TagValues(context.Context, string, int) ([]string, bool, error) {
	return nil, false, nil
}

// KnownTagValues returns all.
func (m memorySource) KnownTagValues(_ context.Context, names []string) ([]string, error) {
	return names, nil
}

// Read returns all series. What reads them changes the list.
func (m memorySource) Read(context.Context, promql.Read) ([]engine.Result, error) {
	return slices.Clone([]engine.Result(m)), nil
}
