package promroutes

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra/prometheus/promql"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator/window"
)

// source reads for one request, and counts what it reads in the request's entry.
type source struct {
	h       *handlers
	reading *queryroutes.Reading
	// explain has the plans of what would be read; nothing is read then.
	explain *[]engine.Explained
}

// Metrics returns the metrics that begin with a prefix.
func (s *source) Metrics(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for e, err := range s.h.names.Each(ctx, encoding.UIDMetric, prefix) {
			if !yield(e.Name, err) {
				return
			}
		}
	}
}

// KnownMetric reports whether there is a metric of a name.
func (s *source) KnownMetric(ctx context.Context, name string) (bool, error) {
	known, err := s.h.names.ResolveMany(ctx, encoding.UIDMetric, []string{name})
	return len(known) > 0, err
}

// TagValues returns the tag values that begin with a prefix.
func (s *source) TagValues(ctx context.Context, prefix string, limit int) ([]string, bool, error) {
	entries, complete, err := s.h.names.Enumerate(ctx, encoding.UIDTagV, prefix, limit)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names, complete, err
}

// KnownTagValues returns those of some tag values that there are.
func (s *source) KnownTagValues(ctx context.Context, names []string) ([]string, error) {
	known, err := s.h.names.ResolveMany(ctx, encoding.UIDTagV, names)
	if err != nil {
		return nil, err
	}
	var kept []string
	for _, n := range names {
		if known[n] != nil {
			kept = append(kept, n)
		}
	}
	return kept, nil
}

// queryOf returns the query for a read, a sub-query for each metric.
func (s *source) queryOf(r promql.Read) *query.Query {
	q := &query.Query{
		StartText: strconv.FormatInt(r.Start, 10), EndText: strconv.FormatInt(r.End, 10), Start: r.Start, End: r.End,
		NoAnnotations: true, MSResolution: true,
	}
	q.Fix = s.h.Fix
	for i, metric := range r.Metrics {
		q.Queries = append(q.Queries, query.SubQuery{
			Index: i, Aggregator: "none", Metric: metric, Filters: r.Filters, RollupUsage: query.RollupRaw,
			Window: r.Window,
		})
	}
	return q
}

// grouped returns a window with groups. The error is plan.ErrUngrouped where a label may be stored under a tag key that
// does not exist, as series that have the key may come while others are read; and for counts, where a series may have
// two row keys and would count twice.
func (s *source) grouped(ctx context.Context, w *scanplan.Window, by *promql.Groups) (*scanplan.Window, error) {
	if s.h.twoKeys && by.Function == window.Count { //fault:series-of-two-keys-counted-twice TestPromQL_specialChars
		return nil, fmt.Errorf("%w: a series may have two row keys", plan.ErrUngrouped)
	}

	grouped := *w
	grouped.Groups = &scanplan.WindowGroups{Function: by.Function, Without: by.Without}
	keys := by.TagKeys()
	uids, err := s.h.names.ResolveMany(ctx, encoding.UIDTagK, keys)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		uid, known := uids[key]
		if !known {
			return nil, fmt.Errorf("%w: there is no tag key %q", plan.ErrUngrouped, key)
		}
		grouped.Groups.Keys = append(grouped.Groups.Keys, uid)
	}
	slices.SortFunc(grouped.Groups.Keys, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
	return &grouped, nil
}

// Read reads series, as /api/query does with the aggregator none.
func (s *source) Read(ctx context.Context, r promql.Read) (found []engine.Result, err error) {
	if r.Groups != nil {
		if r.Window, err = s.grouped(ctx, r.Window, r.Groups); err != nil {
			return nil, err
		}
	}
	q, opts := s.queryOf(r), engine.Options{Plans: s.reading.Entry.Plans}
	switch {
	case s.explain != nil:
		var plans []engine.Explained
		plans, err = s.h.Engine.Explain(ctx, q)
		*s.explain = append(*s.explain, plans...)
	case r.NoPoints:
		found, err = s.h.Engine.Series(ctx, q, opts)
	default:
		var stats engine.Stats
		found, stats, err = s.h.Engine.Run(ctx, q, opts)
		s.reading.Entry.Stats.Stats.Add(stats.Stats)
	}
	// A tag key that no series has, or the only metric, which another client has just deleted.
	if unknown, ok := unknownName(err); ok && (unknown.Kind == encoding.UIDTagK || len(r.Metrics) == 1) {
		return nil, nil
	}
	return found, err
}
