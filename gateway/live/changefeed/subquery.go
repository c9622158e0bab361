package changefeed

import (
	"context"
	"errors"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/live"
	"downpour/gateway/live/incremental"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/engine/stage"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
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
	noView   bool              // a view of this plan takes too much memory, or has rows of no full hour
	// wholeRows is set once rows have changed hours that the view has merged, without their rows: until the
	// plan is another, views have all rows.
	wholeRows bool
	rowsRead  int64           // delivered by the store for the last full answer
	damaged   int64           // rows that it left out; a plan that leaves out any has no view
	ctx       context.Context // of the present tick

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

// news is what one update brings of a sub-query.
type news struct {
	// all says that groups are all groups of the sub-query.
	all bool
	// groups are whole groups: all, or those that are new or have another description.
	groups []engine.Result
	// changes are the changed points of groups that are known.
	changes []live.Change
}

// empty reports whether nothing has changed.
func (n *news) empty() bool { return !n.all && len(n.groups)+len(n.changes) == 0 }

// update returns what has changed of the sub-query, or all of its groups. p is the
// sub-query compiled with its end at now.
func (s *subQuery) update(ctx context.Context, p *engine.Prepared, now time.Time) (news, error) {
	// The view is that of one plan; only the bounds of the answer may move.
	if s.prepared == nil || !s.prepared.Same(p) {
		s.close()
		s.noView, s.wholeRows = false, false
	}
	s.prepared, s.ctx = p, ctx // the view keeps nameFilter, which reads both

	if s.view != nil {
		n, err := s.applyChanges(ctx, now)
		if err == nil {
			return n, nil
		}
		// Whatever went wrong with the changes: the rows have the answer.
		s.feed.cfg.Log.Debug("live: a view is loaded again", "reason", err)
		s.wholeRows = s.wholeRows || errors.Is(err, incremental.ErrOlderChanged)
		s.close()
		// A store that cannot be read would fail again, after a long time.
		if ctx.Err() != nil || errors.Is(err, dispatch.ErrUnreachable) {
			return news{}, err
		}
	}

	if s.mustRunInFull(p) {
		return s.runInFull(ctx)
	}

	n, err := s.openView(ctx, now)
	var tableLimit *incremental.LimitError
	var memoryLimit *memory.LimitError
	var offHour *operator.OffHourError
	if errors.As(err, &tableLimit) || errors.As(err, &memoryLimit) || errors.As(err, &offHour) {
		// Loading it again at each tick would fail again.
		s.noView = true
	}
	if err != nil {
		// Whatever the reason: running the query in full decides what the client
		// gets.
		s.close()
		if ctx.Err() != nil { // the time of the tick is over, as when the load could not reach the store
			return news{}, err
		}
		return s.runInFull(ctx)
	}
	return n, nil
}

// mustRunInFull reports whether the sub-query cannot have a view.
func (s *subQuery) mustRunInFull(p *engine.Prepared) bool {
	return s.noView || p.Empty() || incremental.Covers(p.Plan) != ""
}

// runInFull runs the sub-query as a query of its own and returns all groups.
func (s *subQuery) runInFull(ctx context.Context) (news, error) {
	s.feed.stats.whole.Add(1)
	results, stats, err := s.prepared.Run(ctx)
	if err != nil {
		return news{}, err
	}
	s.rowsRead, s.damaged = stats.Rows, stats.Damaged
	return news{all: true, groups: results}, nil
}

// shown returns the window that the query asks for.
func (s *subQuery) shown() incremental.Window {
	return incremental.Window{From: s.prepared.Plan.Start, To: s.prepared.Plan.End}
}

// openView opens the finder, then loads the view and returns all groups. In this
// order no change is missed: what happens while the view is loaded is found by the
// finder.
func (s *subQuery) openView(ctx context.Context, now time.Time) (n news, err error) {
	s.feed.stats.loads.Add(1)
	if s.finder, err = s.newFinder(ctx, now); err != nil {
		return n, err
	}
	if s.view, err = s.loadView(ctx); err != nil {
		return n, err
	}
	return s.allGroups(ctx)
}

// loadView returns a view with all rows of the plan.
func (s *subQuery) loadView(ctx context.Context) (*incremental.View, error) {
	start := time.Now()
	var older *stage.OlderHours
	if !s.wholeRows {
		var err error
		if older, err = s.prepared.OlderHours(ctx); err != nil {
			return nil, err
		}
	}

	var t *incremental.View
	var rows int64
	var err error
	if older == nil {
		t, rows, err = s.loadRows(ctx)
	} else {
		t, rows, err = s.loadFrom(ctx, older)
		older.Close(ctx) // the view has a copy
	}
	if older != nil && err == nil {
		s.feed.stats.continued.Add(1)
	}
	if errors.Is(err, incremental.ErrOlderChanged) {
		older.Refuse()
		s.wholeRows = true
		t, rows, err = s.loadRows(ctx)
	}
	if err != nil {
		return nil, err
	}

	s.rowsRead = rows
	s.finder.viewLoaded(time.Since(start)) // by this a poller decides when to load again
	return t, nil
}

// loadRows returns a view of all rows of the plan, and their number.
func (s *subQuery) loadRows(ctx context.Context) (*incremental.View, int64, error) {
	t, err := s.newView(ctx, s.prepared.Plan)
	if err != nil {
		return nil, 0, err
	}
	load := t.Load()
	stats, err := s.prepared.Execute(ctx, load.Add)
	if err == nil {
		err = load.Finish()
	}
	return t, stats.Rows, err
}

// loadFrom returns a view that begins where older hours end, which other queries have
// merged or this one has now. The number of rows is that of all.
func (s *subQuery) loadFrom(ctx context.Context, older *stage.OlderHours) (*incremental.View, int64, error) {
	t, err := s.newView(ctx, older.Plan())
	if err != nil {
		return nil, 0, err
	}
	load := t.Load()
	if err := load.Continue(older.Merged(), older.NewerFrom()); err != nil {
		return nil, 0, err
	}
	stats, err := s.prepared.ExecuteNewer(ctx, older, load.Add)
	if err == nil {
		err = load.Finish()
	}
	return t, stats.Rows, err
}

// newView returns an empty view.
func (s *subQuery) newView(ctx context.Context, p *scanplan.Plan) (*incremental.View, error) {
	return incremental.New(p, s.nameFilter(),
		incremental.Bounds{Bytes: s.feed.cfg.ViewBytes, Guard: memory.NewLease(ctx)})
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

// allGroups returns all groups of the view.
func (s *subQuery) allGroups(ctx context.Context) (news, error) {
	groups, err := s.view.Groups(s.shown())
	if err != nil {
		return news{}, err
	}
	results, err := s.prepared.Named(ctx, groups)
	return news{all: true, groups: results}, err
}

// applyChanges changes the view by the rows that have changed, and returns what that
// changes.
func (s *subQuery) applyChanges(ctx context.Context, now time.Time) (n news, err error) {
	s.view.SetGuard(memory.NewLease(ctx)) // what it takes now counts as this tick's
	rows, reload, err := s.finder.find(ctx, now)
	if err != nil {
		return n, err
	}
	if reload {
		s.view = nil // two views at a time might not fit into memory
		if s.view, err = s.loadView(ctx); err != nil {
			return n, err
		}
		return s.allGroups(ctx)
	}

	s.feed.stats.changed.Add(int64(len(rows)))
	for i := range rows {
		if operator.IsOffHour(s.prepared.Plan, rows[i].Row) {
			return n, errOffHour
		}
	}
	toRead, err := s.extend(rows)
	if err != nil {
		return n, err
	}

	if len(toRead) > 0 {
		if err := s.replaceRows(ctx, toRead); err != nil {
			return n, err
		}
	}

	changes, err := s.view.Changes(s.shown())
	if err != nil {
		return n, err
	}
	// The changes may have made the view too large. Then it is given up, and the
	// sub-query runs in full from now on.
	if s.bytes() > s.feed.cfg.ViewBytes {
		s.noView = true
		return n, errTooLarge
	}
	return s.withNames(ctx, changes)
}

// withNames returns changes of the view with names instead of UIDs.
func (s *subQuery) withNames(ctx context.Context, changes []incremental.Change) (n news, err error) {
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
		n.changes = append(n.changes, out)
	}
	if len(full) > 0 {
		n.groups, err = s.prepared.Named(ctx, full)
	}
	return n, err
}
