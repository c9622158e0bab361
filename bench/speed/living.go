package speed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
)

// livingEvery is the time between two asks of the panel.
const livingEvery = 10 * time.Second

// provenAfter bounds how long it takes until the older hours come from memory: rows that
// were written to in the last 5.5 minutes are not proven by timestamps.
const provenAfter = 12 * time.Minute

// livingPanel measures a panel over many days that end now, asked for again and again while
// its table is written to. The gateway proves by timestamps that the older hours have not
// changed.
func livingPanel(ctx context.Context, s *stage, g group) (err error) {
	d := s.cfg.dataAt(g.scale)
	d.MetricCount, d.Step, d.Hours = 1, livingStep, 24*s.cfg.LivingDays
	now := time.Now().Unix()
	d.Start = now - now%encoding.RowSeconds - int64(d.Hours)*encoding.RowSeconds
	if err := s.useLiving(ctx, g, d); err != nil {
		return err
	}
	if err := peer.Agree(ctx, s.set.tsd, s.set.ours, d.Whole("sum:5m-avg:%s")); err != nil {
		return err
	}

	// The writer goes on until the row ends.
	writing, stop := context.WithCancel(ctx)
	written := make(chan error, 1)
	go func() { written <- s.keepWriting(writing, d) }()
	defer func() {
		select {
		case early := <-written:
			err = errors.Join(err, fmt.Errorf("points put meanwhile ended early: %w", early))
		default:
			stop()
			<-written // an error now is that of a connection that was closed
		}
	}()

	s.cfg.Progress.Sayf("waiting until the older hours come from memory")
	panel := func() workload.Query {
		return workload.Query{Start: d.Start, End: time.Now().Unix(), M: "sum:5m-avg:" + d.Metric()}
	}
	if err := s.fromMemory(ctx, panel); err != nil {
		return err
	}

	s.cfg.Progress.Sayf("measuring %s", g)
	ask := func(server *peer.Server, wait time.Duration) func(context.Context, int) (time.Duration, error) {
		return func(ctx context.Context, _ int) (time.Duration, error) {
			if !bench.Until(ctx, time.Now().Add(wait)) {
				return 0, ctx.Err()
			}
			began := time.Now()
			err := server.Drain(ctx, panel())
			return time.Since(began), err
		}
	}
	what := fmt.Sprintf("panel over %d days of %s series, asked every %s, while %s points/s come, proof by timestamps", s.cfg.LivingDays,
		report.Thousands(float64(d.Hosts)), livingEvery, report.Thousands(livingPerSecond))
	names := [2]string{what + ", OpenTSDB", what + ", Downpour"}
	figures, err := s.measure(ctx, s.set.ours, []bench.Step{
		{Name: names[0], Work: 1, Unit: "queries", Run: ask(s.set.tsd, 0)},
		{Name: names[1], Of: names[0], Work: 1, Unit: "queries", Run: ask(s.set.ours, livingEvery)},
	}, 0, s.cfg.Rounds)
	if err != nil {
		return err
	}
	s.aim(faster("living", g, what, 100, figures[names[1]], figures[names[0]], "OpenTSDB, same tables"))
	return nil
}

// useLiving loads the older hours, compacted, and starts servers over them. The gateway has
// the settings that users have, but for the proof.
func (s *stage) useLiving(ctx context.Context, g group, d workload.Devops) (err error) {
	s.set = tableSet{form: g.form, scale: g.scale, data: d}
	if s.set.tables, err = s.newTables(ctx); err != nil {
		return err
	}

	s.cfg.Progress.Sayf("loading %s", d)
	schema := encoding.DefaultSchema()
	target := bench.Target{Store: s.store, Schema: schema, Table: s.set.tables.Data, Form: write.MultiPoint,
		Names: uid.Staged{Dictionary: uid.New(uid.Config{Store: s.store, Table: s.set.tables.UID, Schema: schema})}}
	if _, err := target.Load(ctx, d, nil); err != nil {
		return err
	}
	if err := s.hbase.Admin.Compact(ctx, s.set.tables.Data); err != nil {
		return err
	}

	o := peer.Options{Quorum: s.hbase.Quorum(), Tables: s.set.tables, Env: map[string]string{"DOWNPOUR_RESULT_CACHE_PROOF": "timestamps"}}
	if s.set.ours, err = s.started(peer.StartDownpour(ctx, o)); err != nil {
		return err
	}
	s.set.tsd, err = s.started(peer.StartOpenTSDB(ctx, o))
	return err
}

// keepWriting puts points of now, until ctx ends.
func (s *stage) keepWriting(ctx context.Context, d workload.Devops) error {
	d.MetricCount, d.Step, d.Hours = livingMetrics, 1, 24
	d.Start = time.Now().Unix()
	c := bench.SendConfig{Server: s.set.ours, Data: d, Format: workload.Telnet, Connections: 1}
	_, err := c.Send(ctx, c.Stream().Paced(ctx, livingPerSecond))
	return err
}

// fromMemory asks for a panel until its older hours come from memory.
func (s *stage) fromMemory(ctx context.Context, panel func() workload.Query) error {
	ctx, cancel := context.WithTimeout(ctx, provenAfter)
	defer cancel()
	return e2e.Until(ctx, time.Second, func(ctx context.Context) error {
		q := panel()
		traced := workload.Query{Path: q.String() + "&trace=true"}
		answer, err := s.set.ours.Ask(ctx, traced)
		if err != nil {
			return err
		}
		if !bytes.Contains(answer, []byte("older hours from memory")) {
			return errors.New("the older hours are still read")
		}
		return nil
	})
}
