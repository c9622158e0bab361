package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
)

// runPlan answers one plan and names its groups.
func (e *Engine) runPlan(ctx context.Context, q *query.Query, p planned, node *Node) ([]Result, dispatch.Stats, error) {
	if p.nothing() {
		return nil, dispatch.Stats{}, nil
	}
	ctx, _ = withPlanPoints(ctx)
	groups, stats, err := e.groups(ctx, q, p, node)
	if err != nil {
		return nil, stats, err
	}
	done := node.begin("name")
	results, err := e.name(ctx, q, p, groups)
	done(map[string]any{"groups": len(results)})
	return results, stats, err
}

// groups are a plan's, from memory if no row has changed. What was asked before is
// answered for all times of its rows, to be kept, and trimmed; unless a time that
// is not asked for fails the answer.
func (e *Engine) groups(ctx context.Context, q *query.Query, p planned, node *Node) ([]merge.Group, dispatch.Stats, error) {
	memory := e.lookupCached(ctx, q, p)
	if kept, ok := memory.Found().(*cachedGroups); ok {
		return e.fromCache(ctx, q, p, kept, node)
	}
	if memory.Wanted() {
		groups, stats, err := e.answer(ctx, q, p.untrimmed(), node)
		if err == nil && stats.CacheComplete() {
			memory.Store(newCachedGroups(groups, stats))
		}
		if err == nil {
			groups = trimmed(groups, p.Plan)
			return groups, stats, planPointsOf(ctx).set(pointsIn(groups))
		}
		if !outside(err) {
			return nil, stats, err
		}
	}
	return e.answer(ctx, q, p, node)
}

// pointsIn counts the points of groups.
func pointsIn(groups []merge.Group) (n int) {
	for i := range groups {
		n += groups[i].Points.Len()
	}
	return n
}

// answer executes a plan. When states of groups do not give the answer, or take
// more memory than a part may have, strict parts do.
func (e *Engine) answer(ctx context.Context, q *query.Query, p planned, node *Node) ([]merge.Group, dispatch.Stats, error) {
	how := e.merging(q, p)
	groups, stats, err := e.mergePlan(ctx, q, p, how, node)
	if how != dispatch.PerSeries && (errors.Is(err, merge.ErrOrder) || tooManyStates(err, stats)) {
		e.strict.note(p.Plan, time.Now())
		node.add("again with strict parts", 0, map[string]any{"reason": err.Error()})
		groups, stats, err = e.mergePlan(ctx, q, p, dispatch.PerSeries, node)
	}
	return groups, stats, err
}

// tooManyStates tells whether states took more memory than they may.
func tooManyStates(err error, stats dispatch.Stats) bool {
	var limit *operator.LimitError
	return errors.As(err, &limit) && (limit.What == operator.States || limit.What == operator.Memory && stats.Partial > 0)
}

// mergePlan executes a plan and merges what its parts answer.
func (e *Engine) mergePlan(ctx context.Context, q *query.Query, p planned, how dispatch.Aggregation, node *Node) ([]merge.Group, dispatch.Stats, error) {
	if err := planPointsOf(ctx).set(0); err != nil { // those of an earlier try are thrown away
		return nil, dispatch.Stats{}, err
	}
	m, stats, err := e.scan(ctx, q, p, how, node)
	defer m.Free()
	if err != nil {
		return nil, stats, err
	}
	merged := node.begin("merge")
	groups, err := m.Finish()
	merged(map[string]any{"groups": len(groups)})
	return groups, stats, err
}

// scan executes a plan and collects what its parts return. The merger holds memory
// until Free, also after an error.
func (e *Engine) scan(ctx context.Context, q *query.Query, p planned, how dispatch.Aggregation, node *Node) (*merge.Merger, dispatch.Stats, error) {
	if e.cfg.Budget != nil {
		ctx = operator.WithBudget(ctx, e.cfg.Budget(ctx, q, p.sub))
	}
	m := merge.New(p.Plan, e.keep(ctx, p))
	m.Within(bounds(ctx))
	if how == dispatch.PartialAggregation {
		m.AllowRounding()
	}
	if q.AllowPartial {
		inner, cancel := leaveTime(ctx)
		defer cancel()
		ctx = inner
	}
	ran := node.begin("run")
	stats, err := e.cfg.Exec.RunWith(ctx, p.Plan, dispatch.Options{Aggregation: how, AllowMissing: q.AllowPartial, Trace: node != nil},
		func(part scanplan.KeyRange, records []batch.Record) error {
			for _, r := range records {
				if err := m.Add(part, r); err != nil {
					return err
				}
			}
			return nil
		})
	ran(attributes(stats)).parts(stats.Trace)
	return m, stats, err
}

// bounds are those of a query's context: its account of memory, its end, and what
// its answer may hold.
func bounds(ctx context.Context) merge.Bounds {
	a := memory.Of(ctx)
	return merge.Bounds{
		Reserve: func(n int64) error { return a.Reserve(ctx, n) },
		Release: a.Release,
		Check:   func() error { return ended(ctx) },
		Points:  planPointsOf(ctx).add,
	}
}

// ended is why a context has ended, in the words of package exec, nil while it
// has not.
func ended(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w while its groups were made", dispatch.ErrDeadline)
	}
	return context.Cause(ctx)
}

// leaveTime keeps a tenth of the time for what comes after the run: names of an
// answer that is allowed to be incomplete.
func leaveTime(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/10))
}

// merging is how the parts of a plan may answer. Names that row keys cannot
// express are looked at series by series, and of an answer that may be
// incomplete nothing can be done twice.
func (e *Engine) merging(q *query.Query, p planned) dispatch.Aggregation {
	switch {
	case p.PostFilter != nil, q.AllowPartial:
		return dispatch.PerSeries
	case q.Mode != "":
		return dispatch.Aggregation(q.Mode)
	case e.strict.has(p.Plan, time.Now()):
		return dispatch.PerSeries
	}
	return dispatch.Auto
}
