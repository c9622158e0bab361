// Package queryroutes is /api/query: it reads queries, has them run, and writes
// the answers as OpenTSDB's JSON or as an Arrow IPC stream. /api/query/exp computes
// expressions on the answers. Other packages make routes of their own by Handlers.Read.
// Source: QueryRpc, HttpJsonSerializer.formatQueryAsyncV1.
package queryroutes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/metadata/annotation"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/limit"
	"downpour/pushdown/rpc/auth"
)

// Handlers answer the query routes. All fields are set before a request comes.
type Handlers struct {
	Engine *engine.Engine
	// Annotations are read for queries that show global annotations.
	Annotations *annotation.Catalog
	// Guard checks queries that delete.
	Guard *access.Guard
	// AllowDelete lets queries delete what they read, from Rows.
	// Source: tsd.http.query.allow_delete.
	AllowDelete bool
	Rows        engine.Rows

	// Limits bound what queries read, AnswerLimits what they answer.
	Limits       *limit.Limits
	AnswerLimits AnswerLimits
	// Timeout bounds a query.
	Timeout time.Duration
	// SubQueries bounds the number of sub-queries, see query.Parser.
	SubQueries int

	// Now is the clock.
	Now func() time.Time
	// Zone is the zone of dates without one; nil is UTC.
	Zone *time.Location
	// Fix are the known errors of OpenTSDB that are corrected for queries that do
	// not choose themselves.
	Fix query.Fixes

	// Running gets every query.
	Running *querylog.Log
	Counter Counter
	Log     *slog.Logger
}

// Counter counts queries. The status is that of HTTP, or Mistake.
type Counter interface {
	Query(status string, took time.Duration)
}

// Mistake is counted for a query that does not parse where OpenTSDB's answer is 500: who watches
// for faults of the server counts statuses of 500.
const Mistake = "mistake"

// Endpoints returns the routes by path.
func (h *Handlers) Endpoints() map[string]httpio.Endpoint {
	return map[string]httpio.Endpoint{
		"api/query": {
			Scope:   auth.Read,
			Serve:   h.Followed(h.query),
			Reads:   httpio.GetOrPost,
			OwnTime: true,
			Absent:  httpio.WriteOnly,
		},
		"api/query/exp": {
			Scope:   auth.Read,
			Serve:   h.Followed(h.exp),
			Reads:   httpio.GetOrPost,
			OwnTime: true,
			Absent:  httpio.WriteOnly,
		},
	}
}

// Followed serves requests that an operator can end.
func (h *Handlers) Followed(
	serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)

		ctx = querylog.WithOrigin(ctx, querylog.Origin{Token: h.Guard.TokenName(r), End: end})
		return serve(w, r.WithContext(ctx))
	}
}

// finish records in the log that a query has ended with *err. If an operator has ended
// it, that becomes its error.
func (h *Handlers) finish(entry *querylog.Entry, err *error) {
	if ended := entry.Ended(); ended != nil && *err != nil {
		*err = ended
	}
	h.Running.Finish(entry, statusOf(*err), *err, h.Now())
}

// AnswerLimits bound the points of an answer in either form; 0 is no bound.
type AnswerLimits struct{ JSON, Arrow int64 }

// CheckJSON refuses an answer of too many points, before any of it is sent.
func (l AnswerLimits) CheckJSON(points int) error {
	return CheckPoints(points, l.JSON, "JSON", "DOWNPOUR_LIMIT_JSON")
}

// checkArrow is CheckJSON for an Arrow stream.
func (l AnswerLimits) checkArrow(points int) error {
	return CheckPoints(points, l.Arrow, "Arrow", "DOWNPOUR_LIMIT_ARROW")
}

// CheckPoints refuses an answer of more points than limit, which a setting gives for that
// form; 0 is no bound.
func CheckPoints(points int, limit int64, form, setting string) error {
	if limit <= 0 || int64(points) <= limit {
		return nil
	}
	return httpio.TooLarge(fmt.Sprintf("Sorry, the answer has %d data points, and as %s it may have %d. %s", points,
		form, limit, httpio.Advice),
		setting, limit)
}

// statusOf returns the HTTP status of an answer that ended with err.
func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	return httpio.Classify(err).Code
}

// Count counts a query that ended with err.
func (h *Handlers) Count(err error, start time.Time) {
	status := strconv.Itoa(statusOf(err))
	var parse *query.Error
	if errors.As(err, &parse) && parse.Status == http.StatusInternalServerError {
		status = Mistake
	}
	h.Counter.Query(status, time.Since(start))
}
