// Package wait waits for a time that a context may cut short.
package wait

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends, whose error it then returns. If d is not positive it returns
// immediately, even if ctx has ended.
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
