package httpapi

import (
	"context"
	"time"
)

// effort is what is left of a request's time for the work on its answer. The time
// that the client takes to read does not count, so it is no deadline.
type effort struct {
	ctx   context.Context // ends when the client leaves
	left  time.Duration
	since time.Time // when the present stretch of work began
}

func newEffort(ctx context.Context, left time.Duration) *effort {
	return &effort{ctx: ctx, left: left, since: time.Now()}
}

// pause ends a stretch of work. Its error says why there should be no other.
func (e *effort) pause() error {
	e.left -= time.Since(e.since)
	switch {
	case e.ctx.Err() != nil:
		return context.Cause(e.ctx)
	case e.left < 0:
		return timedOut("the time was over while the answer was written")
	}
	return nil
}

// resume begins another stretch.
func (e *effort) resume() { e.since = time.Now() }
