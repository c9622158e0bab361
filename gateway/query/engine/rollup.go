package engine

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
)

// refuseRollups returns an error if a plan reads rollups, for a query that does something
// with rows which is right for rows of raw data alone.
func refuseRollups(plans []subPlan, does string) error {
	for _, p := range plans {
		if p.MayReadRollups {
			e := query.Bad("A query that %s cannot read rollups, as sub query %d would", does, p.sub.Index)
			e.Details = "Ask for raw data, with rollupUsage=" + query.RollupRaw
			return e
		}
	}
	return nil
}

// allGroups returns the groups of a sub-query: those of its plan or of a fallback, and from
// the cut on, if there is one, those of raw data. It also returns the plan that they are of.
func (e *Engine) allGroups(ctx context.Context, q *query.Query, p subPlan, node *Node) (of subPlan, groups []merge.Group, stats dispatch.Stats, err error) {
	err = inTurn(ctx, node, func() (err error) {
		of, groups, stats, err = e.tryAllGroups(ctx, q, p, node)
		return err
	})
	return of, groups, stats, err
}

// tryAllGroups is allGroups once. After an error it holds no memory of the request, but for
// groups before a cut.
func (e *Engine) tryAllGroups(ctx context.Context, q *query.Query, p subPlan, node *Node) (subPlan, []merge.Group, dispatch.Stats, error) {
	// Before p may become a fallback on raw data, which ends at the cut as well and has no rest.
	rest := p.Rest()
	p, groups, stats, err := e.firstGroups(ctx, q, p, node)
	if err != nil || rest == nil {
		return p, groups, stats, err
	}

	r := subPlan{p.sub, rest}
	if q.Untrimmed {
		r = r.untrimmed()
	}
	ctx, _ = withPlanPoints(ctx) // a counter of its own, because the points of both plans count
	raw, more, err := e.groups(ctx, q, r, node)
	stats.Add(more)
	return p, joinAt(groups, raw, p.Cut()), stats, err
}

// firstGroups returns the groups of a plan or, while there are none, of its fallbacks, and
// the plan that they are of. Source: TsdbQuery.FallbackRollupOnEmptyResult.
func (e *Engine) firstGroups(ctx context.Context, q *query.Query, p subPlan, node *Node) (subPlan, []merge.Group, dispatch.Stats, error) {
	var total dispatch.Stats
	for {
		groups, stats, err := e.groups(ctx, q, p, node)
		total.Add(stats)

		// An answer from which rows are missing may be empty for that reason alone: no fallback.
		next := p.Fallback()
		if err != nil || len(groups) > 0 || next == nil || len(stats.Missing) > 0 {
			return p, groups, total, err
		}

		node.add("again from another table", 0, map[string]any{"empty": p.Reads, "next": next.Reads})
		p = subPlan{p.sub, next}
		if q.Untrimmed {
			p = p.untrimmed()
		}
		p.sub.RollupTable = p.Reads // for showQuery
	}
}

// joinAt joins the groups of two plans by their keys: each has the points of before that
// lie before the cut, in ms, and those of after that do not. It shares memory with both.
// Source: SplitRollupSpanGroup.
func joinAt(before, after []merge.Group, cut int64) []merge.Group {
	var out []merge.Group
	at := map[string]int{}
	for i := range before {
		g := before[i]
		g.Points = pointsBetween(&g.Points, 0, cut-1)
		at[string(g.Key)] = len(out)
		out = append(out, g)
	}

	for i := range after {
		g := after[i]
		g.Points = pointsBetween(&g.Points, cut, maxTime)
		if k, ok := at[string(g.Key)]; ok {
			out[k] = joined(&out[k], &g)
		} else {
			out = append(out, g)
		}
	}
	slices.SortStableFunc(out, func(a, b merge.Group) int { return bytes.Compare(a.Key, b.Key) })
	return out
}

// maxTime is later than every point, in ms.
const maxTime = 1 << 53

// joined returns two groups of one key as one.
func joined(a, b *merge.Group) merge.Group {
	out := *a
	out.Points = encoding.Points{Time: slices.Concat(a.Points.Time, b.Points.Time), Bits: slices.Concat(a.Points.Bits, b.Points.Bits),
		Float: slices.Concat(a.Points.Float, b.Points.Float)}
	out.Spans, out.Notes = slices.Concat(a.Spans, b.Spans), slices.Concat(a.Notes, b.Notes)
	out.TSUIDs = sortedUIDs(slices.Concat(a.TSUIDs, b.TSUIDs))
	out.Aggregated = sortedUIDs(slices.Concat(a.Aggregated, b.Aggregated))

	// A tag stays one if no member has another value.
	out.Tags = nil
	all := slices.Concat(a.Tags, b.Tags)
	slices.SortFunc(all, func(x, y encoding.TagPair) int { return cmp.Or(bytes.Compare(x.K, y.K), bytes.Compare(x.V, y.V)) })
	// Equal keys stand together now, and equal values of one key.
	for i, t := range all {
		same := i > 0 && bytes.Equal(all[i-1].K, t.K)
		switch {
		case same && bytes.Equal(all[i-1].V, t.V): // both groups have the tag
		// The key has two values, of which t is the later or the earlier one.
		case same || i+1 < len(all) && bytes.Equal(all[i+1].K, t.K) && !bytes.Equal(all[i+1].V, t.V):
			out.Aggregated = append(out.Aggregated, t.K)
		default:
			out.Tags = append(out.Tags, t)
		}
	}
	out.Aggregated = sortedUIDs(out.Aggregated)
	// A key that one of the groups has aggregated has several values, whatever the other one has.
	out.Tags = slices.DeleteFunc(out.Tags, func(t encoding.TagPair) bool {
		_, several := slices.BinarySearchFunc(out.Aggregated, t.K, func(k, want encoding.UID) int { return bytes.Compare(k, want) })
		return several
	})
	return out
}

// sortedUIDs sorts UIDs and removes duplicates, in place.
func sortedUIDs(uids []encoding.UID) []encoding.UID {
	slices.SortFunc(uids, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
	return slices.CompactFunc(uids, func(a, b encoding.UID) bool { return bytes.Equal(a, b) })
}
