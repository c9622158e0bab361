package put

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
	lane  *lane     // whose window ends early for who waits; nil if it does not
	done  chan struct{}
	err   error
}

func newBatch(r *rows, window time.Duration) *Batch {
	return &Batch{rows: r, due: time.Now().Add(window), done: make(chan struct{})}
}

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
		b.lane.hurry(b)
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Batch) finish(err error) {
	b.err = err
	b.rows = nil
	close(b.done)
}
