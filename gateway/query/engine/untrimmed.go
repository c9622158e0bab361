package engine

import (
	"context"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine/stage"
)

// Untrimmed is a group with the points of all times that its rows hold, as functions of
// several series see them, and with the UID of its metric.
type Untrimmed struct {
	Result
	MetricUID encoding.UID
}

// RunUntrimmed answers untrimmed queries of one sub-query each, see query.Query.Earlier:
// out[i] are the groups of queries[i]. The answer of a plan with one bucket for the whole query has
// no other times. Stats.Queries are by the index of the sub-query. The errors are those
// of Run. The points may be shared with the result cache and must not be changed.
func (e *Engine) RunUntrimmed(ctx context.Context, queries []*query.Query,
	opts Options) (out [][]Untrimmed, total Stats, err error) {
	plans := make([]subPlan, len(queries))
	for i, q := range queries {
		compiled, err := e.compileQuery(ctx, q)
		if err != nil {
			return nil, total, err
		}
		plans[i] = compiled[0]
		opts.Plans.add(compiled)
	}

	out = make([][]Untrimmed, len(plans))
	stats := make([]dispatch.Stats, len(plans))
	points := stage.NewAnswerPoints(opts.Points)
	err = e.forEach(ctx, len(plans), func(ctx context.Context, i int) (err error) {
		r := e.request(ctx, queries[i], plans[i])
		r.Points, r.Proofs = points.Plan(), opts.Proofs
		out[i], stats[i], err = e.untrimmedGroups(ctx, r)
		return err
	})
	if err != nil {
		return nil, total, err
	}

	for i, p := range plans {
		// One sub-query may be read at several times, and so have several plans.
		for len(total.Queries) <= p.sub.Index {
			total.Queries = append(total.Queries, dispatch.Stats{})
		}
		total.Queries[p.sub.Index].Add(stats[i])
		total.Stats.Add(stats[i])
	}
	return out, total, nil
}

// untrimmedGroups answers one request.
func (e *Engine) untrimmedGroups(ctx context.Context, r *stage.Request) ([]Untrimmed, dispatch.Stats, error) {
	// Functions of several series need points, which such a sub-query lacks.
	if r.Sub.Histogram() {
		return nil, dispatch.Stats{}, nil
	}
	results, stats, err := e.answerSubQuery(ctx, r)
	if err != nil {
		return nil, stats, err
	}
	out := make([]Untrimmed, len(results))
	for i := range results {
		out[i] = Untrimmed{results[i], r.Plan.Metric}
	}
	return out, stats, nil
}
