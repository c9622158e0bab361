package stage

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"downpour/encoding"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/plan"
)

// fallback answers a request from the table of its plan or, while that has nothing, from the next
// one. Source: TsdbQuery.FallbackRollupOnEmptyResult.
type fallback struct{ next Stage }

func (s *fallback) Groups(ctx context.Context, r *Request) (Answer, error) {
	var total dispatch.Stats
	for {
		a, err := s.next.Groups(ctx, r)
		total.Add(a.Stats)
		a.Stats = total

		// An answer from which rows are missing may be empty for that reason alone: no fallback.
		next := r.Fallback()
		if err != nil || len(a.Groups) > 0 || next == nil || len(total.Missing) > 0 {
			return a, err
		}

		r.Trace.Add("again from another table", 0, map[string]any{"empty": r.Reads, "next": next.Reads})
		r = r.ofTable(next)
		r.Sub.RollupTable = r.Reads // for showQuery
	}
}

// ofTable returns the request for the plan of another table.
func (r *Request) ofTable(p *plan.Compiled) *Request {
	out := r.With(p)
	if r.Query.Untrimmed {
		return out.Untrimmed()
	}
	return out
}

// behindCut adds raw data after the cut of a plan of rollups, if it has one. If reading
// that fails, the groups before the cut keep their memory until the query ends.
type behindCut struct {
	next Stage
	raw  Stage
}

func (s *behindCut) Groups(ctx context.Context, r *Request) (Answer, error) {
	a, err := s.next.Groups(ctx, r)
	// That of the request: a fallback on raw data ends at the cut as well, and has no rest.
	rest := r.Rest()
	if err != nil || rest == nil {
		return a, err
	}

	behind := r.ofTable(rest)
	behind.Points = r.Points.Another() // the points of both count
	raw, err := s.raw.Groups(ctx, behind)
	a.Stats.Add(raw.Stats)
	if err != nil {
		behind.Points.forget() // another try counts them again
		return a, err
	}
	a.Groups = joinAt(a.Groups, raw.Groups, a.Plan.Cut())
	return a, nil
}

// joinAt joins the groups of two plans by their keys: each has the points of before that are before
// the cut, in ms, and those of after that are not. It shares memory with both.
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
	out.Points = encoding.Points{
		Time:  slices.Concat(a.Points.Time, b.Points.Time),
		Bits:  slices.Concat(a.Points.Bits, b.Points.Bits),
		Float: slices.Concat(a.Points.Float, b.Points.Float),
	}
	out.Spans, out.Notes = slices.Concat(a.Spans, b.Spans), slices.Concat(a.Notes, b.Notes)
	out.TSUIDs = sortedUIDs(slices.Concat(a.TSUIDs, b.TSUIDs))
	out.Aggregated = sortedUIDs(slices.Concat(a.Aggregated, b.Aggregated))

	// A tag stays one if no member has another value.
	out.Tags = nil
	all := slices.Concat(a.Tags, b.Tags)
	slices.SortFunc(all, func(x, y encoding.TagPair) int {
		return cmp.Or(bytes.Compare(x.K, y.K),
			bytes.Compare(x.V, y.V))
	})
	// Equal keys are adjacent now, and equal values of one key.
	for i, t := range all {
		same := i > 0 && bytes.Equal(all[i-1].K, t.K)
		switch {
		case same && bytes.Equal(all[i-1].V, t.V): // both groups have the tag
		// The key has two values; t is the later or the earlier one.
		case same || i+1 < len(all) && bytes.Equal(all[i+1].K, t.K) && !bytes.Equal(all[i+1].V, t.V):
			out.Aggregated = append(out.Aggregated, t.K)
		default:
			out.Tags = append(out.Tags, t)
		}
	}
	out.Aggregated = sortedUIDs(out.Aggregated)
	// A key that one of the groups has aggregated has several values, no matter what the other one
	// has.
	out.Tags = slices.DeleteFunc(out.Tags, func(t encoding.TagPair) bool {
		_, several := slices.BinarySearchFunc(out.Aggregated, t.K,
			func(k, want encoding.UID) int { return bytes.Compare(k, want) })
		return several
	})
	return out
}

// sortedUIDs sorts UIDs and removes duplicates, in place.
func sortedUIDs(uids []encoding.UID) []encoding.UID {
	slices.SortFunc(uids, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
	return slices.CompactFunc(uids, func(a, b encoding.UID) bool { return bytes.Equal(a, b) })
}
