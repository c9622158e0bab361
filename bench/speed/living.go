package speed

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/integration/e2e"
)

// livingStep is the seconds between two points of the older hours.
const livingStep = 60

// Written while the panel is asked for: points of as many metrics a second, the panel's own
// among them.
const (
	livingMetrics   = 5
	livingPerSecond = 5_000
	// livingNew is how many series of a compacted panel are written to.
	livingNew = 10
)

// livingEvery is the time between two asks of the panel.
const livingEvery = 10 * time.Second

// provenAfter bounds how long it takes until the older hours come from memory: rows that
// were written to in the last 5.5 minutes are not proven by timestamps.
const provenAfter = 12 * time.Minute

// livingCompacted measures a panel over many days that end now, asked for again and again while
// other metrics of its table are written to: its open hour is compacted, as the others are. A
// gateway proves by timestamps that the older hours have not changed, another one by the proof
// that is the default.
func livingCompacted(ctx context.Context, s *stage, g group) error {
	d := s.livingData(g, 1)
	if err := s.useWritten(ctx, g, d, byTimestamps); err != nil {
		return err
	}
	if err := peer.Agree(ctx, s.set.tsd, s.set.ours, d.Whole("sum:5m-avg:%s")); err != nil {
		return err
	}

	// The panel gets new series: were nothing of its answer to change, all of it would come from
	// memory.
	written := d
	written.Hosts += livingNew
	wanted := func(series int) bool {
		own := series%livingMetrics == 0
		isNew := series/livingMetrics >= d.Hosts
		return own == isNew
	}
	return whileWriting(ctx, func(ctx context.Context) error { return s.keepWriting(ctx, written, wanted) }, func(ctx context.Context) error {
		if g.has("living") {
			figures, err := s.livingByTimestamps(ctx, g, d, "its open hour is compacted", livingUntilNow(d))
			if err != nil {
				return err
			}
			s.aim(faster("living", g, figures.what, 100, figures.ours, figures.theirs, "OpenTSDB, same tables"))
			s.aim(report.Aim{Row: "living", Scale: g.scale, What: "the same", Want: 25, Unit: "ms", Figure: figures.ours.Name,
				Got: report.Ratio{Median: float64(figures.ours.Median()) / float64(time.Millisecond)}})
		}
		if g.has("living-exact") {
			return s.livingExact(ctx, g, d)
		}
		return nil
	})
}

// livingCells measures the same panel while its own series are written to as well, so that its
// open hour has a cell a point.
func livingCells(ctx context.Context, s *stage, g group) error {
	d := s.livingData(g, 0)
	if err := s.useWritten(ctx, g, d, byTimestamps); err != nil {
		return err
	}
	if err := peer.Agree(ctx, s.set.tsd, s.set.ours, d.Whole("sum:5m-avg:%s")); err != nil {
		return err
	}

	return whileWriting(ctx, func(ctx context.Context) error { return s.keepWriting(ctx, d, nil) }, func(ctx context.Context) error {
		figures, err := s.livingByTimestamps(ctx, g, d, "its open hour has a cell a point", livingUntilNow(d))
		if err != nil {
			return err
		}
		s.aim(faster("living-cells", g, figures.what, 2, figures.ours, figures.theirs, "OpenTSDB, same tables"))
		return nil
	})
}

// byTimestamps are the settings of a gateway that proves by timestamps.
var byTimestamps = map[string]string{"DOWNPOUR_RESULT_CACHE_PROOF": "timestamps"}

// livingData returns the hours that are over, and so many more.
func (s *stage) livingData(g group, more int) workload.Devops {
	d := s.cfg.dataAt(g.scale)
	d.MetricCount, d.Step, d.Hours = 1, livingStep, 24*s.cfg.LivingDays+more
	now := time.Now().Unix()
	d.Start = now - now%encoding.RowSeconds - int64(24*s.cfg.LivingDays)*encoding.RowSeconds
	return d
}

// livingUntilNow returns the panel up to now.
func livingUntilNow(d workload.Devops) func() workload.Query {
	return func() workload.Query {
		return workload.Query{Start: d.Start, End: time.Now().Unix(), M: "sum:5m-avg:" + d.Metric()}
	}
}

// livingAsk asks a server for a panel after a wait, which does not count.
func livingAsk(server *peer.Server, panel func() workload.Query, wait time.Duration) func(context.Context, int) (time.Duration, error) {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		if !bench.Until(ctx, time.Now().Add(wait)) {
			return 0, ctx.Err()
		}
		began := time.Now()
		err := server.Drain(ctx, panel())
		return time.Since(began), err
	}
}

// livingWhat describes the panel.
func (s *stage) livingWhat(d workload.Devops) string {
	return fmt.Sprintf("panel over %d days of %s series, asked every %s, while %s points/s come", s.cfg.LivingDays,
		report.Thousands(float64(d.Hosts)), livingEvery, report.Thousands(livingPerSecond))
}

// besideTSD are the figures of a panel, and what it is.
type besideTSD struct {
	what         string
	ours, theirs report.Figure
}

// livingByTimestamps measures the panel with proof by timestamps, beside OpenTSDB.
func (s *stage) livingByTimestamps(ctx context.Context, g group, d workload.Devops, open string, panel func() workload.Query) (besideTSD, error) {
	s.cfg.Progress.Sayf("waiting until the older hours come from memory")
	if err := s.fromMemory(ctx, s.set.ours, panel); err != nil {
		return besideTSD{}, err
	}

	s.cfg.Progress.Sayf("measuring %s", g)
	what := s.livingWhat(d) + ", " + open + ", proof by timestamps"
	names := [2]string{what + ", OpenTSDB", what + ", Downpour"}
	figures, err := s.measure(ctx, s.set.ours, []bench.Step{
		{Name: names[0], Work: 1, Unit: "queries", Run: livingAsk(s.set.tsd, panel, 0)},
		{Name: names[1], Of: names[0], Work: 1, Unit: "queries", Run: livingAsk(s.set.ours, panel, livingEvery)},
	}, 0, s.cfg.Rounds)
	return besideTSD{what, figures[names[1]], figures[names[0]]}, err
}

// livingExact measures the panel with the default proof beside a gateway without the result
// cache, first in a table of which every region is written to, then with the older hours in a
// region of their own.
func (s *stage) livingExact(ctx context.Context, g group, d workload.Devops) error {
	exact, err := s.another(ctx, nil)
	if err != nil {
		return err
	}
	reads, err := s.another(ctx, map[string]string{"DOWNPOUR_RESULT_CACHE": "off"})
	if err != nil {
		return err
	}
	panel := livingUntilNow(d)
	older := panel()
	older.End = d.Start + int64(24*s.cfg.LivingDays)*encoding.RowSeconds - 1
	if err := peer.Agree(ctx, reads, exact, older); err != nil {
		return err
	}

	beside := func(where string) (ours, theirs report.Figure, err error) {
		s.cfg.Progress.Sayf("measuring %s, %s", g, where)
		what := s.livingWhat(d) + ", " + where
		names := [2]string{what + ", every row read", what + ", Downpour"}
		figures, err := s.measure(ctx, exact, []bench.Step{
			{Name: names[0], Work: 1, Unit: "queries", Run: livingAsk(reads, panel, 0)},
			{Name: names[1], Of: names[0], Work: 1, Unit: "queries", Run: livingAsk(exact, panel, livingEvery)},
		}, 1, s.cfg.Rounds)
		return figures[names[1]], figures[names[0]], err
	}

	ours, theirs, err := beside("the region is written to")
	if err != nil {
		return err
	}
	// Of two that do the same, one is slower by chance.
	s.aim(within("living-exact", g, s.livingWhat(d)+", the region is written to", 1.1, ours, theirs, "every row read"))

	// Behind the last full hour: the rows of the panel's metric come first in the table.
	now := time.Now().Unix()
	sealed := now - now%encoding.RowSeconds
	metric, err := s.metricUID(ctx, d)
	if err != nil {
		return err
	}
	schema := encoding.DefaultSchema()
	if err := s.hbase.Admin.Split(ctx, s.set.tables.Data, schema.AppendRowKey(nil, metric, uint32(sealed), nil)); err != nil {
		return err
	}
	s.cfg.Progress.Sayf("waiting until the older hours come from memory")
	if err := s.fromMemory(ctx, exact, panel); err != nil {
		return err
	}
	if err := peer.Agree(ctx, reads, exact, older); err != nil {
		return err
	}
	if ours, theirs, err = beside("older hours in a region that rests"); err != nil {
		return err
	}
	s.aim(faster("living-exact", g, s.livingWhat(d)+", older hours in a region that rests", 5, ours, theirs, "every row read"))
	return nil
}

// metricUID returns the UID of the panel's metric.
func (s *stage) metricUID(ctx context.Context, d workload.Devops) (encoding.UID, error) {
	names := uid.New(uid.Config{Store: s.store, Table: s.set.tables.UID, Schema: encoding.DefaultSchema()})
	return names.Resolve(ctx, encoding.UIDMetric, d.Metric())
}

// useLoaded loads a data set into new tables, in one file a region.
func (s *stage) useLoaded(ctx context.Context, g group, d workload.Devops, form write.Form) (err error) {
	s.set = tableSet{form: g.form, scale: g.scale, data: d}
	if s.set.tables, err = s.newTables(ctx); err != nil {
		return err
	}

	s.cfg.Progress.Sayf("loading %s", d)
	_, err = load(ctx, s.store, s.hbase, s.set.tables, d, form)
	return err
}

// useWritten loads hours that are over, compacted, and starts servers over them. The gateway
// has the settings that users have, and env.
func (s *stage) useWritten(ctx context.Context, g group, d workload.Devops, env map[string]string) (err error) {
	return s.useWrittenAs(ctx, g, d, write.MultiPoint, env)
}

// useWrittenAs is useWritten of rows in a form.
func (s *stage) useWrittenAs(ctx context.Context, g group, d workload.Devops, form write.Form, env map[string]string) (err error) {
	if err := s.useLoaded(ctx, g, d, form); err != nil {
		return err
	}

	o := peer.Options{Quorum: s.hbase.Quorum(), Tables: s.set.tables, Env: env}
	if s.set.ours, err = s.started(peer.StartDownpour(ctx, o)); err != nil {
		return err
	}
	s.set.tsd, err = s.started(peer.StartOpenTSDB(ctx, o))
	return err
}

// another starts another gateway over the tables of the set, with settings of its own.
func (s *stage) another(ctx context.Context, env map[string]string) (*peer.Server, error) {
	server, err := peer.StartDownpour(ctx, peer.Options{Quorum: s.hbase.Quorum(), Tables: s.set.tables, Env: env})
	if err == nil {
		s.set.others = append(s.set.others, server)
	}
	return server, err
}

// keepWriting puts points of now, of the series that are wanted, until ctx ends.
func (s *stage) keepWriting(ctx context.Context, d workload.Devops, wanted func(series int) bool) error {
	d.MetricCount, d.Step, d.Hours = livingMetrics, 1, 24
	d.Start = time.Now().Unix()
	c := bench.SendConfig{Server: s.set.ours, Data: d, Format: workload.Telnet, Connections: 1, Wanted: wanted}
	_, err := c.Send(ctx, c.Stream().Paced(ctx, livingPerSecond))
	return err
}

// cacheSaid is what a trace says of the result cache.
var cacheSaid = regexp.MustCompile(`"resultCache":"(?:[^"\\]|\\.)*"`)

// fromMemory asks a gateway for a panel until its older hours come from memory.
func (s *stage) fromMemory(ctx context.Context, server *peer.Server, panel func() workload.Query) error {
	ctx, cancel := context.WithTimeout(ctx, provenAfter)
	defer cancel()
	return e2e.Until(ctx, time.Second, func(ctx context.Context) error {
		q := panel()
		traced := workload.Query{Path: q.String() + "&trace=true"}
		answer, err := server.Ask(ctx, traced)
		if err != nil {
			return err
		}
		if !bytes.Contains(answer, []byte("older hours from memory")) {
			return fmt.Errorf("the older hours are still read; the trace says %q", cacheSaid.FindAll(answer, 4))
		}
		return nil
	})
}
