package scenario

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/bench"
	"downpour/bench/workload"
	"downpour/encoding"
)

// viewersEvery is the time between two refreshes of a viewer's dashboard.
const viewersEvery = 10 * time.Second

// viewerConnections is how many requests of a viewer run at a time: as many as browsers make of
// HTTP/1.1 to a host.
const viewerConnections = 6

// viewedMetrics is of how many metrics the dashboard shows viewedPanels.
const viewedMetrics = 4

// viewedPanels are the panels of a metric, with %s for its name.
var viewedPanels = []string{
	sum, "avg:5m-avg:%s{region=*}", "max:5m-max:%s{dc=*}", "sum:5m-avg:rate:%s{region=*}", "sum:1m-avg:%s{host=HOST}",
}

// viewerPanels is how many panels the dashboard has.
const viewerPanels = 20

// viewersPanels returns the dashboard's panels from start to end.
func viewersPanels(start, end int64) (all []workload.Query) {
	for i, m := range workload.Metrics[:viewedMetrics] {
		for _, text := range viewedPanels {
			text = strings.Replace(text, "HOST", workload.HostName(i), 1)
			all = append(all, workload.Query{Start: start, End: end, M: fmt.Sprintf(text, m.Name)})
		}
	}
	return all
}

// panelsUntil asks for so many panels up to a time.
func panelsUntil(panels int, until func(d workload.Devops) int64) func(*stage) []workload.Query {
	return func(s *stage) []workload.Query { return viewersPanels(s.set.data.Start, until(s.set.data))[:panels] }
}

// viewedData is the data set up to this hour, of all metrics that the dashboard shows.
func viewedData(c *Config, scale string) workload.Devops {
	d := c.dataAt(scale)
	d.MetricCount = viewedMetrics
	now := time.Now().Unix()
	d.Start = now - now%encoding.RowSeconds - int64(d.Hours)*encoding.RowSeconds
	return d
}

// untilEnd is the last second of the data, and untilPresent this one.
func untilEnd(d workload.Devops) int64   { return d.End() - 1 }
func untilPresent(workload.Devops) int64 { return time.Now().Unix() }

// viewersAtOnce is how many requests run at a time.
func viewersAtOnce(c *Config) int { return c.Viewers * viewerConnections }

// viewedRate is that of all viewers together.
func viewedRate(_ context.Context, s *stage) (float64, error) {
	return float64(s.cfg.Viewers*viewerPanels) / viewersEvery.Seconds(), nil
}

// rememberedPanel waits until the older hours of the first panel come from memory.
func rememberedPanel(ctx context.Context, s *stage) error {
	return s.remembered(ctx, proving, func(int) []workload.Query { return workload.Take(1, endingNow(s)) })
}

// endingNow yields the panels again and again, over as many hours as the data set has up to when they are requested.
func endingNow(s *stage) iter.Seq[workload.Query] {
	window := int64(s.set.data.Hours) * encoding.RowSeconds
	return func(yield func(workload.Query) bool) {
		for {
			now := time.Now().Unix()
			for _, q := range viewersPanels(now-window, now) {
				if !yield(q) {
					return
				}
			}
		}
	}
}

// writeMuch puts points of now until ctx ends: those of the dashboard's metrics at the pace of
// the older hours, and others.
func writeMuch(ctx context.Context, s *stage) error {
	d, now := s.set.data, time.Now().Unix()
	d.Start, d.Hours = now, 24
	own := max(d.Series()/d.Step, 1)
	// One point a second each.
	others := workload.Pods{Count: max(s.cfg.ViewersPoints-own, 1), Start: now, Hours: 24, PerHour: 3600, Seed: d.Seed}

	server, err := s.side(ctx, users)
	if err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	for _, w := range []struct {
		data workload.Data
		rate int
	}{{d, own}, {others, others.Count}} {
		work.Go(func() error {
			c := bench.SendConfig{Server: server, Data: w.data, Format: workload.Telnet, Connections: 1, Sent: &s.sent,
				Batch: min(max(w.rate/10, 1), 1000)} // ten times a second, so that counts of a second are right
			_, err := c.Send(ctx, c.Stream().Paced(ctx, w.rate))
			return err
		})
	}
	return work.Wait()
}

// catchingUp bounds how long the writers may take to come to their pace: at first all their
// names are new.
const catchingUp = 2 * time.Minute

// caughtUp waits until the points come as fast as they are due. A machine that cannot take
// them so fast is measured as it is: a note says how many came.
func caughtUp(ctx context.Context, s *stage) error {
	s.cfg.Progress.Sayf("waiting until %d points/s come", s.cfg.ViewersPoints)
	const look = 2 * time.Second
	for end := time.Now().Add(catchingUp); time.Now().Before(end); {
		before, began := s.sent.Load(), time.Now()
		if !bench.Until(ctx, began.Add(look)) {
			return ctx.Err()
		}
		rate := float64(s.sent.Load()-before) / time.Since(began).Seconds()
		// Faster than due while late points are made up for.
		if due := float64(s.cfg.ViewersPoints); rate > 0.9*due && rate < 1.1*due {
			return nil
		}
	}
	return nil
}
