package write

import (
	"context"
	"time"
)

// Batch is a set of points that become durable together, by one call of the store.
type Batch struct {
	rows  *rows // nil once it is done
	bytes int
	due   time.Time // when its commit window ends
	// flushedBy is the shard whose window ends early when a caller waits for the batch; nil if it
	// cannot end early.
	flushedBy *shard
	done      chan struct{} // closed once err is set
	err       error

	// The series of all points were resolved in this generation of names or later.
	// Their names are not deleted before release is called.
	generation uint64
	release    func() error
}

func (w *Writer) newBatch(window time.Duration) *Batch {
	generation, release := w.series.cfg.Names.Hold()
	return &Batch{
		rows:       w.emptyRows(),
		due:        time.Now().Add(window),
		done:       make(chan struct{}),
		generation: generation,
		release:    release,
	}
}

// accepts reports whether the batch may hold points of a series. It may not if the
// series was resolved before the batch was opened and a name has changed since.
func (b *Batch) accepts(s *SeriesKey) bool { return s.generation >= b.generation }

// Wait returns once the batch is durable, or its error. If the context ends first, it is unknown
// whether the points are stored. With an ended context Wait returns immediately, with the batch's
// result if there is one.
//
// A caller that waits has nothing more to send, so Wait ends the commit window
// early. It does not for multi cells: more points of their rows are worth the
// wait.
func (b *Batch) Wait(ctx context.Context) error {
	select {
	case <-b.done:
		return b.err
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}

	// It is nil for multi cells, and for a batch of one request, which Send writes.
	if b.flushedBy != nil {
		b.flushedBy.flushEarly(b)
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish gives the batch its result and releases its names. Names that were held
// for too long may have been deleted meanwhile; the points then count as lost.
func (b *Batch) finish(err error) {
	if late := b.release(); err == nil && late != nil {
		err = &storageError{late}
	}
	b.err = err
	b.rows = nil
	close(b.done)
}
