package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
)

// cachedGroups is what is kept of a plan's answer: its groups with the points of
// all times that its rows have, so that a window that moves inside the hours
// finds them again, and what it has cost to make them. Names are given anew each
// time. It is shared and must not change.
type cachedGroups struct {
	groups []merge.Group
	stats  dispatch.Stats
}

// Bytes of a group beside what its columns hold, of the header of a slice, and of
// a UID with one.
const (
	groupBytes = 300
	sliceBytes = 24
	tagBytes   = sliceBytes + 8
)

// Bytes is the memory that the groups take, about.
func (r *cachedGroups) Bytes() int64 {
	n := 0
	for i := range r.groups {
		g := &r.groups[i]
		n += groupBytes + len(g.Key) + cap(g.Points.Time)*8 + cap(g.Points.Bits)*8 + cap(g.Points.Float)
		n += (2*len(g.Tags) + len(g.Aggregated)) * tagBytes
		for _, lists := range [][][]byte{g.Notes, g.Spans} {
			for _, b := range lists {
				n += sliceBytes + len(b)
			}
		}
		for _, t := range g.TSUIDs {
			n += sliceBytes + len(t)
		}
	}
	return int64(n)
}

// newCachedGroups copies groups, so that nothing else of the merge's memory stays
// with them. Of the members only the TSUIDs are kept, and one span as a sign that
// there are any.
func newCachedGroups(groups []merge.Group, stats dispatch.Stats) *cachedGroups {
	r := &cachedGroups{groups: slices.Clone(groups), stats: stats}
	r.stats.Trace = nil
	for i := range r.groups {
		g := &r.groups[i]
		g.Key = bytes.Clone(g.Key)
		g.Spans = cloned(g.Spans[:min(1, len(g.Spans))])
		g.Notes = cloned(g.Notes)
		g.TSUIDs = cloned(g.TSUIDs)
		g.Aggregated = cloned(g.Aggregated)
		g.Tags = slices.Clone(g.Tags)
		for i, t := range g.Tags {
			g.Tags[i] = encoding.TagPair{K: bytes.Clone(t.K), V: bytes.Clone(t.V)}
		}
	}
	return r
}

// cloned copies a list into one piece of memory.
func cloned[B ~[]byte](list []B) []B {
	if len(list) == 0 {
		return nil
	}
	all, out := slices.Concat(list...), make([]B, len(list))
	for i, b := range list {
		out[i], all = all[:len(b):len(b)], all[len(b):]
	}
	return out
}

// aggregationName names how the groups of a plan are made, where that changes their bits.
func aggregationName(how dispatch.Aggregation) string {
	if how == dispatch.PartialAggregation {
		return "partial"
	}
	return "exact"
}

// lookupCached asks memory for the plan's groups; nil where nothing can be kept: the
// answer hangs on names, or may be incomplete.
func (e *Engine) lookupCached(ctx context.Context, q *query.Query, p planned) *resultcache.PlanLookup {
	if p.PostFilter != nil || q.AllowPartial {
		return nil
	}
	return e.cfg.Exec.LookupPlan(ctx, p.Plan, aggregationName(e.merging(q, p)))
}

// fromCache makes the plan's groups of those that are kept. It spends as much of the
// query's budget as reading the rows would: whether a query is refused must not
// depend on what was asked before.
func (e *Engine) fromCache(ctx context.Context, q *query.Query, p planned, kept *cachedGroups, node *Node) ([]merge.Group, dispatch.Stats, error) {
	began := time.Now()
	if e.cfg.Budget != nil {
		if err := e.cfg.Budget(ctx, q, p.sub).Spend(ctx, kept.stats.Points, kept.stats.Bytes); err != nil {
			return nil, dispatch.Stats{}, err
		}
	}
	groups, stats := trimmed(kept.groups, p.Plan), kept.stats.FromCache()
	if err := planPointsOf(ctx).set(pointsIn(groups)); err != nil {
		return nil, stats, err
	}
	a := attributes(stats)
	a["resultCache"] = "answered from memory whole: no row has changed"
	node.add("recall", time.Since(began), a)
	return groups, stats, nil
}

// trimmed are groups with the points inside the plan's bounds.
func trimmed(groups []merge.Group, p *scanplan.Plan) []merge.Group {
	out := slices.Clone(groups)
	for i := range out {
		out[i].Points = inBounds(&out[i].Points, p.Start, p.End)
	}
	return out
}

// inBounds is a view of the points of a time, both bounds inclusive, to which
// nothing can be appended in place.
func inBounds(p *encoding.Points, start, end int64) encoding.Points {
	i, _ := slices.BinarySearch(p.Time, start)
	j, _ := slices.BinarySearch(p.Time, end+1)
	j = max(i, j)
	return encoding.Points{Time: p.Time[i:j:j], Bits: p.Bits[i:j:j], Float: p.Float[i:j:j]}
}

// untrimmed is the sub-query with its plan's answer for all times of its rows.
func (p planned) untrimmed() planned {
	c, plan := *p.Compiled, p.Plan.Untrimmed()
	c.Plan = &plan
	return planned{p.sub, &c}
}

// outside tells whether an error may be one of times that the query does not ask
// for.
func outside(err error) bool {
	var infinity *aggregate.InfinityError
	var merged *merge.MemoryError
	var large *memory.LimitError
	var points *tooManyPoints
	return errors.As(err, &infinity) || errors.As(err, &merged) || errors.As(err, &large) || errors.As(err, &points)
}
