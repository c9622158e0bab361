package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
)

// A dashboard asks for the same hours every few seconds, while points are written to the
// last of them: the answer as a whole is never the one in the result cache. So the plan is
// cut at a seam. What its older hours make of the groups is kept as a merge.Stretch, as long
// as their rows do not change, and only the newer hours are read and merged.

// settledAfter is how long after its end an hour is taken to be written completely, in s.
// If points come later, the stretch is made again.
const settledAfter = 600

// minStretch is the least number of hours that are worth a stretch.
const minStretch = 2

// cachedStretch is what the result cache keeps of a plan's older hours: their stretch, and
// what it cost to make it. It is shared among queries.
type cachedStretch struct {
	*merge.Stretch
	stats dispatch.Stats
	// refused is set once newer rows have changed what the stretch took for final. They do so
	// again at each ask, until the seam has passed them.
	refused atomic.Bool
}

// seam cuts an untrimmed plan between two hours, of which all rows of the first should have
// been written at end, in ms. ok is false where a stretch is not possible, or not worth it.
func seam(p *scanplan.Plan, end int64) (older, newer scanplan.Plan, ok bool) {
	at := end/1000 - settledAfter
	at -= at % encoding.RowSeconds
	at = min(at, p.To-encoding.RowSeconds)
	if at < p.From+minStretch*encoding.RowSeconds || !merge.CanContinue(p) {
		return older, newer, false
	}
	if older, ok = p.Between(p.From, at); ok {
		newer, ok = p.Between(at, p.To)
	}
	return older, newer, ok
}

// with returns the sub-query with another plan.
func (p subPlan) with(plan *scanplan.Plan) subPlan {
	c := *p.Compiled
	c.Plan = plan
	return subPlan{p.sub, &c}
}

// executeAtSeam executes an untrimmed plan of a query that ends at end, in ms. If it can it
// reads only the rows after the seam, else all of them.
func (e *Engine) executeAtSeam(ctx context.Context, q *query.Query, p subPlan, end int64, node *Node) ([]merge.Group, dispatch.Stats, error) {
	older, newer, ok := seam(p.Plan, end)
	if !ok || e.aggregationFor(q, p) == dispatch.PartialAggregation {
		return e.executePlan(ctx, q, p, node)
	}
	lookup := e.cfg.Exec.LookupPlan(ctx, &older, dispatch.StretchAnswer)
	st, ok := lookup.Found().(*cachedStretch)
	// A stretch is read before the newer hours, not beside them: that must not be in vain.
	if wanted := lookup.Wanted() && lookup.Unchanged(); !ok && !wanted || ok && st.refused.Load() {
		return e.executePlan(ctx, q, p, node)
	}

	// The rows on both sides of the seam count together.
	stretchCtx := ctx
	if e.cfg.Budget != nil {
		stretchCtx = operator.WithBudget(ctx, e.cfg.Budget(ctx, q, p.sub))
	}
	var stats dispatch.Stats
	if ok {
		began := time.Now()
		// Whether a query is refused must not depend on what was asked before.
		if err := operator.BudgetOf(stretchCtx).Spend(ctx, st.stats.Points, st.stats.Bytes); err != nil {
			return nil, stats, err
		}
		stats = st.stats.FromCache()
		a := attributes(stats)
		a["resultCache"] = "older hours from memory, merged: no row of them has changed"
		node.add("result cache", time.Since(began), a)
	} else {
		var err error
		if st, err = e.makeStretch(stretchCtx, q, p.with(&older), node); err != nil {
			return nil, st.stats, err
		}
		if stats = st.stats; stats.CacheComplete() {
			lookup.Store(st)
		}
	}

	groups, more, err := e.continueStretch(stretchCtx, q, p, st, &newer, node)
	stats.Add(more)
	if errors.Is(err, merge.ErrSeam) {
		st.refused.Store(true)
		node.add("again without the seam", 0, map[string]any{"reason": err.Error()})
		return e.executePlan(ctx, q, p, node)
	}
	return groups, stats, err
}

// makeStretch reads a plan's older hours. What it returns has stats also with an error.
func (e *Engine) makeStretch(ctx context.Context, q *query.Query, p subPlan, node *Node) (*cachedStretch, error) {
	st := &cachedStretch{}
	if err := planPointsOf(ctx).set(0); err != nil {
		return st, err
	}
	m := e.newMerger(ctx, p, p.Plan)
	defer m.Free()

	stats, err := e.scanInto(ctx, q, p, dispatch.PerSeries, m, node)
	st.stats = stats
	st.stats.Trace = nil
	if err != nil {
		return st, err
	}

	merged := node.begin("merge older hours")
	st.Stretch, err = m.FinishStretch()
	merged(nil)
	return st, err
}

// continueStretch reads the newer hours of a plan and merges them with the stretch of the
// older ones.
func (e *Engine) continueStretch(ctx context.Context, q *query.Query, p subPlan, st *cachedStretch, newer *scanplan.Plan, node *Node) ([]merge.Group, dispatch.Stats, error) {
	// The points of the stretch are counted with those of the answer, see groups.
	if err := planPointsOf(ctx).set(0); err != nil {
		return nil, dispatch.Stats{}, err
	}
	m := e.newMerger(ctx, p, st.ContinuedPlan(newer))
	defer m.Free()
	if err := m.Continue(st.Stretch); err != nil {
		return nil, dispatch.Stats{}, err
	}

	stats, err := e.scanInto(ctx, q, p.with(newer), dispatch.PerSeries, m, node)
	if err != nil {
		return nil, stats, err
	}
	merged := node.begin("merge")
	groups, err := m.Finish()
	merged(map[string]any{"groups": len(groups)})
	return groups, stats, err
}
