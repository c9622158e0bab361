package changefeed

import (
	"context"
	"errors"
	"time"

	"downpour/encoding/scanplan"
	"downpour/pushdown/store"
)

// newFinder opens the finder that the store allows for the rows of a plan.
// Changes before it returns need not be found.
func (s *sub) newFinder(ctx context.Context, now time.Time) (finder, error) {
	if w, ok := s.of.cfg.Store.(store.Watcher); ok {
		in, err := watch(w, s.as.Plan, s.source.wake)
		if err != nil {
			return nil, err
		}
		return &watched{Watch: in, probe: probe{store: s.of.cfg.Store, plan: s.as.Plan, last: now}}, nil
	}
	return newPoller(ctx, s.of, s.as.Plan, now)
}

// watched is the finder of a store that tells what changes.
type watched struct {
	store.Watch
	probe probe
}

func watch(w store.Watcher, plan *scanplan.Plan, changed func()) (store.Watch, error) {
	ranges := make([]store.KeyRange, len(plan.Ranges))
	for i, r := range plan.Ranges {
		ranges[i] = store.KeyRange{Start: r.Start, Stop: r.Stop}
	}
	return w.Watch(plan.Table, ranges, changed)
}

func (w *watched) find(ctx context.Context, now time.Time) (rows []store.Change, again bool, err error) {
	if err := w.probe.look(ctx, now); err != nil {
		return nil, false, err
	}
	rows, lost := w.Take()
	if lost {
		return nil, false, errLost
	}
	return rows, false, nil
}

// errLost says that the store has not kept all changes. Another watch must be
// opened, as sub.extend relies on knowing the changes of this one.
var errLost = errors.New("follow: more rows have changed than the store keeps")

func (*watched) read([]store.Row) {}
func (*watched) bytes() int64     { return 0 }
func (*watched) row(_ []byte, cells []store.Cell) ([]store.Cell, bool) {
	return cells, false
}
func (*watched) filled(time.Duration) {}
func (w *watched) close()             { w.Close() }
