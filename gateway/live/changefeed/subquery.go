package changefeed

import (
	"context"
	"errors"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/live"
	"downpour/gateway/live/incremental"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/merge"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// subQuery keeps the answer of one sub-query up to date.
type subQuery struct {
	source *source
	feed   *Feed

	prepared *engine.Prepared  // as compiled at the last tick
	view     *incremental.View // nil while the sub-query is run in full
	finder   finder            // nil if and only if view is, between ticks
	tooLarge bool              // a view of this plan takes too much memory
	rowsRead int64             // delivered by the store for the last full answer
	ctx      context.Context   // of the present tick

	// alwaysRead holds the keys of rows that are read whenever they change; see
	// extend.
	alwaysRead map[string]struct{}

	// Scratch.
	cells   []store.Cell
	span    []byte
	points  encoding.Points
	decoder encoding.RowDecoder
}

// close frees the view and the finder.
func (s *subQuery) close() {
	if s.finder != nil {
		s.finder.close()
	}
	s.finder, s.view, s.alwaysRead = nil, nil, nil
}

// bytes returns the memory that the view and the finder hold.
func (s *subQuery) bytes() int64 {
	if s.view == nil {
		return 0
	}
	return s.view.Bytes() + s.finder.bytes()
}

// update adds to the answer the changes of the sub-query, or all of its groups. p
// is the sub-query compiled with its end at now.
func (s *subQuery) update(ctx context.Context, p *engine.Prepared, now time.Time, a *live.Answer) error {
	// The view is that of one plan; only the bounds of the answer may move.
	if s.prepared == nil || !s.prepared.Same(p) {
		s.close()
		s.tooLarge = false
	}
	s.prepared, s.ctx = p, ctx

	if s.view != nil {
		err := s.applyChanges(ctx, now, a)
		if err == nil {
			return nil
		}
		s.feed.cfg.Log.Debug("live: a view is loaded again", "reason", err)
		s.close()
		// A store that cannot be read would fail again, after a long time.
		if ctx.Err() != nil || errors.Is(err, dispatch.ErrUnreachable) {
			return err
		}
	}

	if s.mustRunInFull(p) {
		return s.runInFull(ctx, a)
	}

	err := s.openView(ctx, now, a)
	var tableLimit *incremental.LimitError
	var memoryLimit *memory.LimitError
	if errors.As(err, &tableLimit) || errors.As(err, &memoryLimit) {
		s.tooLarge = true
	}
	if err != nil {
		// Whatever the reason: running the query in full decides what the client
		// is told.
		s.close()
		if ctx.Err() != nil {
			return err
		}
		return s.runInFull(ctx, a)
	}
	return nil
}

// mustRunInFull tells whether the sub-query cannot have a view.
func (s *subQuery) mustRunInFull(p *engine.Prepared) bool {
	return s.tooLarge || p.Empty() || incremental.Covers(p.Plan) != ""
}

// runInFull runs the sub-query as a query of its own and adds all groups to the
// answer.
func (s *subQuery) runInFull(ctx context.Context, a *live.Answer) error {
	s.feed.stats.whole.Add(1)
	results, stats, err := s.prepared.Run(ctx)
	if err != nil {
		return err
	}
	s.rowsRead = stats.Rows
	a.Results = append(a.Results, LiveResults(results)...)
	return nil
}

// shown returns the window that the query asks for.
func (s *subQuery) shown() incremental.Window {
	return incremental.Window{From: s.prepared.Plan.Start, To: s.prepared.Plan.End}
}

// openView opens the finder, then loads the view and adds all groups to the
// answer. In this order no change is missed: what happens while the view is loaded
// is found by the finder.
func (s *subQuery) openView(ctx context.Context, now time.Time, a *live.Answer) (err error) {
	s.feed.stats.loads.Add(1)
	if s.finder, err = s.newFinder(ctx, now); err != nil {
		return err
	}
	if s.view, err = s.loadView(ctx); err != nil {
		return err
	}
	return s.addAll(ctx, a)
}

// loadView returns a view with all rows of the plan.
func (s *subQuery) loadView(ctx context.Context) (*incremental.View, error) {
	start := time.Now()
	t, err := incremental.New(s.prepared.Plan, s.nameFilter(), incremental.Bounds{Bytes: s.feed.cfg.ViewBytes, Guard: memory.NewLease(ctx)})
	if err != nil {
		return nil, err
	}

	load := t.Load()
	stats, err := s.prepared.Execute(ctx, func(part scanplan.KeyRange, records []batch.Record) error { return load.Add(part, records) })
	if err != nil {
		return nil, err
	}
	if err := load.Finish(); err != nil {
		return nil, err
	}

	s.rowsRead = stats.Rows
	s.finder.viewLoaded(time.Since(start))
	return t, nil
}

// nameFilter returns the filter on names that the plan cannot express, nil for
// none. It works within the context of the tick that meets a new span, which may be
// later than the one that loads the view.
func (s *subQuery) nameFilter() func(span []byte) (bool, error) {
	if s.prepared.PostFilter == nil {
		return nil
	}
	return func(span []byte) (bool, error) { return s.prepared.Keep(s.ctx)(span) }
}

// addAll adds all groups of the view to the answer.
func (s *subQuery) addAll(ctx context.Context, a *live.Answer) error {
	groups, err := s.view.Groups(s.shown())
	if err != nil {
		return err
	}
	results, err := s.prepared.Named(ctx, groups)
	if err != nil {
		return err
	}
	a.Results = append(a.Results, LiveResults(results)...)
	return nil
}

// applyChanges changes the view by the rows that have changed, and adds to the
// answer what that changes.
func (s *subQuery) applyChanges(ctx context.Context, now time.Time, a *live.Answer) error {
	s.view.SetGuard(memory.NewLease(ctx))
	rows, reload, err := s.finder.find(ctx, now)
	if err != nil {
		return err
	}
	if reload {
		s.view = nil // two views at a time might not fit into memory
		if s.view, err = s.loadView(ctx); err != nil {
			return err
		}
		return s.addAll(ctx, a)
	}

	s.feed.stats.changed.Add(int64(len(rows)))
	toRead, err := s.extend(rows)
	if err != nil {
		return err
	}
	if len(toRead) > 0 {
		if err := s.replaceRows(ctx, toRead); err != nil {
			return err
		}
	}

	changes, err := s.view.Changes(s.shown())
	if err != nil {
		return err
	}
	// The changes may have made the view too large. Then it is given up, and the
	// sub-query runs in full from now on.
	if s.bytes() > s.feed.cfg.ViewBytes {
		s.tooLarge = true
		return errTooLarge
	}

	named, err := s.withNames(ctx, changes)
	if err != nil {
		return err
	}
	a.Kept[s.prepared.Index()] = true
	a.Changes = append(a.Changes, named...)
	return nil
}

// withNames returns changes of the view as changes of a live answer, with names
// instead of UIDs.
func (s *subQuery) withNames(ctx context.Context, changes []incremental.Change) (all []live.Change, err error) {
	var full []merge.Group
	for i := range changes {
		c := &changes[i]
		if c.Full {
			full = append(full, c.Group)
			continue
		}

		// The client knows the names of the group: its windows are enough.
		out := live.Change{QueryIndex: s.prepared.Index(), Key: groupKey(c.Group.Key)}
		for _, w := range c.Windows {
			out.Windows = append(out.Windows, live.Window{From: w.From, To: w.To, Points: w.Points})
		}
		all = append(all, out)
	}
	if len(full) == 0 {
		return all, nil
	}

	results, err := s.prepared.Named(ctx, full)
	if err != nil {
		return nil, err
	}
	for i := range results {
		r := liveResult(&results[i])
		all = append(all, live.Change{QueryIndex: r.QueryIndex, Key: r.Key, Full: &r})
	}
	return all, nil
}
