// Package opsroutes is /api/ops: it tells an operator what the gateway does and has done lately,
// and ends queries. The page /ops shows the same.
package opsroutes

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"

	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/pushdown/rpc/auth"
)

// Handlers answer the routes. All fields are set before Endpoints is called.
type Handlers struct {
	// Report tells what the gateway does.
	Report func(context.Context) Report
	// Queries ends running queries.
	Queries *querylog.Log
	// Guard knows the names of tokens.
	Guard *access.Guard
	Log   *slog.Logger
}

// Endpoints returns the routes by path.
func (h *Handlers) Endpoints() map[string]httpio.Endpoint {
	return map[string]httpio.Endpoint{
		"api/ops":  {Scope: auth.Admin, Serve: h.report, Reads: httpio.Get},
		"api/ops/": {Scope: auth.Admin, Serve: h.below, Reads: httpio.Get},
	}
}

// report handles /api/ops.
func (h *Handlers) report(w http.ResponseWriter, r *http.Request) error {
	if err := only(r, http.MethodGet); err != nil {
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, h.Report(r.Context()))
}

// below handles /api/ops/queries/ID: DELETE ends the query.
func (h *Handlers) below(w http.ResponseWriter, r *http.Request) error {
	id, ok := strings.CutPrefix(httpio.Path(r), "api/ops/queries/")
	if !ok || id == "" || strings.Contains(id, "/") {
		return &httpio.Error{Code: http.StatusNotFound, Message: "Endpoint not found"}
	}
	if err := only(r, http.MethodDelete); err != nil {
		return err
	}

	by := cmp.Or(h.Guard.TokenName(r), "an operator")
	if err := h.Queries.End(id, by); err != nil {
		return err
	}
	return httpio.WriteJSON(w, r, http.StatusOK, map[string]string{"id": id, "state": "ending"})
}

// only refuses all verbs but one.
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
