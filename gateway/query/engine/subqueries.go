package engine

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// subQueriesAtOnce is how many sub-queries of one query are executed at a time.
const subQueriesAtOnce = 2

// forEach calls work for sub-queries 0 to n-1, subQueriesAtOnce at a time. It returns the
// error of the first in their order that fails, whichever fails first in time: an answer
// must not depend on which is faster. So a failure ends the sub-queries behind it, and
// those before it go on.
func (e *Engine) forEach(ctx context.Context, n int, work func(ctx context.Context, i int) error) error {
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
			if errs[i] != nil {
				for _, end := range ends[i+1:] {
					end()
				}
			}
			return nil
		})
	}
	_ = running.Wait() // the errors are in errs

	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// protected calls work and turns a panic into its error.
func (e *Engine) protected(ctx context.Context, i int, work func(ctx context.Context, i int) error) (err error) {
	defer recovered(e.cfg.Log, &err)
	return work(ctx, i)
}
