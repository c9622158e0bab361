package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"downpour/bench"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/integration/e2e"
)

// meanwhile are steps that run while something writes.
type meanwhile struct {
	write func(ctx context.Context, s *stage) error
	steps []step
}

func (m meanwhile) run(ctx context.Context, s *stage) error {
	if err := s.use(ctx); err != nil {
		return err
	}
	return whileWriting(ctx, func(ctx context.Context) error { return m.write(ctx, s) },
		func(ctx context.Context) error { return runAll(ctx, s, m.steps) })
}

// whileWriting does work while write goes on, which must not end by itself.
func whileWriting(ctx context.Context, write, work func(context.Context) error) (err error) {
	writing, stop := context.WithCancel(ctx)
	defer stop()
	written := make(chan error, 1)
	go func() { written <- write(writing) }()
	defer func() {
		select {
		case early := <-written:
			err = errors.Join(err, fmt.Errorf("points put meanwhile ended early: %w", early))
		default:
			stop()
			<-written // an error now is that of a connection that was closed
		}
	}()
	return work(ctx)
}

// livingMetrics is of how many metrics points are written, the panel's own among them.
const livingMetrics = 5

// livingNew is how many series of a compacted panel are written to.
const livingNew = 10

// writeOthers writes to other metrics than the panel's, so that its open hour stays compacted, and to new series of its
// own: were nothing of its answer to change, all of it would come from memory.
func writeOthers(ctx context.Context, s *stage) error {
	d := s.set.data
	hosts := d.Hosts
	d.Hosts += livingNew
	return s.write(ctx, d, timestamps, func(series int) bool {
		mine := series%livingMetrics == 0
		isNew := series/livingMetrics >= hosts
		return mine == isNew
	})
}

// writeAll writes to all series through a side.
func writeAll(side string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error { return s.write(ctx, s.set.data, side, nil) }
}

// write puts points of now through a side, of the series that are wanted, until ctx ends.
func (s *stage) write(ctx context.Context, d workload.Devops, through string, wanted func(series int) bool) error {
	server, err := s.side(ctx, through)
	if err != nil {
		return err
	}
	d.MetricCount, d.Step, d.Hours = livingMetrics, 1, 24
	d.Start = time.Now().Unix()
	c := bench.SendConfig{Server: server, Data: d, Format: workload.Telnet, Connections: 1, Wanted: wanted}
	_, err = c.Send(ctx, c.Stream().Paced(ctx, livingPerSecond))
	return err
}

// provenAfter bounds how long it takes until the older hours come from memory: rows that
// were written to in the last 5.5 minutes are not proven by timestamps.
const provenAfter = 12 * time.Minute

// remembered waits until the older hours of a side's panel come from memory.
func remembered(side string) step {
	return do(func(ctx context.Context, s *stage) error { return s.remembered(ctx, side, panel(s, 0)) })
}

// cacheSaid is what a trace says of the result cache.
var cacheSaid = regexp.MustCompile(`"resultCache":"(?:[^"\\]|\\.)*"`)

// remembered asks a side for a panel until its older hours come from memory.
func (s *stage) remembered(ctx context.Context, side string, panel func(round int) []workload.Query) error {
	server, err := s.side(ctx, side)
	if err != nil {
		return err
	}
	s.cfg.Progress.Sayf("waiting until the older hours come from memory")
	ctx, cancel := context.WithTimeout(ctx, provenAfter)
	defer cancel()
	return e2e.Until(ctx, time.Second, func(ctx context.Context) error {
		answer, err := server.Ask(ctx, workload.Query{Path: panel(0)[0].String() + "&trace=true"})
		if err != nil {
			return err
		}
		if !bytes.Contains(answer, []byte("older hours from memory")) {
			return fmt.Errorf("the older hours are still read; the trace says %q", cacheSaid.FindAll(answer, 4))
		}
		return nil
	})
}

// splitBehind splits the table behind the last full hour: the rows of the panel's metric come first in it.
func splitBehind(ctx context.Context, s *stage) error {
	now := time.Now().Unix()
	behind := uint32(now - now%encoding.RowSeconds)
	key := encoding.DefaultSchema().AppendRowKey(nil, s.set.metric, behind, nil)
	return s.maker.HBase.Admin.Split(ctx, s.set.at.Tables.Data, key)
}
