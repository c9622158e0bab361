package live

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/progress"
	"downpour/bench/report"
)

// FramesConfig says what Frames measures.
type FramesConfig struct {
	Server *peer.Server
	// Sockets are connections of their own, each with one of Plans queries.
	Sockets, Plans int
	// StalledEvery socket, counted from the first, asks for more than it takes
	// and reads nothing; 0 is none.
	StalledEvery int
	// Puts of one point a plan each, one every so often whatever the sockets
	// do; 0 is one as soon as the last has been shown to all.
	Puts     int
	Every    time.Duration
	Name     string // of what is measured, in the report
	Progress *progress.Progress
}

// Validate names the first field that is wrong.
func (c FramesConfig) Validate() error {
	switch {
	case c.Sockets < 1:
		return fmt.Errorf("sockets: got %d, want at least 1", c.Sockets)
	case c.Plans < 1 || c.Plans > c.Sockets:
		return fmt.Errorf("plans: got %d, want 1 to the number of sockets, %d", c.Plans, c.Sockets)
	case c.StalledEvery < 0 || c.StalledEvery == 1:
		return fmt.Errorf("stalled: got every %d, want 0 or at least 2", c.StalledEvery)
	case c.Puts < 1:
		return fmt.Errorf("puts: got %d, want at least 1", c.Puts)
	case c.Every != 0 && c.Every < time.Millisecond:
		return fmt.Errorf("every: got %s, want 0 or at least 1ms", c.Every)
	}
	return nil
}

func (c FramesConfig) stalled(socket int) bool {
	return c.StalledEvery > 0 && socket%c.StalledEvery == 0
}

// readers is how many sockets read.
func (c FramesConfig) readers() (n int) {
	for i := range c.Sockets {
		if !c.stalled(i) {
			n++
		}
	}
	return n
}

// FramesResult is what came of it.
type FramesResult struct {
	// Latency is from put to frame: its response from the moment at which a put
	// was due, its service from when it began.
	Latency report.Latency
	// Frames are the rounds shown, all sockets together, within this time.
	Frames int64
	Took   time.Duration
}

// Frames puts points and measures, at every socket that reads, the time until
// the first frame that shows each. Every one must see the last point, or it is
// an error.
func Frames(ctx context.Context, c FramesConfig) (FramesResult, error) {
	if err := c.Validate(); err != nil {
		return FramesResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.Puts)*max(c.Every, time.Second)+3*time.Minute)
	defer cancel()
	r := newRounds(c, c.readers())
	if err := r.put(ctx, time.Now()); err != nil { // a metric must exist before anybody asks for it
		return FramesResult{}, err
	}
	if c.StalledEvery > 0 {
		if err := putLong(ctx, c.Server); err != nil {
			return FramesResult{}, err
		}
	}
	sockets := make([]*socket, c.Sockets)
	defer func() {
		client.CloseIdleConnections()
		for _, s := range sockets {
			if s != nil {
				s.close()
			}
		}
	}()
	if err := c.join(ctx, sockets); err != nil {
		return FramesResult{}, err
	}
	return c.measure(ctx, r, sockets)
}

// join opens the sockets; those that read have their snapshot when it returns.
func (c FramesConfig) join(ctx context.Context, sockets []*socket) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(8)
	for i := range sockets {
		work.Go(func() error {
			err := ctx.Err()
			if err == nil {
				sockets[i], err = dial(ctx, c.Server, c.stalled(i))
			}
			if err == nil {
				err = c.ask(ctx, sockets[i], i)
			}
			if err != nil {
				err = fmt.Errorf("socket %d: %w", i, err)
			}
			return err
		})
	}
	return work.Wait()
}

// tooMuch is how often a stalled socket asks for the long series.
const tooMuch = 8

func (c FramesConfig) ask(ctx context.Context, s *socket, i int) error {
	if err := s.subscribe(0, planQuery(i%c.Plans)); err != nil {
		return err
	}
	if !c.stalled(i) {
		return s.receiveFrom(ctx, 1, "snapshot")
	}
	for n := range tooMuch {
		if err := s.subscribe(1+n, fmt.Sprintf(`{"start":"2h-ago","msResolution":true,"queries":[{"metric":%q,"aggregator":"sum"}]}`, longMetric)); err != nil {
			return err
		}
	}
	return nil
}

// The series that stalled sockets ask for, and its points.
const (
	longMetric = "bench.live.long"
	longPoints = 20_000
)

func putLong(ctx context.Context, server *peer.Server) error {
	from := time.Now().Add(-time.Hour).UnixMilli()
	const each = 2000
	for first := 0; first < longPoints; first += each {
		var body bytes.Buffer
		for i := range each {
			fmt.Fprintf(&body, `%c{"metric":%q,"timestamp":%d,"value":%d,"tags":{"writer":"bench"}}`, "[,"[min(i, 1)], longMetric, from+int64(first+i), i)
		}
		body.WriteByte(']')
		if err := putJSON(ctx, server, body.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// reader takes the frames of one socket.
type reader struct {
	socket            *socket
	shown             int // rounds, with the one before the first
	response, service *report.Histogram
}

func (c FramesConfig) measure(ctx context.Context, r *rounds, sockets []*socket) (FramesResult, error) {
	var readers []*reader
	work, ctx := errgroup.WithContext(ctx)
	for i, s := range sockets {
		if c.stalled(i) {
			continue
		}
		one := &reader{socket: s, shown: 1, response: report.NewHistogram(), service: report.NewHistogram()}
		readers = append(readers, one)
		work.Go(func() error { return one.watch(ctx, r, c.Puts) })
	}
	began := time.Now()
	work.Go(func() error { return c.write(ctx, r) })
	if err := work.Wait(); err != nil {
		return FramesResult{}, err
	}
	result := FramesResult{Frames: int64(len(readers)) * int64(c.Puts), Took: time.Since(began)}
	response, service := report.NewHistogram(), report.NewHistogram()
	for _, one := range readers {
		response.Merge(one.response)
		service.Merge(one.service)
	}
	loop := "closed"
	if c.Every > 0 {
		loop = fmt.Sprintf("open, a put every %s", c.Every)
	}
	result.Latency = report.NewLatency(c.Name, loop, response, service, 0)
	return result, nil
}

// write puts the rounds when they are due.
func (c FramesConfig) write(ctx context.Context, r *rounds) error {
	begin := time.Now()
	for i := range c.Puts {
		due := time.Now()
		if c.Every > 0 {
			due = begin.Add(time.Duration(i) * c.Every)
		}
		if !bench.Until(ctx, due) {
			return ctx.Err()
		}
		if err := r.put(ctx, due); err != nil {
			return err
		}
		c.Progress.Add(1)
		if c.Every > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.whole:
		}
	}
	return nil
}

// watch takes frames until the last round is shown.
func (one *reader) watch(ctx context.Context, r *rounds, puts int) error {
	for one.shown <= puts {
		m, err := one.socket.receive(ctx)
		if err != nil {
			return fmt.Errorf("put %d of %d is not shown: %w", one.shown, puts, err)
		}
		now := time.Now()
		for _, group := range append(m.Results, m.Upserts...) {
			for _, p := range group.DPS {
				if v, err := strconv.ParseInt(string(p[1]), 10, 64); err == nil {
					one.shown = r.see(v, one.shown, now, func(due, sent time.Time) {
						one.response.Record(now.Sub(due))
						one.service.Record(now.Sub(sent))
					})
				}
			}
		}
	}
	return nil
}
