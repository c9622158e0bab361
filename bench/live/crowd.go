package live

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/bench"
	"downpour/bench/report"
)

// crowd is the sockets of a measurement. Those that read begin to when they have
// joined: one that answers no ping while the others join would be ended.
type crowd struct {
	FramesConfig
	rounds       *rounds
	sockets      []*socket
	readers      []*reader // by socket; nil for those that are not measured
	reading      errgroup.Group
	slow         errgroup.Group
	slowComplete atomic.Int64    // slow ones that have had everything
	ctx          context.Context // of all; an error of one ends it
	cancel       context.CancelCauseFunc
}

// reader takes the frames of one socket.
type reader struct {
	socket            *socket
	shown             int // rounds, with the one before the first
	response, service *report.Histogram
}

func newCrowd(ctx context.Context, c FramesConfig, r *rounds) *crowd {
	all := &crowd{FramesConfig: c, rounds: r, sockets: make([]*socket, c.Sockets), readers: make([]*reader, c.Sockets)}
	all.ctx, all.cancel = context.WithCancelCause(ctx)
	return all
}

// run calls do on a goroutine of a group. An error of do ends all sockets, and is what
// the others return.
func (c *crowd) run(in *errgroup.Group, do func() error) {
	in.Go(func() error {
		err := do()
		if err != nil {
			c.cancel(err) // which is the error of all
		}
		return context.Cause(c.ctx)
	})
}

// close ends all sockets and waits for their readers.
func (c *crowd) close() {
	c.cancel(nil)
	client.CloseIdleConnections()
	for _, s := range c.sockets {
		if s != nil { // nil are those that join did not open after an error
			s.close()
		}
	}
	c.reading.Wait()
	c.slow.Wait()
}

// join opens all sockets. Once it returns, those that are measured have had their
// snapshot.
func (c *crowd) join() error {
	work, ctx := errgroup.WithContext(c.ctx)
	work.SetLimit(8)
	for i := range c.sockets {
		work.Go(func() error {
			err := ctx.Err()
			if err == nil {
				err = c.enter(i)
			}
			if err != nil {
				err = fmt.Errorf("socket %d: %w", i, err)
			}
			return err
		})
	}
	return work.Wait()
}

// stalledQueries is how often a stalled socket asks for the long series.
const stalledQueries = 8

// enter opens a socket, asks what its kind asks, and begins to read.
func (c *crowd) enter(i int) (err error) {
	k := c.kindOf(i)
	s, err := dial(c.ctx, c.Server, i, k)
	if err != nil {
		return err
	}
	c.sockets[i] = s
	if err := s.subscribe(0, planQuery(i%c.Plans)); err != nil {
		return err
	}

	// A half-open socket asks no more. Nobody reads it or a stalled one, and so no ping that
	// comes to them is answered.
	switch k {
	case stalled:
		for n := range stalledQueries {
			if err := s.subscribe(1+n, longQuery); err != nil {
				return err
			}
		}
	case slow:
		c.run(&c.slow, func() error { return c.readSlowly(s) })
		return s.subscribe(1, longQuery)
	case reading:
		if err := s.receiveFrom(1, "snapshot"); err != nil {
			return err
		}
		// The snapshot has shown the round that was put before anybody asked.
		one := &reader{socket: s, shown: 1, response: report.NewHistogram(), service: report.NewHistogram()}
		c.readers[i] = one
		c.run(&c.reading, func() error { return c.readUntilShown(one) })
	}

	return nil
}

// measure puts the rounds, and returns when every reader has shown the last.
func (c *crowd) measure() error {
	c.run(&c.reading, c.putRounds)
	return c.reading.Wait()
}

// latency is that of all readers together.
func (c *crowd) latency() report.Latency {
	response, service := report.NewHistogram(), report.NewHistogram()
	for _, one := range c.readers {
		if one != nil {
			response.Merge(one.response)
			service.Merge(one.service)
		}
	}

	loop := "closed"
	if c.Every > 0 {
		loop = fmt.Sprintf("open, a put every %s", c.Every)
	}
	return report.NewLatency(c.Name, loop, response, service, 0)
}

// putRounds puts the rounds: each when it is due, or, without Every, once all readers
// have shown the last one.
func (c *crowd) putRounds() error {
	begin := time.Now()
	for i := range c.Puts {
		due := time.Now()
		if c.Every > 0 {
			due = begin.Add(time.Duration(i) * c.Every)
		}
		if !bench.Until(c.ctx, due) {
			return c.ctx.Err()
		}

		if err := c.rounds.put(c.ctx, due); err != nil {
			return err
		}
		c.Progress.Add(1)
		// The next one is due by the clock, whoever has shown this one.
		if c.Every > 0 {
			continue
		}

		select {
		case <-c.ctx.Done():
			return c.ctx.Err()
		case <-c.rounds.shownByAll:
		}
	}

	return nil
}

// readUntilShown takes frames until the socket has shown the last round, and records for
// each round how long that took.
func (c *crowd) readUntilShown(one *reader) error {
	// Rounds 1 to Puts follow round 0, which was put before the sockets joined.
	for one.shown <= c.Puts {
		m, err := one.socket.receive()
		if err != nil {
			return fmt.Errorf("put %d of %d is not shown: %w", one.shown, c.Puts, err)
		}
		now := time.Now()
		m.values(func(v int64) {
			one.shown = c.rounds.see(v, one.shown, now, func(due, sent time.Time) {
				one.response.Record(now.Sub(due))
				one.service.Record(now.Sub(sent))
			})
		})
	}
	return nil
}

// readSlowly takes what comes to a slow socket until it has the whole long answer,
// and has shown the last round. One that the server ends is missing from slowComplete,
// which is no error: where this machine has too much to do, it is this program that
// takes nothing for long.
func (c *crowd) readSlowly(s *socket) error {
	last, long := false, false
	for !last || !long {
		m, err := s.receive()
		if err != nil {
			return context.Cause(c.ctx)
		}
		if m.ID == "1" { // the long query, see enter
			long = long || m.Type == "snapshot"
			continue
		}
		m.values(func(v int64) { last = last || v-c.rounds.first == int64(c.Puts) })
	}

	c.slowComplete.Add(1)
	return nil
}

// values calls each with the value of every point of a message that is an integer.
func (m *message) values(each func(v int64)) {
	for _, group := range append(m.Results, m.Upserts...) {
		for _, p := range group.DPS {
			if v, err := strconv.ParseInt(string(p[1]), 10, 64); err == nil {
				each(v)
			}
		}
	}
}
