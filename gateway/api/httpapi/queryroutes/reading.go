package queryroutes

import (
	"context"
	"net/http"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/limit"
	"downpour/pushdown/process/memory"
)

// Reading is a request that reads points, for routes of other packages: like a query it is bounded by the limits,
// listed for operators and counted.
type Reading struct {
	*Handlers
	Query *query.Query
	// Request is what is answered. Its context has no deadline, because a client may take longer to read the answer
	// than the work may take.
	Request *http.Request
	// Entry is where operators see the request; the work sets its Stats.
	Entry   *querylog.Entry
	entered *limit.Entry
	start   time.Time
}

// Read does the work of a request that came at start. The context of the work ends with the timeout of queries.
func (h *Handlers) Read(w http.ResponseWriter, r *http.Request, start time.Time, q *query.Query,
	work func(context.Context, *Reading) error) (err error) {
	warn(w, q)
	request, entered := h.Limits.Enter(r.Context(), memory.Query)
	defer entered.Close()
	ctx, cancel := context.WithTimeout(request, h.Timeout)
	defer cancel()

	a := &Reading{Handlers: h, Query: q, Request: r.WithContext(request), entered: entered, start: start,
		Entry: h.Running.Begin(r, q, entered.Cost, h.Now())}
	defer h.finish(a.Entry, &err) // also if the answer is cut off by a panic
	err = work(ctx, a)
	a.Entry.Sent = err == nil
	return err
}

// Computed says that only sending is left: a client that reads slowly keeps no heavy query waiting.
func (a *Reading) Computed() { a.entered.Computed() }

// SendJSON answers with results, as /api/query does.
func (a *Reading) SendJSON(w http.ResponseWriter, results []engine.Result) error {
	answer := &jsonAnswer{
		h:       a.Handlers,
		w:       w,
		r:       a.Request,
		q:       a.Query,
		entry:   a.Entry,
		entered: a.entered,
		start:   a.start,
	}
	return answer.send(results, nil)
}

// WorkTime returns what is left of the timeout for writing the answer.
func (a *Reading) WorkTime() *WorkTime {
	return newWorkTime(a.Request.Context(), a.Timeout-time.Since(a.start))
}

// ExplainAll answers with the plans of several queries, in a list.
func (h *Handlers) ExplainAll(w http.ResponseWriter, r *http.Request, reads []*query.Query) error {
	request, entered := h.Limits.Enter(r.Context(), memory.Query)
	defer entered.Close()
	ctx, cancel := context.WithTimeout(request, h.Timeout)
	defer cancel()

	all := []engine.Explained{}
	for _, read := range reads {
		plans, err := h.Engine.Explain(ctx, read)
		if err != nil {
			return err
		}
		all = append(all, plans...)
	}
	return httpio.WriteJSON(w, r, http.StatusOK, all)
}

// Parser returns what reads queries now.
func (h *Handlers) Parser() query.Parser {
	return query.Parser{Now: h.Now(), Zone: h.Zone, Fix: h.Fix, SubQueries: h.SubQueries}
}
