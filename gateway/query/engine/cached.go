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

// cachedGroups is what the result cache keeps of a plan's answer: its groups, with the
// points of all times that the plan's rows have, so that a later time window inside
// the same hours finds it too; and what it cost to make them. Names are looked up again
// for each query. It is shared among queries and must not change.
type cachedGroups struct {
	groups []merge.Group
	stats  dispatch.Stats
}

// Bytes of a group beside what its columns hold, of a slice's header, and of a UID
// with its header.
const (
	groupBytes = 300
	sliceBytes = 24
	tagBytes   = sliceBytes + 8
)

// Bytes estimates the memory that the groups take.
func (c *cachedGroups) Bytes() int64 {
	n := 0
	for i := range c.groups {
		g := &c.groups[i]
		n += groupBytes + len(g.Key) + len(g.Suffix) + cap(g.Points.Time)*8 + cap(g.Points.Bits)*8 + cap(g.Points.Float)
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

// Read returns what was read to make the groups.
func (c *cachedGroups) Read() (rows, bytes int64) { return c.stats.Rows, c.stats.Bytes }

// newCachedGroups copies groups, so that they do not keep the merger's memory alive. Of
// each group's members it keeps the TSUIDs, and one span, from which nameGroups sees
// that the group has members.
func newCachedGroups(groups []merge.Group, stats dispatch.Stats) *cachedGroups {
	c := &cachedGroups{groups: slices.Clone(groups), stats: stats}
	c.stats.Trace = nil
	for i := range c.groups {
		g := &c.groups[i]
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
	return c
}

// cloned copies a list into one allocation.
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

// planAnswer names the answer of a plan in the result cache: an aggregation that may
// change the bits of an answer has answers of its own.
func planAnswer(how dispatch.Aggregation) dispatch.PlanAnswer {
	if how == dispatch.PartialAggregation {
		return dispatch.RoundedAnswer
	}
	return dispatch.ExactAnswer
}

// lookUpCached looks up the plan's groups in the result cache. It returns nil where
// nothing can be cached: a post filter depends on names, which no version token covers,
// and an answer that is allowed to be incomplete is not the plan's.
func (e *Engine) lookUpCached(ctx context.Context, q *query.Query, p subPlan) *resultcache.PlanLookup {
	if p.PostFilter != nil || q.AllowPartial || p.Plan.Fix&scanplan.FixDamaged != 0 {
		return nil
	}
	return e.cfg.Exec.LookupPlan(ctx, p.Plan, planAnswer(e.aggregationFor(q, p)))
}

// noteUnproven says in the trace why nothing that was found would be proven.
func noteUnproven(lookup *resultcache.PlanLookup, began time.Time, node *Node) {
	if reason := lookup.Reason(); reason != "" {
		node.add("result cache", time.Since(began), map[string]any{"resultCache": "read: " + reason})
	}
}

// fromCache answers a plan with cached groups. It spends as much of the query's budget
// as reading the rows would: whether a query is refused must not depend on what was
// asked before.
func (e *Engine) fromCache(ctx context.Context, q *query.Query, p subPlan, cached *cachedGroups, node *Node) ([]merge.Group, dispatch.Stats, error) {
	began := time.Now()
	if e.cfg.Budget != nil {
		if err := e.cfg.Budget(ctx, q, p.sub).Spend(ctx, cached.stats.Points, cached.stats.Bytes); err != nil {
			return nil, dispatch.Stats{}, err
		}
	}

	groups, stats := trimmed(cached.groups, p.Plan), cached.stats.FromCache()
	if err := planPointsOf(ctx).set(pointsIn(groups)); err != nil {
		return nil, stats, err
	}

	a := attributes(stats)
	a["resultCache"] = "answered from memory whole: no row has changed"
	node.add("result cache", time.Since(began), a)
	return groups, stats, nil
}

// trimmed returns groups with the points between the plan's Start and End.
func trimmed(groups []merge.Group, p *scanplan.Plan) []merge.Group {
	out := slices.Clone(groups)
	for i := range out {
		out[i].Points = pointsBetween(&out[i].Points, p.Start, p.End)
	}
	return out
}

// pointsBetween returns a view of the points from start to end, in ms, both inclusive.
// Its capacity is limited, so that appending to it does not overwrite p.
func pointsBetween(p *encoding.Points, start, end int64) encoding.Points {
	i, _ := slices.BinarySearch(p.Time, start)
	j, _ := slices.BinarySearch(p.Time, end+1)
	j = max(i, j)
	return encoding.Points{Time: p.Time[i:j:j], Bits: p.Bits[i:j:j], Float: p.Float[i:j:j]}
}

// untrimmed returns the sub-query with a plan whose answer has all times of its rows.
func (p subPlan) untrimmed() subPlan {
	plan := p.Plan.Untrimmed()
	return p.with(&plan)
}

// mayLieOutsideQuery reports whether an error may come from times that the plan reads
// and the query does not ask for: an infinite sum, or too much memory or too many
// points.
func mayLieOutsideQuery(err error) bool {
	var infinity *aggregate.InfinityError
	var merged *merge.MemoryError
	var large *memory.LimitError
	var points *tooManyPoints
	return errors.As(err, &infinity) || errors.As(err, &merged) || errors.As(err, &large) || errors.As(err, &points)
}
