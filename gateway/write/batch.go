package write

import (
	"context"
	"time"
)

// Batch is a set of points that become durable together, by one call of the store.
type Batch struct {
	rows      *rows // nil once it is done
	bytes     int   // the memory of rows, about
	windowEnd time.Time
	// waitHurries is the shard whose commit window Wait ends early; nil if a caller who waits changes
	// nothing.
	waitHurries *shard
	done        chan struct{} // closed once err is set
	err         error

	// The series of all points were resolved in this generation of names or later.
	// Their names are not deleted before release is called.
	generation uint64
	release    func() error
}

// newBatch returns an empty batch that holds the names of its series: finish must be called.
func (w *Writer) newBatch(window time.Duration) *Batch {
	generation, release := w.series.cfg.Names.Hold()
	return &Batch{
		rows:       w.emptyRows(),
		windowEnd:  time.Now().Add(window),
		done:       make(chan struct{}),
		generation: generation,
		release:    release,
	}
}

// accepts reports whether the batch may hold points of a series. It may not if the
// series was resolved before the batch was opened and a name has changed since.
func (b *Batch) accepts(s *SeriesKey) bool { return s.generation >= b.generation }

// Wait returns nil once the batch is durable, or the error of its write. If the context ends first, it is unknown
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

	// nil for multi cells, and for a batch of one request, which has no commit window.
	if b.waitHurries != nil {
		b.waitHurries.hurry(b)
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish releases the names of the batch and gives it its outcome: err, or a storageError if the rows
// are stored, but may have the UIDs of names that another process has deleted since. Those who wait
// get it.
func (b *Batch) finish(err error) {
	if outdated := b.release(); err == nil && outdated != nil {
		err = &storageError{outdated}
	}
	b.err = err
	b.rows = nil
	close(b.done)
}
