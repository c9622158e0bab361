package exp

import (
	"fmt"

	"downpour/gateway/query"
)

// Query returns the query of /api/query that reads the request's metrics, and the
// sub-query of each of them. Equal metrics have one. All errors are *query.Error.
func (r *Request) Query(parser query.Parser) (q *query.Query, bySub []int, err error) {
	q = &query.Query{
		StartText: value(r.Time.Start),
		EndText:   value(r.Time.End),
		Timezone:  value(r.Time.Timezone),
		Untrimmed: true,
	}
	known := map[string]int{}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		aggregator := m.Aggregator
		if value(aggregator) == "" {
			aggregator = r.Time.Aggregator
		}

		// Time offset and fill policy do not count: neither changes what is read.
		identity := fmt.Sprintf("%q %q %q", *m.Metric, *aggregator, value(m.Filter))
		sub, ok := known[identity]
		if !ok {
			sub = len(q.Queries)
			known[identity] = sub
			q.Queries = append(q.Queries, r.subQuery(m, *aggregator))
		}
		bySub = append(bySub, sub)
	}
	return q, bySub, parser.Complete(q)
}

// subQuery returns the sub-query that reads a metric. The downsampler's fill policy is ignored, as
// in OpenTSDB.
func (r *Request) subQuery(m *Metric, aggregator string) query.SubQuery {
	// The two flags are on as in a sub-query of /api/query that does not set them.
	s := query.SubQuery{
		Metric:         *m.Metric,
		Aggregator:     aggregator,
		Rate:           r.Time.Rate,
		UseFuzzyFilter: true,
		UseMultiGets:   true,
	}
	if u := value(r.Time.RollupUsage); u != "" {
		s.RollupUsage = query.ParseRollupUsage(u)
	}
	if d := r.Time.Downsampler; d != nil {
		s.DownsampleText = *d.Interval + "-" + *d.Aggregator
	}
	if f := r.filter(value(m.Filter)); f != nil {
		s.Filters, s.ExplicitTags = f.Tags, f.ExplicitTags
	}
	return s
}
