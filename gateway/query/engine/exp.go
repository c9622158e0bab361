package engine

import (
	"cmp"
	"context"

	"downpour/gateway/query"
	"downpour/gateway/query/exp"
	"downpour/pushdown/process/memory"
)

// Expressions is a request for expressions with the query that reads its metrics.
type Expressions struct {
	Request *exp.Request
	Query   *query.Query
	bySub   []int // the sub-query of each metric
}

// ReadExpressions reads the body of a request for expressions, and reserves the memory that
// it takes on the account of ctx. Its errors are that of the memory and *query.Error.
func ReadExpressions(ctx context.Context, body []byte, parser query.Parser) (*Expressions, error) {
	if err := memory.Reserve(ctx, int64(len(body))*exp.ParsedBytes); err != nil {
		return nil, err
	}
	request, err := exp.Parse(body, parser)
	if err != nil {
		return nil, err
	}
	q, bySub, err := request.Query(parser)
	if err != nil {
		return nil, err
	}
	return &Expressions{request, q, bySub}, nil
}

// Tables computes the outputs of results, which are Run's answer to x.Query. It is bounded by the
// memory account and the end of ctx, and by permit, which is called with the number of values so
// far. The results are not changed, but a table may share its times with a result. Errors are those
// of the bounds, or an *exp.DataError.
func (x *Expressions) Tables(ctx context.Context, results []Result,
	permit func(values int) error) ([]exp.Table, error) {
	values := 0
	return x.Request.Tables(x.groups(results), x.Query.Start, x.Query.End, exp.Bounds{
		Reserve: func(n int64) error { return memory.Reserve(ctx, n) },
		Release: func(n int64) { memory.Release(ctx, n) },
		Check:   func() error { return context.Cause(ctx) },
		Points: func(n int) error {
			values += n
			return permit(values)
		},
	})
}

// groups returns results as the groups of the metrics.
func (x *Expressions) groups(results []Result) [][]exp.Group {
	groups := map[int][]exp.Group{}
	for i := range results {
		r := &results[i]
		groups[r.Query] = append(groups[r.Query], expGroup(r, x.Query.Queries[r.Query].Metric))
	}

	out := make([][]exp.Group, len(x.bySub))
	for i, sub := range x.bySub {
		out[i] = groups[sub]
	}
	return out
}

// expGroup returns a result of a metric as a group: its tags with their UIDs, by which it is
// joined. A result with annotations and no points does not name its metric.
func expGroup(r *Result, metric string) exp.Group {
	g := exp.Group{
		Labels:    exp.Labels{Metrics: []string{cmp.Or(r.Metric, metric)}},
		Points:    r.Points,
		NotesOnly: r.Metric == "",
	}
	for i, t := range r.Tags {
		g.Tags = append(g.Tags, exp.Tag{K: t.K, V: t.V, UIDs: r.TagUIDs[i]})
	}
	for i, name := range r.AggregateTags {
		g.Aggregated = append(g.Aggregated, exp.TagKey{Name: name, UID: r.AggregateUIDs[i]})
	}
	return g
}
