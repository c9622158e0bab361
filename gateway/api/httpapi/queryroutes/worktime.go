package queryroutes

import (
	"context"
	"time"

	"downpour/gateway/api/httpapi/httpio"
)

// workTime is the rest of a query's timeout, for writing its answer. It is not a
// deadline, because the time that the client takes to read does not count.
type workTime struct {
	ctx   context.Context // ends when the client leaves
	left  time.Duration
	since time.Time // when the present period of work began
}

func newWorkTime(ctx context.Context, left time.Duration) *workTime {
	return &workTime{ctx: ctx, left: left, since: time.Now()}
}

// pause ends a period of work, before a write to the client. The error is why the answer should not
// be continued.
func (t *workTime) pause() error {
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
func (t *workTime) resume() { t.since = time.Now() }
