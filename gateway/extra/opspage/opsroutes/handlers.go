// Package opsroutes is /api/ops: it shows an operator the gateway's present and recent activity,
// ends queries, and counts series. The page /ops shows the same.
package opsroutes

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/extra/opspage/seriescount"
	"downpour/pushdown/rpc/auth"
)

// Handlers answer the routes. All fields are set before Endpoints is called.
type Handlers struct {
	// Report returns the gateway's activity.
	Report func(context.Context) Report
	// Queries ends running queries.
	Queries *querylog.Log
	// EndLive ends a live query for somebody; false if there is none of this id.
	EndLive func(id, by string) bool
	// Series counts the series of the meta table, and lists so many of each kind.
	Series func(ctx context.Context, top int) (*seriescount.Counts, error)
	// Guard knows the names of tokens.
	Guard *access.Guard
	Log   *slog.Logger
}

// Endpoints returns the routes by path.
func (h *Handlers) Endpoints() map[string]httpio.Endpoint {
	return map[string]httpio.Endpoint{
		"api/ops":        {Scope: auth.Admin, Serve: h.report, Reads: httpio.Get},
		"api/ops/series": {Scope: auth.Admin, Serve: h.series, Reads: httpio.Get},
		"api/series/top": {Scope: auth.Admin, Serve: h.series, Reads: httpio.Get},
		"api/ops/":       {Scope: auth.Admin, Serve: h.below, Reads: httpio.Get},
	}
}

// report handles /api/ops.
func (h *Handlers) report(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, http.MethodGet); err != nil {
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, h.Report(r.Context()))
}

// maxListed is how many names a count of series lists at most.
const maxListed = 1000

// series handles /api/series/top?top=N, which is /api/ops/series too: a count of the series in the meta table, by
// metric and by tag key, and of the UIDs.
func (h *Handlers) series(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, http.MethodGet); err != nil {
		return err
	}
	top := 20
	if text := httpio.LastValue(r, "top"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxListed {
			return httpio.BadRequest("top: got %q, want 1 to %d", text, maxListed)
		}
		top = n
	}
	counts, err := h.Series(r.Context(), top)
	if err != nil {
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, counts)
}

// below handles /api/ops/queries/ID and /api/ops/live/ID: DELETE ends the query.
func (h *Handlers) below(w http.ResponseWriter, r *http.Request) error {
	kind, id, _ := strings.Cut(strings.TrimPrefix(httpio.Path(r), "api/ops/"), "/")
	if kind != "queries" && kind != "live" || id == "" || strings.Contains(id, "/") {
		return &httpio.Error{Code: http.StatusNotFound, Message: "Endpoint not found"}
	}
	if err := only(r, http.MethodDelete); err != nil {
		return err
	}

	by := cmp.Or(h.Guard.TokenName(r), "an operator")
	if kind == "live" {
		if !h.EndLive(id, by) {
			return &httpio.Error{
				Code:    http.StatusNotFound,
				Message: fmt.Sprintf("This gateway has no live query %.100s", id),
				Details: "It has ended, or is another gateway's: the ids are those that GET /api/ops of the same " +
					"gateway lists",
			}
		}
		return httpio.WriteJSON(w, r, http.StatusOK, map[string]string{"id": id, "state": "ended"})
	}
	if err := h.Queries.End(id, by); err != nil {
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, map[string]string{"id": id, "state": "ending"})
}

// only refuses all verbs except one.
func only(r *http.Request, verb string) error {
	method, err := httpio.Method(r)
	switch {
	case err != nil:
		return err
	case method == verb, method == http.MethodHead && verb == http.MethodGet:
		return nil
	}
	return httpio.MethodNotAllowed(method)
}
