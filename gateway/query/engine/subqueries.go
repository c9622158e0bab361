package engine

import (
	"cmp"
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"downpour/pushdown/operator/aggregate"
)

// subQueriesAtOnce is how many sub-queries of one query are executed at a time.
const subQueriesAtOnce = 2

// forEach calls work for sub-queries 0 to n-1, subQueriesAtOnce at a time. It returns the error of
// the first one in order that fails, not the first in time: an answer must not depend on speed. So
// a failure ends the sub-queries after it, and those before it continue. An error that is found
// late, see foundLate, comes after the others, and ends none.
func (e *Engine) forEach(ctx context.Context, n int, work func(ctx context.Context, i int) error) error {
	// Alone it needs no goroutine, whose small stack a query would have to grow several times.
	if n == 1 {
		ctx, end := context.WithCancel(ctx)
		defer end()
		return e.protected(ctx, 0, work)
	}

	contexts, ends, errs := make([]context.Context, n), make([]context.CancelFunc, n), make([]error, n)
	for i := range n {
		contexts[i], ends[i] = context.WithCancel(ctx)
		defer ends[i]()
	}

	var running errgroup.Group
	running.SetLimit(subQueriesAtOnce)
	for i := range n {
		running.Go(func() error {
			if errs[i] = contexts[i].Err(); errs[i] == nil {
				errs[i] = e.protected(contexts[i], i, work)
			}
			if errs[i] != nil && !foundLate(errs[i]) {
				for _, end := range ends[i+1:] {
					end()
				}
			}
			return nil
		})
	}
	_ = running.Wait() // the errors are in errs

	var late error
	for _, err := range errs {
		if err != nil && !foundLate(err) {
			return err
		}
		late = cmp.Or(late, err)
	}
	return late
}

// foundLate reports whether OpenTSDB finds a fault only while it writes an answer, when all
// sub-queries have read their rows: an infinite value. Source: SpanGroup, AggregationIterator.
func foundLate(err error) bool {
	var infinity *aggregate.InfinityError
	return errors.As(err, &infinity)
}

// protected calls work and turns a panic into its error.
func (e *Engine) protected(ctx context.Context, i int, work func(ctx context.Context, i int) error) (err error) {
	defer recovered(e.cfg.Log, &err)
	return work(ctx, i)
}
