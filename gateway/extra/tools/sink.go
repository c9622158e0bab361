package tools

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/store"
)

// sink is where imported points go.
type sink interface {
	// assign gives names their UIDs, in the order given, if the settings allow new
	// names of that kind.
	assign(ctx context.Context, names []nameLine) error
	// writeMeta stores meta lines. It returns those that it refuses.
	writeMeta(ctx context.Context, all []metaLine) (refused []refusal, err error)
	// send begins to write the points of some lines. The caller leaves the lines
	// unchanged until wait has returned.
	send(ctx context.Context, lines []linePoint) sending
	close()
}

// sending is a send whose points are not durable yet.
type sending interface {
	// wait returns once the points are durable. It returns the lines that were
	// refused, in any order. After an error any of the points may be stored or not.
	wait(ctx context.Context) (refused []refusal, err error)
}

// refusal is a line that was refused, and why.
type refusal struct {
	line int64
	err  error
}

// storeSink writes to a store that this process has open.
type storeSink struct {
	metaWriter
	writer *write.Writer
	// last is the latest time of each series in ms. It is nil if a series may have
	// a time twice.
	last     map[string]int64
	resolver *write.Resolver
	// stop ends a send at the first refusal.
	stop bool
}

// The writer gathers points longer than it does for a client's put, because an
// import has many points of a row, and a cell that holds several is much cheaper
// than several cells.
const (
	importWindow = 100 * time.Millisecond
	importBytes  = 4 << 20
	importShards = 4
)

// newStoreSink makes a sink over an open store. It appends points where the store or the
// settings want that; otherwise it writes cells of many points.
func newStoreSink(c *call, conn *connection) *storeSink {
	auto := c.Auto
	auto.Metrics = auto.Metrics || c.autoMetric

	// Staged, as in a gateway: where the store can order its writes, a new series does not
	// wait until its UIDs are on the disk.
	l := &storeSink{stop: !c.skipErrors, metaWriter: metaWriter{settings: &c.Settings, st: conn.store, names: conn.names, auto: auto,
		series: write.NewSeries(write.SeriesConfig{Schema: c.Schema, Names: uid.Staged{Dictionary: conn.names}, Auto: auto})}}
	if conn.tracker != nil {
		l.flush = conn.tracker.Flush
	}

	cfg := write.Config{Schema: c.Schema, Table: c.Tables.Data, Form: write.MultiPoint, Window: importWindow, WindowBytes: importBytes,
		Shards: importShards, Allowed: c.Allowed, Observer: conn.observer()}
	switch {
	case c.Embedded:
		// The embedded store merges what is appended to a row. All writes share its log, so
		// that several shards would only wait for one another.
		cfg.Form, cfg.Shards, cfg.WindowBytes = write.Appended, 1, 1<<20
	case c.Appends:
		cfg.Form = write.Appended
	case !c.outOfOrder:
		// Cells of several points on HBase must not have a time twice, see inOrder.
		l.last = map[string]int64{}
	}

	l.writer = write.New(cfg, conn.store, l.series)
	l.resolver = l.writer.Resolver(write.ImportSpelling)
	return l
}

func (l *storeSink) close() { l.writer.Close() }

func (l *storeSink) writeMeta(ctx context.Context, all []metaLine) ([]refusal, error) {
	return l.metaWriter.store(ctx, all)
}

// storeSending is what storeSink.send returns.
type storeSending struct {
	batches  []*write.Batch
	refused  []refusal
	err      error
	prepared int // lines before this one have had their names prepared
}

// send adds the points to batches of the writer. Points that are refused are reported
// by wait; the first of them ends the sending if the import is to stop at it.
func (l *storeSink) send(ctx context.Context, lines []linePoint) sending {
	w := new(storeSending)
	for i := range lines {
		b, err := l.add(ctx, w, lines, i)
		switch {
		case err == nil:
			// Points of a chunk come in long runs of one batch, which is then waited for once.
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

// fatal reports whether an error ends the import: other lines would fail, too.
func fatal(ctx context.Context, err error) bool {
	return write.IsStorage(err) || errors.Is(err, write.ErrClosing) || errors.Is(err, store.ErrLocked) || ctx.Err() != nil
}

// add hands the point of line i to the writer. The resolver finds the key of a series
// that it had before by the spelling in the line, which saves parsing and checking the
// names.
func (l *storeSink) add(ctx context.Context, w *storeSending, lines []linePoint, i int) (*write.Batch, error) {
	line := &lines[i]
	s, ok := l.resolver.Find(line.names)
	if !ok {
		p, err := line.point(l.settings)
		if err != nil {
			return nil, err
		}
		if i >= w.prepared {
			w.prepared = i + 1 + l.writer.PrepareNames(ctx, p, l.pointsOf(lines[i+1:]))
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

// pointsOf yields the points of lines, nil for one that will be refused.
func (l *storeSink) pointsOf(lines []linePoint) iter.Seq[*write.Point] {
	return func(yield func(*write.Point) bool) {
		for i := range lines {
			p, err := lines[i].point(l.settings)
			if err != nil {
				p = nil
			}
			if !yield(p) {
				return
			}
		}
	}
}

// inOrder refuses a time that does not come after the last one of its series. If two
// cells of several points had different values at one time, every query of their hour
// would fail. Source: IncomingDataPoints.addPointInternal.
func (l *storeSink) inOrder(s *write.SeriesKey, t int64) error {
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

// wait waits until all batches are durable. It returns the refused points, and the first
// error by which others were lost.
func (w *storeSending) wait(ctx context.Context) ([]refusal, error) {
	for _, b := range w.batches {
		if err := b.Wait(ctx); err != nil {
			return w.refused, errors.Join(w.err, err)
		}
	}
	return w.refused, w.err
}
