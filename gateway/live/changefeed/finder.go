package changefeed

import (
	"context"
	"time"

	"downpour/pushdown/store"
)

// finder tells which rows of a plan have changed since it was asked last.
type finder interface {
	// find returns the rows that have changed, and what was written to them if the
	// finder knows. reload tells that any row may have changed: the view must be
	// loaded again.
	find(ctx context.Context, now time.Time) (rows []store.Change, reload bool, err error)

	// knowsWrites reports whether find may tell what was written to a row. If not,
	// every row that it returns must be read.
	knowsWrites() bool

	// cachedRow appends the cells of a row that the finder knows as it is now, so
	// that it need not be read; ok is false if it does not. The cells are views
	// that are valid until the next find.
	cachedRow(key []byte, cells []store.Cell) (_ []store.Cell, ok bool)

	// rowsRead tells the finder about rows that were read because of find.
	rowsRead(rows []store.Row)

	// viewLoaded tells the finder how long it took to load the view.
	viewLoaded(took time.Duration)

	bytes() int64 // memory that the finder holds
	close()
}

// newFinder opens the finder that the store allows for the rows of the sub-query's
// plan. It need not find changes that happened before newFinder returns.
func (s *subQuery) newFinder(ctx context.Context, now time.Time) (finder, error) {
	if open := s.feed.cfg.Store.Features().Watch; open != nil {
		watch, err := watchPlan(open, s.prepared.Plan, s.source.signalChanged)
		if err != nil {
			return nil, err
		}
		return &watched{Watch: watch, probe: probe{store: s.feed.cfg.Store, plan: s.prepared.Plan, last: now}}, nil
	}
	return newPoller(ctx, s.feed, s.prepared.Plan, now)
}
