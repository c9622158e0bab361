package queryroutes

import (
	"context"
	"io"
	"time"

	"downpour/gateway/api/httpapi/httpio"
)

// WorkTime is the rest of a query's timeout, for writing its answer. It is not a
// deadline, because the time that the client takes to read does not count.
type WorkTime struct {
	ctx   context.Context // ends when the client leaves
	left  time.Duration
	since time.Time // when the present period of work began
}

func newWorkTime(ctx context.Context, left time.Duration) *WorkTime {
	return &WorkTime{ctx: ctx, left: left, since: time.Now()}
}

// pause ends a period of work, before a write to the client. The error is why the answer should
// not be continued.
func (t *WorkTime) pause() error {
	t.left -= time.Since(t.since)
	switch {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case t.left < 0:
		return httpio.TimedOut("the time was over while the answer was written")
	}
	return nil
}

// resume begins the next period of work.
func (t *WorkTime) resume() { t.since = time.Now() }

// Write writes a piece of the answer. Only the time outside the write counts as work.
func (t *WorkTime) Write(w io.Writer, piece []byte) error {
	if err := t.pause(); err != nil {
		return err
	}
	_, err := w.Write(piece)
	t.resume()
	return err
}
