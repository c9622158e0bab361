package write

import (
	"context"
	"time"
)

// Batch is a set of points that become durable together. It is done once its
// lane has written it.
type Batch struct {
	rows  *rows // nil once it is done
	bytes int
	due   time.Time // when its window ends
	lane  *shard    // whose window ends early for who waits; nil if it does not
	done  chan struct{}
	err   error

	// Points are of series that were resolved in this generation or later. No
	// name of theirs is deleted until release.
	generation uint64
	release    func() error
}

func (w *Writer) newBatch(window time.Duration) *Batch {
	generation, release := w.series.cfg.Names.Hold()
	return &Batch{rows: w.rows(), due: time.Now().Add(window), done: make(chan struct{}), generation: generation, release: release}
}

// takes tells whether the batch may hold points of a series. If not, a name may
// have changed since it was resolved, before the batch was begun.
func (b *Batch) takes(s *SeriesKey) bool { return s.generation >= b.generation }

// Wait returns once the batch is durable, or its error. A context that ends
// first leaves the points' fate unknown; one that is over already only looks.
// Whoever waits has sent what it has to send, so the window ends early, but for
// compacted cells, which are worth the wait for others of their row.
func (b *Batch) Wait(ctx context.Context) error {
	select {
	case <-b.done:
		return b.err
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.lane != nil {
		b.lane.flushEarly(b)
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Batch) finish(err error) {
	if late := b.release(); err == nil && late != nil {
		err = &storageError{late}
	}
	b.err = err
	b.rows = nil
	close(b.done)
}
