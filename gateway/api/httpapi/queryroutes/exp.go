package queryroutes

import (
	"context"
	"net/http"
	"time"

	"downpour/encoding/batch"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/exp"
	"downpour/pushdown/process/memory"
)

// expRequest is a request for /api/query/exp with the query that reads its metrics.
type expRequest struct {
	*exp.Request
	query *query.Query
	bySub []int // the sub-query of each metric
}

// exp handles /api/query/exp. Source: QueryRpc.handleExpressionQuery, QueryExecutor.
func (h *Handlers) exp(w http.ResponseWriter, r *http.Request) (err error) {
	start := time.Now()
	defer func() { h.Count.Query(statusOf(err), time.Since(start)) }()

	// The context of the work has a deadline, request has none: a client may take
	// longer to read the answer.
	request, entered := h.Limits.Enter(r.Context(), memory.Query)
	defer entered.Close()
	ctx, cancel := context.WithTimeout(request, h.Timeout)
	defer cancel()

	x, err := h.readExp(ctx, w, r)
	if err != nil {
		return err
	}
	if x.query.Explain {
		return h.explain(ctx, w, r, x.query)
	}
	entry := h.Running.Begin(r, x.query, h.Now())
	defer func() { h.Running.Finish(entry, statusOf(err), err, h.Now()) }()

	arrow, check := wantsArrow(r), h.AnswerLimits.checkJSON
	var compression batch.Compression
	if arrow {
		check = h.AnswerLimits.checkArrow
		if compression, err = bufferCompression(r); err != nil {
			return err
		}
	}

	tables, err := h.tables(ctx, x, check, &entry.Stats)
	entered.Computed()
	if err != nil {
		return err
	}
	if arrow {
		return h.expArrow(w, r.WithContext(request), x, tables, compression, entry)
	}
	work := newWorkTime(request, h.Timeout-time.Since(start))
	err = h.respond(w, r.WithContext(request), x.query, nil, func(w http.ResponseWriter) error {
		setIncompleteHeader(w, &entry.Stats)
		return writeExp(w, x, work, tables, trailers(x.query, nil, &entry.Stats))
	})
	entry.Sent = err == nil
	return err
}

// expBytes bounds the memory of a request for each byte of its body, read and parsed:
// the shortest parts of one are an output and an operator.
const expBytes = 40

func (h *Handlers) readExp(ctx context.Context, w http.ResponseWriter, r *http.Request) (*expRequest, error) {
	method, err := httpio.Method(r)
	if err != nil {
		return nil, err
	}
	var body []byte
	switch method {
	case http.MethodGet, http.MethodHead: // taken for a POST without a body
	case http.MethodDelete:
		// Where deleting is enabled, it is a POST: nothing is deleted.
		if !h.AllowDelete {
			return nil, h.checkDelete(w, r)
		}
		fallthrough
	case http.MethodPost:
		if body, err = httpio.ReadBody(w, r); err != nil {
			return nil, err
		}
	default:
		return nil, httpio.MethodNotAllowed(method)
	}

	if err := memory.Reserve(ctx, int64(len(body))*expBytes); err != nil {
		return nil, err
	}
	parser := query.Parser{Now: h.Now(), Zone: h.Zone, Fix: h.Fix, SubQueries: h.SubQueries}
	parsed, err := exp.Parse(body, parser)
	if err != nil {
		return nil, err
	}
	q, bySub, err := parsed.Query(parser)
	if err != nil {
		return nil, err
	}
	return &expRequest{parsed, q, bySub}, q.ReadURIOptions(r.URL.Query())
}

// tables reads the metrics and computes the outputs, of at most as many values as check
// permits.
func (h *Handlers) tables(ctx context.Context, x *expRequest, check func(int) error, stats *engine.Stats) ([]exp.Table, error) {
	results, s, err := h.Engine.Run(ctx, x.query)
	if *stats = s; err != nil {
		return nil, err
	}

	values := 0
	tables, err := x.Tables(x.groups(results), x.query.Start, x.query.End, exp.Bounds{
		Reserve: func(n int64) error { return memory.Reserve(ctx, n) },
		Release: func(n int64) { memory.Release(ctx, n) },
		Check:   func() error { return context.Cause(ctx) },
		Points: func(n int) error {
			values += n
			return check(values)
		},
	})
	stats.PointsOut = values
	return tables, err
}

// groups returns the groups of each metric.
func (x *expRequest) groups(results []engine.Result) [][]exp.Group {
	bySub := make([][]exp.Group, len(x.query.Queries))
	for i := range results {
		r := &results[i]
		// A group with annotations and no points has no name, and no tags to join it by.
		if r.Metric != "" {
			bySub[r.Query] = append(bySub[r.Query], expGroup(r))
		}
	}
	out := make([][]exp.Group, len(x.bySub))
	for i, sub := range x.bySub {
		out[i] = bySub[sub]
	}
	return out
}

func expGroup(r *engine.Result) exp.Group {
	g := exp.Group{Labels: exp.Labels{Metrics: []string{r.Metric}}, Points: r.Points}
	for i, t := range r.Tags {
		g.Tags = append(g.Tags, exp.Tag{K: t.K, V: t.V, UIDs: r.TagUIDs[i]})
	}
	for i, name := range r.AggregateTags {
		g.Aggregated = append(g.Aggregated, exp.TagKey{Name: name, UID: r.AggregateUIDs[i]})
	}
	return g
}
