package changefeed

import (
	"context"
	"time"

	"downpour/encoding/scanplan"
	"downpour/pushdown/store"
)

// watched is the finder of a store that reports its changes.
type watched struct {
	store.Watch
	probe probe
}

// watchPlan begins to watch the rows of a plan. changed is called when there may be
// news.
func watchPlan(open func(string, []store.KeyRange, func()) (store.Watch, error), plan *scanplan.Plan,
	changed func()) (store.Watch, error) {
	ranges := make([]store.KeyRange, len(plan.Ranges))
	for i, r := range plan.Ranges {
		ranges[i] = store.KeyRange{Start: r.Start, Stop: r.Stop}
	}
	return open(plan.Table, ranges, changed)
}

// find returns the rows that were written since the last call. It never sets reload: if the watch
// has lost something, the error is errLost.
func (w *watched) find(ctx context.Context, now time.Time) (rows []store.Change, reload bool, err error) {
	if err := w.probe.run(ctx, now); err != nil {
		return nil, false, err
	}

	// After a loss the view is not enough: another watch must be opened too,
	// because subQuery.extend relies on having seen all changes of this one.
	rows, lost := w.Take()
	if lost {
		return nil, false, errLost
	}
	return rows, false, nil
}

func (*watched) cachedRow(_ []byte, cells []store.Cell) ([]store.Cell, bool) { return cells, false }
func (*watched) knowsWrites() bool                                           { return true }
func (*watched) rowsRead([]store.Row)                                        {}
func (*watched) viewLoaded(time.Duration)                                    {}
func (*watched) bytes() int64                                                { return 0 }
func (w *watched) close()                                                    { w.Close() }
