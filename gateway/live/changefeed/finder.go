package changefeed

import (
	"context"
	"time"

	"downpour/pushdown/store"
)

// finder finds the rows of a plan that have changed since its last call.
type finder interface {
	// find returns the rows that have changed, and their writes if the finder knows them. reload is
	// set if any row may have changed: the view must be loaded again.
	find(ctx context.Context, now time.Time) (rows []store.Change, reload bool, err error)

	// knowsWrites reports whether find may return the writes to a row. If not, every row that it
	// returns must be read.
	knowsWrites() bool

	// cachedRow appends the cells of a row whose current state the finder knows, so
	// that it need not be read; ok is false if it does not. The cells are views that
	// are valid until the next find.
	cachedRow(key []byte, cells []store.Cell) (_ []store.Cell, ok bool)

	// rowsRead gives the finder the rows that were read because of find.
	rowsRead(rows []store.Row)

	// viewLoaded gives the finder the time that loading the view took.
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
