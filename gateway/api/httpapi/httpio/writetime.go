package httpio

import (
	"context"
	"fmt"
	"time"
)

// WriteTimeError is the cause that ends a request that writes, once it has taken as long as it may.
type WriteTimeError struct{ Limit time.Duration }

// Error has the text that the outcome is unknown.
func (e *WriteTimeError) Error() string {
	return fmt.Sprintf(
		"the store has not answered within %v (DOWNPOUR_PUT_TIMEOUT); "+
			"what was sent may be stored nevertheless, please send it again",
		e.Limit)
}

// Is makes it the end of a deadline.
func (e *WriteTimeError) Is(target error) bool { return target == context.DeadlineExceeded }

// underWriteTime marks the context of a request that has the time of writes.
type underWriteTime struct{}

// WithWriteTime marks the context of a request that ends when the time of writes is over.
func WithWriteTime(ctx context.Context) context.Context {
	return context.WithValue(ctx, underWriteTime{}, true)
}

// WithQueryTime returns a context that ends after the time of a query, unless it has the time of
// writes already.
func WithQueryTime(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if ctx.Value(underWriteTime{}) != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}
