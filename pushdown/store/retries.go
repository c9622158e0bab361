package store

import "context"

// retries is the key of what OnRetry adds to a context.
type retries struct{}

// OnRetry returns a context whose operations call told with each fault after which they try again. Who
// waits for an operation knows so what it waits for, long before it ends. told must not block.
func OnRetry(ctx context.Context, told func(fault error)) context.Context {
	return context.WithValue(ctx, retries{}, told)
}

// Retry tells who called OnRetry of a fault.
func Retry(ctx context.Context, fault error) {
	if told, ok := ctx.Value(retries{}).(func(error)); ok {
		told(fault)
	}
}
