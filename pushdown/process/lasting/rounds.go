package lasting

import (
	"context"
	"time"

	"downpour/pushdown/process/wait"
)

// Rounds does rounds of work until ctx ends. Each returns how long there is nothing to do. No error
// ends the work: failed gets it, and the next round retries. Failures because ctx has ended are no
// errors.
func Rounds(ctx context.Context, round func(context.Context) (pause time.Duration, err error), failed func(error)) {
	for ctx.Err() == nil {
		pause, err := round(ctx)
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
		_ = wait.For(ctx, pause)
	}
}
