package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// sink is where imported points go.
type sink interface {
	// assign gives names their UIDs, in this order, as far as that is allowed.
	assign(ctx context.Context, names []listedName) error
	// remark stores what is no point. Refused are the remarks not taken.
	remark(ctx context.Context, all []remark) (refused []refusal, err error)
	// send begins to write the points of some lines. The lines belong to the
	// sink until the result was waited for.
	send(ctx context.Context, lines []linePoint) sending
	close()
}

// sending is a send under way.
type sending interface {
	// wait returns once the points are durable. Refused are lines whose points
	// were not taken, in any order; after an error the fate of all is unknown.
	wait(ctx context.Context) (refused []refusal, err error)
}

// refusal is a line that was not taken, and why.
type refusal struct {
	line int64
	err  error
}

// local writes to the store.
type local struct {
	remarks
	writer *write.Writer
	// last is each series' latest time in ms, where a row must not get a time
	// twice; nil where it may.
	last     map[string]int64
	resolver *write.Resolver
	// stop ends a send at the first refusal.
	stop bool
}

// Points wait for others of their row longer than a client's would: an import
// has many, and each cell that holds several is so much cheaper.
const (
	importWindow = 100 * time.Millisecond
	importBytes  = 4 << 20
	importShards = 4
)

func newLocal(c *call, conn *connection) *local {
	auto := c.Auto
	auto.Metrics = auto.Metrics || c.autoMetric
	l := &local{stop: !c.skipErrors, remarks: remarks{settings: &c.Settings, st: conn.store, names: conn.names, auto: auto,
		series: write.NewSeries(write.SeriesConfig{Schema: c.Schema, Names: uid.Staged{Dictionary: conn.names}, Auto: auto})}}
	if conn.tracker != nil {
		l.flush = conn.tracker.Flush
	}
	cfg := write.Config{Schema: c.Schema, Table: c.Tables.Data, Form: write.Multi, Window: importWindow, WindowBytes: importBytes,
		Shards: importShards, Allowed: c.Allowed, Observer: conn.observer()}
	switch {
	case c.Embedded:
		cfg.Form, cfg.Shards, cfg.WindowBytes = write.Appended, 1, 1<<20
	case c.Appends:
		cfg.Form = write.Appended
	case !c.outOfOrder:
		l.last = map[string]int64{}
	}
	l.writer = write.New(cfg, conn.store, l.series)
	l.resolver = l.writer.Resolver(write.ImportSpelling)
	return l
}

func (l *local) close() { l.writer.Close() }

func (l *local) remark(ctx context.Context, all []remark) ([]refusal, error) {
	return l.remarks.store(ctx, all)
}

// written is a local sending.
type written struct {
	batches []*write.Batch
	refused []refusal
	err     error
}

func (l *local) send(ctx context.Context, lines []linePoint) sending {
	w := new(written)
	for i := range lines {
		b, err := l.add(ctx, &lines[i])
		switch {
		case err == nil:
			if n := len(w.batches); n == 0 || w.batches[n-1] != b {
				w.batches = append(w.batches, b)
			}
		case fatal(ctx, err):
			w.err = fmt.Errorf("line %d: %w", lines[i].number, err)
			return w
		default:
			w.refused = append(w.refused, refusal{lines[i].number, err})
			if l.stop {
				return w
			}
		}
	}
	return w
}

// fatal tells whether an error is not the point's fault.
func fatal(ctx context.Context, err error) bool {
	return write.IsStorage(err) || errors.Is(err, write.ErrClosing) || errors.Is(err, store.ErrLocked) || ctx.Err() != nil
}

// add writes one line's point. A series seen before is found by the line's own
// spelling of it.
func (l *local) add(ctx context.Context, line *linePoint) (*write.Batch, error) {
	s, ok := l.resolver.Find(line.names)
	if !ok {
		p, err := line.point(l.settings)
		if err != nil {
			return nil, err
		}
		if s, err = l.resolver.Resolve(ctx, p.Metric, p.Tags); err != nil {
			return nil, err
		}
	}
	if err := l.inOrder(s, line.time); err != nil {
		return nil, err
	}
	return l.writer.AddTo(ctx, s, &write.Point{Time: line.time, Value: line.value, Narrow: true})
}

// inOrder refuses a time that does not come after the series' last: two
// different values of one time in cells of several points fail every query of
// their hour. Source: IncomingDataPoints.addPointInternal.
func (l *local) inOrder(s *write.SeriesKey, t int64) error {
	if l.last == nil {
		return nil
	}
	if !write.IsMillis(t) {
		t *= 1000
	}
	key := string(s.Metric) + string(s.Tags)
	if last, ok := l.last[key]; ok && t <= last {
		return fmt.Errorf("its time, %d ms, does not come after %d, the last one of its series (-allow-out-of-order takes it)", t, last)
	}
	l.last[key] = t
	return nil
}

func (w *written) wait(ctx context.Context) ([]refusal, error) {
	for _, b := range w.batches {
		if err := b.Wait(ctx); err != nil {
			return w.refused, errors.Join(w.err, err)
		}
	}
	return w.refused, w.err
}
