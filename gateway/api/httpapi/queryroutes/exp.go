package queryroutes

import (
	"context"
	"net/http"
	"time"

	"downpour/encoding/batch"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/exp"
	"downpour/pushdown/process/memory"
)

// exp handles /api/query/exp. Source: QueryRpc.handleExpressionQuery, QueryExecutor.
func (h *Handlers) exp(w http.ResponseWriter, r *http.Request) (err error) {
	start := time.Now()
	defer func() { h.Count(err, start) }()

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
	warn(w, x.Query)
	if x.Query.Explain {
		return h.explain(ctx, w, r, x.Query)
	}
	entry := h.Running.Begin(r, x.Query, entered.Cost, h.Now())
	defer h.finish(entry, &err)

	arrow, check := wantsArrow(r), h.AnswerLimits.CheckJSON
	var compression batch.Compression
	if arrow {
		check = h.AnswerLimits.checkArrow
		if compression, err = bufferCompression(r); err != nil {
			return err
		}
	}

	tables, err := h.tables(ctx, x, check, entry)
	entered.Computed() // only sending is left: a slow client keeps no heavy query waiting
	if err != nil {
		return err
	}
	if arrow {
		return h.expArrow(w, r.WithContext(request), x, tables, compression, entry)
	}
	work := newWorkTime(request, h.Timeout-time.Since(start))
	// No proofs: the engine has proven the results before it returned them.
	err = h.respond(w, r.WithContext(request), x.Query, nil, func(w http.ResponseWriter) error {
		SetIncompleteHeader(w, &entry.Stats)
		return writeExp(w, x, work, tables, trailers(request, x.Query, nil, &entry.Stats))
	})
	entry.Sent = err == nil
	return err
}

// readExp reads a request and reserves the memory that it takes.
func (h *Handlers) readExp(ctx context.Context, w http.ResponseWriter, r *http.Request) (*engine.Expressions, error) {
	method, err := httpio.Method(r)
	if err != nil {
		return nil, err
	}
	var body []byte
	switch method {
	case http.MethodGet, http.MethodHead: // treated as a POST without a body
	case http.MethodDelete:
		// Where deleting is enabled, it is a POST: nothing is deleted.
		if !h.AllowDelete {
			return nil, h.checkDelete(w, r) // is an error then
		}
		fallthrough
	case http.MethodPost:
		if body, err = httpio.ReadBody(w, r); err != nil {
			return nil, err
		}
	default:
		return nil, httpio.MethodNotAllowed(method)
	}

	x, err := engine.ReadExpressions(ctx, body, h.Parser())
	if err != nil {
		return nil, err
	}
	return x, x.Query.ReadURIOptions(r.URL.Query())
}

// tables reads the metrics and computes the outputs, of at most as many values as check
// permits.
func (h *Handlers) tables(ctx context.Context, x *engine.Expressions, check func(int) error,
	entry *querylog.Entry) ([]exp.Table, error) {
	results, stats, err := h.Engine.Run(ctx, x.Query, engine.Options{Plans: entry.Plans})
	entry.Stats = stats
	entry.Stats.PointsOut = 0 // those of the metrics are not the answer's
	if err != nil {
		return nil, err
	}

	return x.Tables(ctx, results, func(values int) error {
		entry.Stats.PointsOut = values
		return check(values)
	})
}
