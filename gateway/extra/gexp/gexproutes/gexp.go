// Package gexproutes is /api/query/gexp: it reads the expressions of a request, has their metrics
// read as a query's are, and answers with what they make of them.
package gexproutes

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"downpour/gateway"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/extra/gexp"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// New returns the route.
func New() gateway.Extra { return gateway.Extra{Name: "gexp", Open: open} }

func open(_ context.Context, c *gateway.Core) (gateway.Parts, error) {
	h := &handlers{c.Queries}
	return gateway.Parts{Routes: map[string]httpio.Endpoint{
		"api/query/gexp": {
			Scope:   auth.Read,
			Serve:   h.Followed(h.serve),
			Reads:   httpio.GetOrPost,
			OwnTime: true,
			Absent:  httpio.WriteOnly,
		},
	}}, nil
}

// handlers answer the route, with what answers queries.
type handlers struct{ *queryroutes.Handlers }

// request is one request to /api/query/gexp.
type request struct {
	*query.Query
	*gexp.Expressions
	// reads are what has to be read, each a query of one sub-query, and at the place
	// there of each metric of the expressions.
	reads []*query.Query
	at    []int
}

// serve handles /api/query/gexp: the parameters of GET /api/query, and expressions. It is
// bounded, counted and answered as a query is.
// Source: QueryRpc.handleExpressionQuery.
func (h *handlers) serve(w http.ResponseWriter, r *http.Request) (err error) {
	start := time.Now()
	defer func() { h.Count(err, start) }()

	g, err := h.parse(r)
	switch {
	case err != nil:
		return err
	case g.Explain:
		return h.ExplainAll(w, r, g.reads)
	}
	return h.Read(w, r, start, g.Query, func(ctx context.Context, a *queryroutes.Reading) error {
		results, err := g.run(ctx, a)
		a.Computed()
		if err != nil {
			return err
		}
		return a.SendJSON(w, results)
	})
}

// parse reads a request and reserves its memory.
func (h *handlers) parse(r *http.Request) (*request, error) {
	method, err := httpio.Method(r)
	switch {
	case err != nil:
		return nil, err
	case method == http.MethodPost:
		// OpenTSDB's message, which says no more: a body has no expressions.
		return nil, query.RunFault(`Cannot invoke "java.util.List.size()" because "this.val$expressions" is null`)
	case method != http.MethodGet && method != http.MethodHead:
		return nil, httpio.MethodNotAllowed(method)
	}

	g := &request{}
	values := r.URL.Query()
	var places []int // of each metric of the expressions, the sub-query that it has become
	g.Query, places, err = h.Parser().URIWith(values,
		func(limit int) ([]string, error) { return g.parse(values, limit) })
	if err != nil {
		return nil, err
	}
	if err := g.plan(places); err != nil {
		return nil, err
	}
	return g, memory.Reserve(r.Context(), g.Size())
}

// parse reads the expressions and returns their metrics.
func (g *request) parse(values url.Values, limit int) (metrics []string, err error) {
	if g.Expressions, err = gexp.Parse(values["exp"], limit); err != nil {
		return nil, err
	}
	for _, m := range g.Metrics {
		metrics = append(metrics, m.Text)
	}
	return metrics, nil
}

// plan finds out what to read. places are the sub-queries that the metrics of the
// expressions have become.
func (g *request) plan(places []int) error {
	if !g.HasTimeShift {
		// OpenTSDB reads all sub-queries, and takes the first for the first metric and
		// so on, although sub-queries of m parameters come before them and equal ones
		// are only there once. Where that leaves too few, computing fails as it does
		// there.
		for i := range g.Queries {
			read, err := g.Earlier(i, 0) // by 0 ms: sub-query i alone, untrimmed
			if err != nil {
				return err
			}
			g.reads = append(g.reads, read)
		}
		for i := range places {
			g.at = append(g.at, i)
		}
		return nil
	}

	// timeShift and shift are errors in OpenTSDB, so there is no answer of its to keep to.
	// The most common request with them has one metric twice, now and a week ago: each
	// metric and shift is read once.
	type read struct {
		place int
		shift int64
	}
	known := map[read]int{}
	for i, place := range places {
		key := read{place, g.Metrics[i].Shift}
		at, ok := known[key]
		if !ok {
			q, err := g.Earlier(key.place, key.shift)
			if err != nil {
				return err
			}
			at = len(g.reads)
			known[key] = at
			g.reads = append(g.reads, q)
		}
		g.at = append(g.at, at)
	}
	return nil
}

// run reads the data and makes the results.
func (g *request) run(ctx context.Context, a *queryroutes.Reading) ([]engine.Result, error) {
	groups, stats, err := a.Engine.RunUntrimmed(ctx, g.reads, engine.Options{Plans: a.Entry.Plans})
	if a.Entry.Stats = stats; err != nil {
		return nil, err
	}

	data, origins := seriesOf(groups)
	env := gexp.Env{Start: g.Start, End: g.End, Guard: requestGuard{ctx}}
	series, err := g.Evaluate(env, data, g.at)
	if err != nil {
		return nil, err
	}

	results := make([]engine.Result, len(series))
	points := 0
	for i := range series {
		results[i] = resultOf(&series[i], origins, g.Query)
		points += results[i].Points.Len()
	}
	a.Entry.Stats.Groups, a.Entry.Stats.PointsOut = len(results), points
	if err := a.AnswerLimits.CheckJSON(points); err != nil {
		return nil, err
	}
	return results, a.AddGlobalAnnotations(ctx, g.Query, results)
}

// seriesOf returns the groups as series of expressions. Their origins are the places in the
// second list.
func seriesOf(groups [][]engine.Untrimmed) (data [][]gexp.Series, origins []*engine.Result) {
	data = make([][]gexp.Series, len(groups))
	for i, list := range groups {
		for k := range list {
			u := &list[k]
			s := gexp.Series{
				Metric:        u.Metric,
				MetricUID:     u.MetricUID,
				AggregateTags: u.AggregateTags,
				Points:        u.Points,
				Origin:        len(origins),
			}
			for t, tag := range u.Tags {
				s.Tags = append(s.Tags, gexp.Tag{K: tag.K, V: tag.V, UIDs: u.TagUIDs[t]})
			}
			data[i] = append(data[i], s)
			origins = append(origins, &u.Result)
		}
	}
	return data, origins
}

// resultOf returns a series as a result within the query's times.
func resultOf(s *gexp.Series, origins []*engine.Result, q *query.Query) engine.Result {
	// What a series function makes belongs to the first sub-query, and has a list of
	// annotations that is empty. Source: EDPtoDPS.
	r := engine.Result{HasNotes: true}
	if s.Origin != gexp.NoOrigin {
		r = *origins[s.Origin]
	}

	r.Metric, r.AggregateTags, r.Tags = s.Metric, s.AggregateTags, nil
	for _, t := range s.Tags {
		r.Tags = append(r.Tags, engine.Tag{K: t.K, V: t.V})
	}
	r.Points = gexp.Inside(&s.Points, q.Start, q.End)
	return r
}

// requestGuard bounds work by a request: by the memory that it may hold, and its end.
type requestGuard struct{ ctx context.Context }

// Reserve reserves n more bytes of memory.
func (g requestGuard) Reserve(n int64) error { return memory.Reserve(g.ctx, n) }

// Check returns why the request has ended, nil while it has not.
func (g requestGuard) Check() error { return context.Cause(g.ctx) }
