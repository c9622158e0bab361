package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
)

// answerSubQuery answers one plan and names its groups.
func (e *Engine) answerSubQuery(ctx context.Context, q *query.Query, p subPlan, node *Node) ([]Result, dispatch.Stats, error) {
	if p.readsNothing() {
		return nil, dispatch.Stats{}, nil
	}

	defer e.logPlan(p)
	ctx, _ = withPlanPoints(ctx)
	p, groups, stats, err := e.allGroups(ctx, q, p, node)
	if err != nil {
		return nil, stats, err
	}

	e.tellDamaged(&stats)
	done := node.begin("name")
	results, err := e.nameGroups(ctx, q, p, groups)
	done(map[string]any{"groups": len(results)})
	return results, stats, err
}

// tellDamaged logs that an answer lacks rows that cannot be read.
func (e *Engine) tellDamaged(stats *dispatch.Stats) {
	if stats.Damaged > 0 {
		e.cfg.Log.Warn("damaged rows were left out of an answer, as fix=damaged asks", "rows", stats.Damaged, "first", stats.DamagedRow)
	}
}

// logPlan is deferred: if the goroutine panics, it logs the plan that it works on.
func (e *Engine) logPlan(p subPlan) {
	if v := recover(); v != nil {
		part, _ := json.Marshal(p.Plan)
		e.cfg.Log.Error("a query panicked, which is a fault of the program", "panic", v, "plan", string(part), "stack", string(debug.Stack()))
		panic(v) // see recovered
	}
}

// groups returns a plan's groups, from the result cache if no row has changed, from proven
// rollups, see made.go, or made by an execution that equal plans may share, see share.go.
//
// A plan that was asked for before is worth caching. It is answered for all times of
// its rows, so that a later time window inside the same hours finds the answer, and
// then trimmed to the times asked for.
func (e *Engine) groups(ctx context.Context, q *query.Query, p subPlan, node *Node) ([]merge.Group, dispatch.Stats, error) {
	groups, stats, err := e.tryGroups(ctx, q, p, node)
	var crooked *operator.CrookedError
	if !errors.As(err, &crooked) {
		return groups, stats, err
	}
	// What is made of rows that have to be cut is neither cached nor shared.
	if _, told := e.crooked.LoadOrStore(string(p.Plan.Metric), true); !told {
		e.cfg.Log.Warn("a metric has rows of no full hour: its queries take longer until gateway fsck --fix has moved their points", "row", crooked.Text)
	}
	node.add("again with rows cut at full hours", 0, map[string]any{"reason": crooked.Text})
	straight := *p.Plan
	straight.Straight = true
	return e.executePlan(ctx, q, p.with(&straight), node)
}

// tryGroups is groups for a plan without crooked rows, see operator.CrookedError.
func (e *Engine) tryGroups(ctx context.Context, q *query.Query, p subPlan, node *Node) ([]merge.Group, dispatch.Stats, error) {
	began := time.Now()
	lookup := e.lookUpCached(ctx, q, p)
	noteUnproven(lookup, began, node)
	if lookup.Found() != nil {
		return e.ownGroups(ctx, q, p, lookup, node)
	}
	if groups, stats, ok, err := e.fromRollups(ctx, q, p, node); ok || err != nil {
		return groups, stats, err
	}
	return e.madeGroups(ctx, q, p, lookup, node)
}

// ownGroups returns the groups of a plan that is executed for one query. lookup is that of the
// plan.
func (e *Engine) ownGroups(ctx context.Context, q *query.Query, p subPlan, lookup *resultcache.PlanLookup, node *Node) ([]merge.Group, dispatch.Stats, error) {
	if cached, ok := lookup.Found().(*cachedGroups); ok {
		return e.fromCache(ctx, q, p, cached, node)
	}
	if lookup.Wanted() {
		groups, stats, err := e.executeAtSeam(provingIf(ctx, lookup), q, p.untrimmed(), p.Plan.End, node)
		if err == nil && stats.CacheComplete() {
			lookup.Store(newCachedGroups(groups, stats))
		}
		if err == nil {
			groups = trimmed(groups, p.Plan)
			// Of the points that were counted, the answer has those that are left.
			return groups, stats, planPointsOf(ctx).set(pointsIn(groups))
		}
		if !mayLieOutsideQuery(err) {
			return nil, stats, err
		}
		// The cause may be a time that the query does not ask for: try without it.
	}
	return e.executePlan(ctx, q, p, node)
}

// provingIf returns a context in which a plan's answer can be cached even if those of its
// parts are too large. That is worth the proofs only if the rows do not change all the time.
func provingIf(ctx context.Context, lookup *resultcache.PlanLookup) context.Context {
	if lookup.Unchanged() {
		return resultcache.Proving(ctx)
	}
	return ctx
}

// pointsIn counts the points of groups.
func pointsIn(groups []merge.Group) (n int) {
	for i := range groups {
		n += groups[i].Points.Len()
	}
	return n
}

// executePlan executes a plan and merges its parts. It executes the plan a second
// time, with per-series aggregation, if partial aggregates cannot give the answer or
// take more memory than a part may have.
func (e *Engine) executePlan(ctx context.Context, q *query.Query, p subPlan, node *Node) ([]merge.Group, dispatch.Stats, error) {
	how := e.aggregationFor(q, p)
	groups, stats, err := e.scanAndMerge(ctx, q, p, how, node)
	// Of histograms, sums of groups take the least.
	if how != dispatch.PerSeries && p.Plan.Histograms == nil && (errors.Is(err, merge.ErrOrder) || partialsTooLarge(err, stats) || e.sideBySideTooLarge(p.Plan, err)) {
		now := time.Now()
		e.refused.add(p.Plan, now, now)
		node.add("again with per-series aggregation", 0, map[string]any{"reason": err.Error()})
		groups, stats, err = e.scanAndMerge(ctx, q, p, dispatch.PerSeries, node)
	}
	if err == nil && how != dispatch.PartialAggregation {
		e.noteSmallGroups(p.Plan, groups, stats)
	}
	e.noteSeries(p.Plan, &stats, time.Now())
	return groups, stats, err
}

// maxSmallGroups is how many series a plan may have that is executed per series because its
// groups are small, in this process: their columns are in memory together.
const maxSmallGroups = 20_000

// noteSmallGroups notes a plan whose groups have hardly more than one series. A partial
// aggregate is larger than the value of a series, and takes longer to make and to merge, so that
// the next plan like it is executed per series. That notes it again, while it is so.
func (e *Engine) noteSmallGroups(p *scanplan.Plan, groups []merge.Group, stats dispatch.Stats) {
	if p.Histograms != nil || p.Downsample == nil || len(p.GroupBy) == 0 {
		return
	}
	series := 0
	for i := range groups {
		series += len(groups[i].Spans)
	}
	if series >= 2*len(groups) || stats.Remote == 0 && series > maxSmallGroups {
		return
	}
	if now := time.Now(); stats.Partial > 0 || e.small.count(p, now) > 0 {
		e.small.add(p, now, now)
	}
}

// partialsTooLarge reports whether partial aggregates took more memory than they may.
func partialsTooLarge(err error, stats dispatch.Stats) bool {
	var limit *operator.LimitError
	// Without a partial part it was the columns of series that took the memory, and would again.
	return errors.As(err, &limit) && (limit.What == operator.States || limit.What == operator.Memory && stats.Partial > 0)
}

// sideBySideTooLarge reports whether a plan whose hours are read side by side needs more
// memory than one request may have. Each hour has blocks of its own and each group all
// buckets at once: where the budget is small, columns of series may still fit.
func (e *Engine) sideBySideTooLarge(p *scanplan.Plan, err error) bool {
	var large *memory.LimitError
	return errors.As(err, &large) && e.cfg.Exec.SideBySide(p)
}

// scanAndMerge executes a plan once and makes its groups.
func (e *Engine) scanAndMerge(ctx context.Context, q *query.Query, p subPlan, how dispatch.Aggregation, node *Node) ([]merge.Group, dispatch.Stats, error) {
	// The plan may be executed a second time: the points of the first were thrown away.
	if err := planPointsOf(ctx).set(0); err != nil {
		return nil, dispatch.Stats{}, err
	}

	m, stats, err := e.scan(ctx, q, p, how, node)
	defer m.Free()
	if err != nil {
		return nil, stats, err
	}

	groups, err := finish(ctx, m, node)
	return groups, stats, err
}

// namedBytes is about what a group takes beside its points, with the names that it gets.
const namedBytes = 900

// finish makes the groups of what a merger got, and reserves the memory of their names.
func finish(ctx context.Context, m *merge.Merger, node *Node) ([]merge.Group, error) {
	merged := node.begin("merge")
	groups, err := m.Finish()
	merged(map[string]any{"groups": len(groups)})
	if err != nil {
		return nil, err
	}
	if err := memory.Reserve(ctx, int64(len(groups))*namedBytes); err != nil {
		memory.Release(ctx, int64(pointsIn(groups))*merge.PointBytes) // nobody gets them
		return nil, err
	}
	return groups, nil
}

// scan executes a plan and returns a merger with what its parts returned. The merger
// holds memory until Free, also if scan returns an error.
func (e *Engine) scan(ctx context.Context, q *query.Query, p subPlan, how dispatch.Aggregation, node *Node) (*merge.Merger, dispatch.Stats, error) {
	if e.cfg.Budget != nil {
		ctx = operator.WithBudget(ctx, e.cfg.Budget(ctx, q, p.sub))
	}
	m := e.newMerger(ctx, p, p.Plan)
	// Only mode=partial accepts other last bits; Auto does not.
	if how == dispatch.PartialAggregation {
		m.AllowRounding()
	}
	stats, err := e.scanInto(ctx, q, p, how, m, node)
	return m, stats, err
}

// newMerger returns a merger for a sub-query's plan, in the bounds of the query that ctx
// belongs to.
func (e *Engine) newMerger(ctx context.Context, p subPlan, plan *scanplan.Plan) *merge.Merger {
	m := merge.New(plan, e.spanFilter(ctx, p))
	m.SetBounds(mergeBounds(ctx))
	return m
}

// scanInto executes a plan once, in the budget of ctx, and gives the merger what its parts
// returned.
func (e *Engine) scanInto(ctx context.Context, q *query.Query, p subPlan, how dispatch.Aggregation, m *merge.Merger, node *Node) (dispatch.Stats, error) {
	// What was read in time has to be merged and named, too: only reading ends earlier, and the
	// merger keeps the bounds of the whole query.
	if q.AllowPartial {
		inner, cancel := reserveTimeForNames(ctx)
		defer cancel()
		ctx = inner
	}

	ran := node.begin("run")
	opts := dispatch.Options{Aggregation: how, AllowMissing: q.AllowPartial, Trace: node != nil}
	stats, err := e.cfg.Exec.Run(ctx, p.Plan, opts, func(part scanplan.KeyRange, records []batch.Record) error {
		for _, r := range records {
			if err := m.Add(part, r); err != nil {
				return err
			}
		}
		return nil
	})
	ran(attributes(stats)).addAttempts(stats.Trace)
	return stats, err
}

// mergeBounds are the bounds of the query that ctx belongs to: the memory that it may
// hold, its end, and the points that its answer may have.
func mergeBounds(ctx context.Context) merge.Bounds {
	a := memory.Of(ctx)
	return merge.Bounds{
		Reserve: func(n int64) error { return a.Reserve(ctx, n) },
		Release: a.Release,
		Check:   func() error { return mergeEnded(ctx) },
		Points:  planPointsOf(ctx).add,
	}
}

// mergeEnded returns why ctx has ended, nil while it has not. A deadline is reported
// as package dispatch reports it.
func mergeEnded(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w while its groups were made", dispatch.ErrDeadline)
	}
	return context.Cause(ctx)
}

// reserveTimeForNames ends the execution of a query that may be incomplete when a
// tenth of its time is left, in which its groups are merged and named.
func reserveTimeForNames(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/10))
}

// aggregationFor returns how a plan's parts may answer.
func (e *Engine) aggregationFor(q *query.Query, p subPlan) dispatch.Aggregation {
	switch {
	case p.PostFilter != nil:
		return dispatch.PerSeries // names are checked series by series
	case q.AllowPartial:
		return dispatch.PerSeries // there may be no time to execute it again
	case q.Mode != "":
		return dispatch.Aggregation(q.Mode)
	case e.refused.count(p.Plan, time.Now()) > 0: // it would be executed twice
		return dispatch.PerSeries
	case e.small.count(p.Plan, time.Now()) > 0:
		return dispatch.PerSeries
	}
	return dispatch.Auto
}
