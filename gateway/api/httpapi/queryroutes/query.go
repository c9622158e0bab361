package queryroutes

import (
	"context"
	"errors"
	"net/http"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/limit"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
)

// query handles /api/query. Source: QueryRpc.handleQuery.
func (h *Handlers) query(w http.ResponseWriter, r *http.Request) (err error) {
	start := time.Now()
	defer func() { h.Count(err, start) }()

	q, err := h.parseQuery(w, r)
	if err != nil {
		return err
	}
	warn(w, q)

	// ctx bounds the work by the query's timeout. request has no deadline: a client
	// may take longer than that to read the answer.
	request, entered := h.Limits.Enter(r.Context(), memory.Query)
	defer entered.Close()
	ctx, cancel := context.WithTimeout(request, h.Timeout)
	defer cancel()
	if q.Explain {
		return h.explain(ctx, w, r, q)
	}

	entry := h.Running.Begin(r, q, entered.Cost, h.Now())
	defer h.finish(entry, &err)
	if wantsArrow(r) {
		return h.arrow(request, w, r, q, entered, entry) // sets the timeout for its work itself
	}

	a := &jsonAnswer{h: h, w: w, r: r.WithContext(request), q: q, entry: entry, entered: entered, start: start}
	if q.Delete {
		err = a.answer(ctx, nil) // rows must not be deleted because of an unproven answer
	} else {
		// Rows are merged and rendered while the result cache is still proving that none
		// has changed. Nothing is sent before it has. If that fails, the query runs
		// again, with proofs first; so it does after an error due to an unproven answer.
		proofs := resultcache.NewProofs(ctx)
		err = a.answer(ctx, proofs)
		if err != nil && errors.Is(errors.Join(err, proofs.Wait()), resultcache.ErrUnproven) {
			err = a.answer(ctx, nil)
		}
	}
	return err
}

// jsonAnswer is the answer to one query as JSON.
type jsonAnswer struct {
	h       *Handlers
	w       http.ResponseWriter
	r       *http.Request
	q       *query.Query
	entry   *querylog.Entry
	entered *limit.Entry
	start   time.Time // of the request
}

// answer makes the results and sends them once proofs are complete. If they are not, it
// returns resultcache.ErrUnproven and has sent nothing.
func (a *jsonAnswer) answer(ctx context.Context, proofs *resultcache.Proofs) error {
	results, err := a.h.run(ctx, a.q, proofs, a.entry)
	// It is no longer a heavy query while its answer is sent: a client that reads slowly does not
	// delay other queries.
	a.entered.Computed()
	if err != nil {
		return err
	}
	return a.send(results, proofs)
}

// send sends results once proofs are complete. There is nothing to wait for if proofs is
// nil: the engine has proven the results before it returned them.
func (a *jsonAnswer) send(results []engine.Result, proofs *resultcache.Proofs) error {
	stats := &a.entry.Stats
	var summary any
	if a.q.ShowSummary { // uidPairsResolved is not counted, but has its place
		summary = map[string]any{"totalTime": time.Since(a.start).Seconds() * 1000, "rowsPreFilter": stats.Rows,
			"dpsPreFilter":  stats.Points,
			"dpsPostFilter": stats.PointsOut, "emittedDPs": stats.PointsOut, "uidPairsResolved": 0}
	}

	work := newWorkTime(a.r.Context(), a.h.Timeout-time.Since(a.start))
	err := a.h.respond(a.w, a.r, a.q, proofs, func(w http.ResponseWriter) error {
		SetIncompleteHeader(w, stats)
		return writeAnswer(w, a.r, a.q, work, results, *stats, trailers(a.r.Context(), a.q, summary, stats))
	})
	a.entry.Sent = err == nil
	return err
}

// run makes the results, and deletes the rows that were read if the query requests it.
func (h *Handlers) run(ctx context.Context, q *query.Query, proofs *resultcache.Proofs,
	entry *querylog.Entry) ([]engine.Result, error) {
	// The engine checks while it merges, so that an answer that is too large is
	// refused before all of it is in memory.
	results, stats, err := h.Engine.Run(ctx, q,
		engine.Options{Points: h.AnswerLimits.CheckJSON, Proofs: proofs, Plans: entry.Plans})
	if entry.Stats = stats; err != nil {
		return nil, err
	}
	if err := h.AnswerLimits.CheckJSON(stats.PointsOut); err != nil {
		return nil, err
	}
	if err := h.AddGlobalAnnotations(ctx, q, results); err != nil {
		return nil, err
	}
	return results, h.deleteRows(ctx, q)
}

// Abort cuts the connection if an answer fails half way, so that its beginning is not mistaken for
// the whole.
func Abort(err error) error {
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// parseQuery reads a query and reserves its memory. A query that deletes is
// checked for whether it may, once it is known to be sound.
func (h *Handlers) parseQuery(w http.ResponseWriter, r *http.Request) (*query.Query, error) {
	method, err := httpio.Method(r)
	if err != nil {
		return nil, err
	}
	q, err := h.readQuery(w, r, method)
	if err != nil {
		return nil, err
	}
	if err := memory.Reserve(r.Context(), q.Size()); err != nil {
		return nil, err
	}

	if q.Delete = q.Delete || method == http.MethodDelete; q.Delete {
		err = h.checkDelete(w, r)
	}
	return q, err
}

// readQuery parses the query by the request's own verb: GET and DELETE from the URL,
// POST from the body, with some options from the URL too. method is the verb after
// method_override.
func (h *Handlers) readQuery(w http.ResponseWriter, r *http.Request, method string) (*query.Query, error) {
	parser := h.Parser()
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		// Where deleting is not enabled, OpenTSDB refuses the verb before it reads the query.
		if method == http.MethodDelete && !h.AllowDelete {
			return nil, h.checkDelete(w, r)
		}
		return parser.URI(r.URL.Query())
	case http.MethodPost:
		body, err := httpio.ReadBody(w, r)
		if err != nil {
			return nil, err
		}
		q, err := parser.JSON(body)
		if err == nil {
			err = q.ReadURIOptions(r.URL.Query())
		}
		return q, err
	}
	return nil, httpio.MethodNotAllowed(r.Method)
}

// explain answers with the plans of a query: an object for one sub-query, a list
// for more.
func (h *Handlers) explain(ctx context.Context, w http.ResponseWriter, r *http.Request, q *query.Query) error {
	plans, err := h.Engine.Explain(ctx, q)
	if err != nil {
		return err
	}
	if len(plans) == 1 {
		return httpio.WriteJSON(w, r, http.StatusOK, plans[0])
	}
	return httpio.WriteJSON(w, r, http.StatusOK, plans)
}
