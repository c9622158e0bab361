package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
)

// query handles /api/query. Source: QueryRpc.handleQuery.
func (a *API) query(w http.ResponseWriter, r *http.Request) (err error) {
	start := time.Now()
	defer func() { a.Count.Query(statusOf(err), time.Since(start)) }()
	q, err := a.parseQuery(w, r)
	if err != nil {
		return err
	}
	whole, entered := a.Limits.Enter(r.Context(), memory.Query)
	defer entered.Close()
	ctx, cancel := context.WithTimeout(whole, a.Timeout)
	defer cancel()
	if q.Explain {
		return a.explain(ctx, w, r, q)
	}
	entry := a.queries.begin(r, q, a.Now())
	defer func() { a.queries.finish(entry, statusOf(err), err, a.Now()) }()
	if wantsArrow(r) {
		return a.arrow(whole, w, r, q, entry)
	}
	results, err := a.run(ctx, r, q, &entry.stats)
	entered.Computed() // a client that reads slowly holds up nobody
	if err != nil {
		return err
	}
	var summary any
	if q.ShowSummary {
		summary = map[string]any{"totalTime": time.Since(start).Seconds() * 1000, "rowsPreFilter": entry.stats.Rows, "dpsPreFilter": entry.stats.Points,
			"dpsPostFilter": entry.stats.PointsOut, "emittedDPs": entry.stats.PointsOut, "uidPairsResolved": 0}
	}
	work := newEffort(whole, a.Timeout-time.Since(start))
	err = a.respond(w, r.WithContext(whole), q, func(w http.ResponseWriter) error {
		markHeader(w, &entry.stats)
		return writeAnswer(w, r, q, work, results, entry.stats, marks(q, summary, &entry.stats))
	})
	entry.sent = err == nil
	return err
}

// run makes the results, and deletes what was read if the query says so.
func (a *API) run(ctx context.Context, r *http.Request, q *query.Query, stats *engine.Stats) ([]engine.Result, error) {
	check := func(points int) error { return a.AnswerLimits.check(points, false) }
	results, s, err := a.Engine.Run(engine.WithPoints(ctx, check), q)
	if *stats = s; err != nil {
		return nil, err
	}
	if err := check(s.PointsOut); err != nil {
		return nil, err
	}
	if err := a.addGlobalNotes(ctx, q, results); err != nil {
		return nil, err
	}
	return results, a.deleteRead(ctx, q)
}

func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	return classify(err).Code
}

// abort cuts the connection when an answer fails half way, so that nobody takes
// its beginning for the whole.
func abort(err error) error {
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// parseQuery reads a query. One that deletes has passed the check of whether it
// may, after it was found to be sound.
func (a *API) parseQuery(w http.ResponseWriter, r *http.Request) (*query.Query, error) {
	method, err := apiMethod(r)
	if err != nil {
		return nil, err
	}
	q, err := a.readQuery(w, r, method)
	if err != nil {
		return nil, err
	}
	if err := memory.Reserve(r.Context(), q.Size()); err != nil {
		return nil, err
	}
	if q.Delete = q.Delete || method == http.MethodDelete; q.Delete {
		err = a.mayDelete(w, r)
	}
	return q, err
}

func (a *API) readQuery(w http.ResponseWriter, r *http.Request, method string) (*query.Query, error) {
	parser := query.Parser{Now: a.Now(), Zone: a.Zone, Fix: a.Fix, SubQueries: a.SubQueries}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		if method == http.MethodDelete && !a.AllowDelete {
			return nil, a.mayDelete(w, r)
		}
		return parser.URI(r.URL.Query())
	case http.MethodPost:
		body, err := readBody(w, r)
		if err != nil {
			return nil, err
		}
		q, err := parser.JSON(body)
		if err == nil {
			err = q.ReadURIOptions(r.URL.Query())
		}
		return q, err
	}
	return nil, notAllowed(r)
}

// explain answers with the plans of a query: of one sub-query as an object, of
// more as a list.
func (a *API) explain(ctx context.Context, w http.ResponseWriter, r *http.Request, q *query.Query) error {
	plans, err := a.Engine.Explain(ctx, q)
	if err != nil {
		return err
	}
	if len(plans) == 1 {
		return writeJSON(w, r, http.StatusOK, plans[0])
	}
	return writeJSON(w, r, http.StatusOK, plans)
}

// classifyQuery maps the errors of running a query; nil for others.
func classifyQuery(err error) *apiError {
	var parse *query.Error
	var missing *dispatch.IncompleteError
	var merged *merge.MemoryError
	var limit *operator.LimitError
	var large *memory.LimitError
	var busy *memory.BusyError
	switch {
	case errors.As(err, &parse):
		return &apiError{Code: parse.Status, Message: parse.Message, Details: parse.Details}
	case errors.As(err, &missing):
		e := &apiError{Code: http.StatusServiceUnavailable, Message: "The answer is incomplete: " + err.Error()}
		e.Missing = HexRanges(missing.Ranges)
		return e
	case errors.As(err, &limit):
		return overLimit(limit)
	case errors.As(err, &merged):
		return overLimit(&operator.LimitError{What: operator.Memory, Limit: merged.Limit, Need: merged.Need})
	case errors.As(err, &large):
		return tooLarge("Sorry, this request needs more memory than one request may have: "+large.Error()+". "+advice, "DOWNPOUR_MEMORY", large.Limit)
	case errors.As(err, &busy):
		return &apiError{Code: http.StatusServiceUnavailable, Message: "Sorry, other requests hold the memory: " + busy.Error(),
			Details: fmt.Sprintf("The limit is DOWNPOUR_MEMORY, for this process %d; please try again", busy.Total)}
	case errors.Is(err, dispatch.ErrDeadline):
		return timedOut(err.Error())
	case errors.Is(err, dispatch.ErrUnreachable):
		return &apiError{Code: http.StatusFailedDependency, Message: err.Error()}
	}
	return nil
}

// Classify is the status and message that HTTP would answer for an error, for
// other doors to the same queries.
func Classify(err error) (status int, message string) {
	e := classify(err)
	return e.Code, e.Message
}
