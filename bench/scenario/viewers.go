package scenario

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"downpour/bench"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"

	"golang.org/x/sync/errgroup"
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
	"sum:5m-avg:%s", "avg:5m-avg:%s{region=*}", "max:5m-max:%s{dc=*}", "sum:5m-avg:rate:%s{region=*}", "sum:1m-avg:%s{host=HOST}",
}

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

// viewers measures a dashboard that many look at, each with a window that ends now, while a
// great many points are put. They are all put through Downpour: OpenTSDB is spared them. What
// a server cannot answer in time waits, and counts from when it was due.
func viewers(ctx context.Context, s *stage) error {
	if err := s.use(ctx); err != nil {
		return err
	}
	asked := []string{users}
	if s.group.has("viewers-timestamps") {
		asked = append(asked, timestamps)
	}
	agree := func(panels []workload.Query) error {
		for _, q := range panels {
			if err := s.agree(ctx, q, append([]string{tsd}, asked...)...); err != nil {
				return err
			}
		}
		return nil
	}
	s.cfg.Progress.Sayf("comparing answers")
	d := s.set.data
	if err := agree(viewersPanels(d.Start, d.End()-1)); err != nil {
		return err
	}

	var sent atomic.Int64
	err := whileWriting(ctx, func(ctx context.Context) error { return s.writeMuch(ctx, d, &sent) }, func(ctx context.Context) error {
		return s.watch(ctx, asked, &sent)
	})
	if err != nil {
		return err
	}
	// Of the hours that were written to meanwhile as well.
	return agree(viewersPanels(d.Start, time.Now().Unix())[:len(viewedPanels)])
}

// viewedData is the data set up to this hour, of all metrics that the dashboard shows.
func viewedData(c *Config, scale string) workload.Devops {
	d := c.dataAt(scale)
	d.MetricCount = viewedMetrics
	now := time.Now().Unix()
	d.Start = now - now%encoding.RowSeconds - int64(d.Hours)*encoding.RowSeconds
	return d
}

// watch measures the dashboard at our sides, of which the second is the one with proof by
// timestamps, and then at OpenTSDB, whose queue may take minutes to empty.
func (s *stage) watch(ctx context.Context, asked []string, sent *atomic.Int64) error {
	s.cfg.Progress.Sayf("waiting until %d points/s come", s.cfg.ViewersPoints)
	if err := s.caughtUp(ctx, sent); err != nil {
		return err
	}
	window := int64(s.set.data.Hours) * encoding.RowSeconds
	if len(asked) > 1 {
		panel := func(int) []workload.Query {
			now := time.Now().Unix()
			return viewersPanels(now-window, now)
		}
		if err := s.remembered(ctx, timestamps, panel); err != nil {
			return err
		}
	}

	names := map[string]string{users: "Downpour", timestamps: "Downpour, proof by timestamps", tsd: "OpenTSDB"}
	p99 := map[string]report.Figure{}
	panels := len(viewersPanels(0, 0))
	for _, side := range append(slices.Clone(asked), tsd) {
		server, err := s.side(ctx, side)
		if err != nil {
			return err
		}
		name := s.text("{viewers} viewers, ") + names[side]
		s.cfg.Progress.Sayf("%s", name)
		before, began := sent.Load(), time.Now()
		l, err := s.replay(ctx, bench.ReplayConfig{
			Server: server, Queries: endingNow(window), Duration: time.Duration(s.cfg.Seconds) * time.Second,
			Rate: float64(s.cfg.Viewers*panels) / viewersEvery.Seconds(), Burst: panels, Seed: 1,
			Clients: s.cfg.Viewers * viewerConnections, CutOff: time.Duration(4*s.cfg.Seconds) * time.Second, Name: name,
		})
		if err != nil {
			return err
		}
		s.cfg.Report.Note("%s: median %s, p99 %s; %s points/s came meanwhile", name, report.MS(l.At(50)), report.MS(l.At(99)),
			report.Thousands(float64(sent.Load()-before)/time.Since(began).Seconds()))
		p99[side] = report.Figure{Name: s.text("{viewers} viewers, p99, ") + names[side], Runs: []time.Duration{l.At(99)}}
	}

	what := s.text("dashboard of {panels} panels over {hours} h, {viewers} viewers at 10s, while {points/s} points/s come, p99", "{panels}", fmt.Sprint(panels))
	s.judge(faster("viewers", 20, tsd), what, p99[users], p99[tsd])
	if len(asked) > 1 {
		s.judge(faster("viewers-timestamps", 20, tsd), what+", proof by timestamps", p99[timestamps], p99[tsd])
	}
	return nil
}

// endingNow yields the panels again and again, over so many seconds up to when they are asked
// for.
func endingNow(window int64) iter.Seq[workload.Query] {
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
func (s *stage) writeMuch(ctx context.Context, d workload.Devops, sent *atomic.Int64) error {
	now := time.Now().Unix()
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
			c := bench.SendConfig{Server: server, Data: w.data, Format: workload.Telnet, Connections: 1, Sent: sent,
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
// them so fast is measured as it is: a note tells how many came.
func (s *stage) caughtUp(ctx context.Context, sent *atomic.Int64) error {
	const look = 2 * time.Second
	for end := time.Now().Add(catchingUp); time.Now().Before(end); {
		before, began := sent.Load(), time.Now()
		if !bench.Until(ctx, began.Add(look)) {
			return ctx.Err()
		}
		rate := float64(sent.Load()-before) / time.Since(began).Seconds()
		// Faster than due while late points are made up for.
		if due := float64(s.cfg.ViewersPoints); rate > 0.9*due && rate < 1.1*due {
			return nil
		}
	}
	return nil
}
