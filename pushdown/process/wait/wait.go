// Package wait waits for a time that a context may cut short.
package wait

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends, whose error it then returns. There is nothing to wait for
// where d is not positive: whether ctx has ended is not looked at then.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}

	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
