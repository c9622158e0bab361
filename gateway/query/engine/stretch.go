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
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
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

// maxUnkept is how often in a row a stretch is made and not cached before none is made for a
// while. The first time its parts are not cached either, because they were not asked for
// before; with several queries at once each may cache some of them the second time.
const maxUnkept = 3

// maxStretchSeries is of how many series no stretch is made if their hours can be read side
// by side: that keeps nothing of a series, and a stretch some 300 bytes.
const maxStretchSeries = 50_000

// manySeriesFor is how long a plan is known to have more series.
const manySeriesFor = 24 * time.Hour

// noteSeries notes whether a plan that was executed has too many series for a stretch.
func (e *Engine) noteSeries(p *scanplan.Plan, stats *dispatch.Stats, now time.Time) {
	if stats.Parts > 0 && stats.Spans/int64(stats.Parts) > e.stretchSeries && e.cfg.Exec.SideBySide(p) {
		e.many.add(p, now, now)
	}
}

// cachedStretch is what the result cache keeps of a plan's older hours: their stretch, and
// what it cost to make it. It is shared among queries.
type cachedStretch struct {
	*merge.Stretch
	stats dispatch.Stats
	// refused is set once newer rows have changed what the stretch took for final. They do so
	// again at each ask, until the seam has passed them.
	refused atomic.Bool
}

// seam cuts an untrimmed plan between two hours. All rows of the first should have been
// written by now and by the end of the query, both in ms: dashboards also ask for a whole
// day of which some is still to come. ok is false where a stretch is not possible, or not
// worth it.
func seam(p *scanplan.Plan, end, now int64) (older, newer scanplan.Plan, ok bool) {
	at := min(end, now)/1000 - settledAfter
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

// executeAtSeam executes an untrimmed plan of a query that ends at end, in ms. If it can it
// reads only the rows after the seam, else all of them.
func (e *Engine) executeAtSeam(ctx context.Context, q *query.Query, p subPlan, end int64, node *Node) ([]merge.Group, dispatch.Stats, error) {
	// The rows on both sides of the seam count together.
	counted := ctx
	if e.cfg.Budget != nil {
		counted = operator.WithBudget(ctx, e.cfg.Budget(ctx, q, p.sub))
	}
	older, err := e.olderHours(counted, q, p, end, node)
	if err != nil {
		return nil, dispatch.Stats{}, err
	}
	if older == nil {
		return e.executePlan(ctx, q, p, node)
	}
	defer older.Close(ctx) // the groups have copies of its points

	stats := older.stats
	groups, more, err := e.continueStretch(counted, q, p, older, node)
	stats.Add(more)
	if errors.Is(err, merge.ErrSeam) {
		older.Refuse()
		node.add("again without the seam", 0, map[string]any{"reason": err.Error()})
		return e.executePlan(ctx, q, p, node)
	}
	return groups, stats, err
}

// OlderHours are the hours of a plan before its seam, of which only their stretch is needed.
type OlderHours struct {
	stretch  *cachedStretch
	newer    scanplan.Plan // of the hours after them
	stats    dispatch.Stats
	reserved int64 // of a stretch that was made now
}

// Stretch is what the older hours make of the groups. It is shared with other queries.
func (o *OlderHours) Stretch() *merge.Stretch { return o.stretch.Stretch }

// Plan is the plan by which the stretch is continued with newer rows.
func (o *OlderHours) Plan() *scanplan.Plan { return o.stretch.ContinuedPlan(&o.newer) }

// Seam is the base time, s, of the first newer rows.
func (o *OlderHours) Seam() int64 { return o.newer.From }

// Refuse notes that newer rows have changed what the stretch took for final.
func (o *OlderHours) Refuse() { o.stretch.refused.Store(true) }

// Close releases the memory that was reserved in ctx for the stretch. The result cache
// counts what it keeps.
func (o *OlderHours) Close(ctx context.Context) { memory.Release(ctx, o.reserved) }

// olderHours returns the older hours of an untrimmed plan of a query that ends at end, ms,
// with their stretch from the result cache or made now; nil where the plan is better
// executed as a whole. Close comes after the last use of the stretch.
func (e *Engine) olderHours(ctx context.Context, q *query.Query, p subPlan, end int64, node *Node) (*OlderHours, error) {
	began := time.Now()
	older, newer, ok := seam(p.Plan, end, began.UnixMilli())
	if !ok || e.aggregationFor(q, p) == dispatch.PartialAggregation {
		return nil, nil
	}
	without := func(reason string) (*OlderHours, error) {
		node.add("older hours", time.Since(began), map[string]any{"resultCache": "read: " + reason})
		return nil, nil
	}
	switch {
	case e.unkept.count(p.Plan, began) >= maxUnkept:
		return without("what was made of them lately could not be kept")
	case e.many.count(p.Plan, began) > 0:
		return without("too many series")
	}

	lookup := e.cfg.Exec.LookupPlan(ctx, &older, dispatch.StretchAnswer)
	if reason := lookup.Reason(); reason != "" {
		return without(reason)
	}
	if st, ok := lookup.Found().(*cachedStretch); ok {
		if st.refused.Load() {
			return without("newer rows have changed what is made of them")
		}
		stats, err := e.fromStretch(ctx, st, began, node)
		return &OlderHours{stretch: st, newer: newer, stats: stats}, err
	}

	// A stretch is read before the newer hours, not beside them: that must not be in vain.
	if !lookup.Wanted() || !lookup.Unchanged() {
		return without("they were not asked for before, or have changed since")
	}
	st, stats, err := e.makeStretch(resultcache.Proving(ctx), q, p.with(&older), node)
	if err != nil {
		return nil, err
	}
	if stats.CacheComplete() {
		lookup.Store(st)
	}
	e.noteKept(p.Plan, &older, began)
	return &OlderHours{stretch: st, newer: newer, stats: stats, reserved: st.Bytes()}, nil
}

// fromStretch spends what the rows of a stretch from the result cache would have cost:
// whether a query is refused must not depend on what was asked before.
func (e *Engine) fromStretch(ctx context.Context, st *cachedStretch, began time.Time, node *Node) (dispatch.Stats, error) {
	stats := st.stats.FromCache()
	if err := operator.BudgetOf(ctx).Spend(ctx, st.stats.Points, st.stats.Bytes); err != nil {
		return dispatch.Stats{}, err
	}
	a := attributes(stats)
	a["resultCache"] = "older hours from memory, merged: no row of them has changed"
	node.add("result cache", time.Since(began), a)
	return stats, nil
}

// noteKept notes whether the stretch that a query has made, since it began, is cached. The
// query itself need not have stored it: another one may have been first.
func (e *Engine) noteKept(p, older *scanplan.Plan, began time.Time) {
	if e.cfg.Exec.HoldsPlan(older, dispatch.StretchAnswer) {
		e.unkept.remove(p)
		return
	}
	e.unkept.add(p, began, time.Now())
}

// makeStretch reads a plan's older hours.
func (e *Engine) makeStretch(ctx context.Context, q *query.Query, p subPlan, node *Node) (*cachedStretch, dispatch.Stats, error) {
	if err := planPointsOf(ctx).set(0); err != nil {
		return nil, dispatch.Stats{}, err
	}
	m := e.newMerger(ctx, p, p.Plan)
	defer m.Free()

	stats, err := e.scanInto(ctx, q, p, dispatch.PerSeries, m, node)
	if err != nil {
		return nil, stats, err
	}

	merged := node.begin("merge older hours")
	st, err := m.FinishStretch()
	merged(nil)
	if err != nil {
		return nil, stats, err
	}
	made := &cachedStretch{Stretch: st, stats: stats}
	made.stats.Trace = nil
	return made, stats, nil
}

// continueStretch reads the newer hours of a plan and merges them with the stretch of the
// older ones.
func (e *Engine) continueStretch(ctx context.Context, q *query.Query, p subPlan, older *OlderHours, node *Node) ([]merge.Group, dispatch.Stats, error) {
	// The points of the stretch are counted with those of the answer, see groups.
	if err := planPointsOf(ctx).set(0); err != nil {
		return nil, dispatch.Stats{}, err
	}
	m := e.newMerger(ctx, p, older.Plan())
	defer m.Free()
	if err := m.Continue(older.Stretch()); err != nil {
		return nil, dispatch.Stats{}, err
	}

	stats, err := e.scanInto(ctx, q, p.with(&older.newer), dispatch.PerSeries, m, node)
	if err != nil {
		return nil, stats, err
	}
	groups, err := finish(ctx, m, node)
	return groups, stats, err
}
