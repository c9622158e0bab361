package store

import "context"

// retries is the key of what OnRetry adds to a context.
type retries struct{}

// OnRetry returns a context whose operations call report with each fault after which they retry. So the
// caller knows what it waits for, long before the operation ends. report must not block.
func OnRetry(ctx context.Context, report func(fault error)) context.Context {
	return context.WithValue(ctx, retries{}, report)
}

// Retry reports a fault to the caller of OnRetry.
func Retry(ctx context.Context, fault error) {
	if report, ok := ctx.Value(retries{}).(func(error)); ok {
		report(fault)
	}
}
