package queryroutes

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/gexp"
	"downpour/pushdown/process/memory"
)

// gexpRequest is one request to /api/query/gexp.
type gexpRequest struct {
	*query.Query
	*gexp.Expressions
	// reads are what has to be read, each a query of one sub-query, and at the place
	// there of each metric of the expressions.
	reads []*query.Query
	at    []int
}

// gexp handles /api/query/gexp: the parameters of GET /api/query, and expressions. It is
// bounded, counted and answered as a query is.
// Source: QueryRpc.handleExpressionQuery.
func (h *Handlers) gexp(w http.ResponseWriter, r *http.Request) (err error) {
	start := time.Now()
	defer func() { h.count(err, start) }()

	g, err := h.parseGexp(r)
	if err != nil {
		return err
	}

	// ctx bounds the work, request has no deadline: a client may take longer to read.
	request, entered := h.Limits.Enter(r.Context(), memory.Query)
	defer entered.Close()
	ctx, cancel := context.WithTimeout(request, h.Timeout)
	defer cancel()
	if g.Explain {
		return h.explainReads(ctx, w, r, g)
	}

	entry := h.Running.Begin(r, g.Query, entered.Cost, h.Now())
	defer h.finish(entry, &err)
	results, err := h.runGexp(ctx, g, entry)
	entered.Computed() // only sending is left: a slow client keeps no heavy query waiting
	if err != nil {
		return err
	}
	a := &jsonAnswer{h: h, w: w, r: r.WithContext(request), q: g.Query, entry: entry, entered: entered, start: start}
	return a.send(results, nil)
}

// parseGexp reads the request and reserves its memory.
func (h *Handlers) parseGexp(r *http.Request) (*gexpRequest, error) {
	method, err := httpio.Method(r)
	switch {
	case err != nil:
		return nil, err
	case method == http.MethodPost:
		// OpenTSDB's message, without the reason: a body has no expressions.
		return nil, query.RunFault(`Cannot invoke "java.util.List.size()" because "this.val$expressions" is null`)
	case method != http.MethodGet && method != http.MethodHead:
		return nil, httpio.MethodNotAllowed(method)
	}

	g := &gexpRequest{}
	values := r.URL.Query()
	parser := query.Parser{Now: h.Now(), Zone: h.Zone, Fix: h.Fix, SubQueries: h.SubQueries}
	var places []int // of each metric of the expressions, the sub-query that it has become
	g.Query, places, err = parser.URIWith(values, func(limit int) ([]string, error) { return g.parse(values, limit) })
	if err != nil {
		return nil, err
	}
	if err := g.plan(places); err != nil {
		return nil, err
	}
	return g, memory.Reserve(r.Context(), g.Size())
}

// parse reads the expressions and returns their metrics.
func (g *gexpRequest) parse(values url.Values, limit int) (metrics []string, err error) {
	if g.Expressions, err = gexp.Parse(values["exp"], limit); err != nil {
		return nil, err
	}
	for _, m := range g.Metrics {
		metrics = append(metrics, m.Text)
	}
	return metrics, nil
}

// plan returns what to read. places are the sub-queries of the expressions' metrics.
func (g *gexpRequest) plan(places []int) error {
	if !g.HasTimeShift {
		// OpenTSDB reads all sub-queries, and takes the first for the first metric and
		// so on, although sub-queries of m parameters come before them and equal ones
		// exist only once. If that leaves too few, computing fails as it does there.
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

// runGexp reads the data and makes the results.
func (h *Handlers) runGexp(ctx context.Context, g *gexpRequest, entry *querylog.Entry) ([]engine.Result, error) {
	groups, stats, err := h.Engine.RunUntrimmed(ctx, g.reads, engine.Options{Plans: entry.Plans})
	if entry.Stats = stats; err != nil {
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
	entry.Stats.Groups, entry.Stats.PointsOut = len(results), points
	if err := h.AnswerLimits.checkJSON(points); err != nil {
		return nil, err
	}
	return results, h.addGlobalAnnotations(ctx, g.Query, results)
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
	// The result of a series function belongs to the first sub-query, and has an empty list of
	// annotations. Source: EDPtoDPS.
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

// explainReads answers with the plans of everything that is read, in a list.
func (h *Handlers) explainReads(ctx context.Context, w http.ResponseWriter, r *http.Request, g *gexpRequest) error {
	all := []engine.Explained{}
	for _, read := range g.reads {
		plans, err := h.Engine.Explain(ctx, read)
		if err != nil {
			return err
		}
		all = append(all, plans...)
	}
	return httpio.WriteJSON(w, r, http.StatusOK, all)
}

// requestGuard bounds work by a request: by the memory that it may hold, and its end.
type requestGuard struct{ ctx context.Context }

// Reserve reserves n more bytes of memory.
func (g requestGuard) Reserve(n int64) error { return memory.Reserve(g.ctx, n) }

// Check returns why the request has ended, nil while it has not.
func (g requestGuard) Check() error { return context.Cause(g.ctx) }
