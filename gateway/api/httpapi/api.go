// Package httpapi is OpenTSDB's HTTP API: it combines the routes and passes each request to its
// handler, through the checks of all requests.
//
//	httpapi      the table of routes, token, panics, slow bodies
//	putroutes    /api/put, rollup, histogram: bodies of points
//	queryroutes  /api/query, exp: answers as JSON or as an Arrow IPC stream
//	metaroutes   annotations, UIDs, UIDMeta and TSMeta, lookups, last points, suggest
//	adminroutes  health, version, settings, stats, profiles, dropping caches
//	querylog     the running and the last completed queries
//	access       origins, CORS and tokens
//	httpio       shared code: parameters, bodies, JSON, error objects
//
// Imports go downwards. Package gateway/query interprets queries; here they are read and answers
// written.
// Source: RpcHandler, RpcManager and the *Rpc classes.
package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/adminroutes"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/metaroutes"
	"downpour/gateway/api/httpapi/putroutes"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/api/pace"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// API answers HTTP requests. All fields are set before Handler is called.
type API struct {
	Put   putroutes.Handlers
	Query *queryroutes.Handlers
	Meta  metaroutes.Handlers
	Admin adminroutes.Handlers

	Live    http.Handler            // /api/ws
	Page    http.Handler            // at "/"
	Pages   map[string]http.Handler // below a first word of a path
	Metrics http.Handler            // /metrics

	// More are the routes of extras.
	More []map[string]httpio.Endpoint
	// Mode leaves out routes; 0 leaves out none.
	Mode httpio.Mode
	// Guard checks origins and tokens.
	Guard *access.Guard
	// Memory is the process's budget, from which requests reserve their memory.
	Memory *memory.Pool
	// WriteTime bounds a request that writes, from the end of its body; 0 is no bound.
	WriteTime time.Duration
	// Pace bounds how slowly a body may come.
	Pace pace.Limits
	Log  *slog.Logger
}

// Handler returns the handler of the whole port.
func (a *API) Handler() http.Handler {
	routes := a.Routes()
	a.Guard.Picture = func(r *http.Request) bool {
		e, ok := find(routes, httpio.Path(r))
		return ok && e.Picture != nil && e.Picture(r)
	}
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.route(routes, w, r) })
	zipped := httpio.Compressed(plain)
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if httpio.Path(r) == "api/ws" {
			plain.ServeHTTP(w, r) // its connection is upgraded, not answered
			return
		}
		zipped.ServeHTTP(w, r)
	})
	// Outermost first: parameters may be separated by semicolons, as in OpenTSDB, for all readers;
	// every log line of a request has its id, a panic anywhere is answered, every reader of a body
	// is bound to the pace, and origins are checked before the route is looked up.
	return http.AllowQuerySemicolons( //fault:parameters-behind-semicolons-lost TestStories/parameters
		httpio.WithRequestID(a.recovered(a.withBodyPace(a.Guard.Handler(served)))))
}

// route answers one request, by the handler of its route.
func (a *API) route(routes map[string]httpio.Endpoint, w http.ResponseWriter, r *http.Request) {
	path, err := httpio.RouteOf(r.URL.Path)
	err = errors.Join(
		err,
		checkParameters(r), //fault:parameters-undecoded-lost TestStories/parameters
		checkSerializer(r, path))
	if err != nil {
		httpio.WriteError(w, r, a.Log, err)
		return
	}

	e, ok := find(routes, path)
	switch {
	case !ok && a.pageBelow(path) != nil:
		a.pageBelow(path).ServeHTTP(w, r)
		return
	case !ok && (path == "api" || strings.HasPrefix(path, "api/")):
		httpio.WriteError(w, r, a.Log, &httpio.Error{Code: http.StatusNotFound, Message: "Endpoint not found"})
		return
	case !ok:
		a.noPage(w, r)
		return
	case e.Absent&a.Mode != 0:
		a.notInMode(w, r)
		return
	}

	if err := a.check(e, w, r); err != nil {
		if e.Denied != nil {
			e.Denied(r, err)
		}
		httpio.WriteError(w, r, a.Log, err)
		return
	}
	a.tellOperator(e, w, r)
	account := a.Memory.Open(e.Memory)
	defer account.Close()
	if err := a.withinWriteTime(e, w, r.WithContext(memory.With(r.Context(), account))); err != nil {
		httpio.WriteError(w, r, a.Log, err)
	}
}

// pageBelow returns the pages that a path is below of, nil if there are none.
func (a *API) pageBelow(path string) http.Handler {
	first, _, below := strings.Cut(path, "/")
	if !below {
		return nil
	}
	return a.Pages[first]
}

// OperatorHeader shows a page that its token has the scope of an operator, so that it can show what
// only operators may use. It is in answers that pages request when they load.
const OperatorHeader = "Downpour-Operator"

// tellOperator sets OperatorHeader.
func (a *API) tellOperator(e httpio.Endpoint, w http.ResponseWriter, r *http.Request) {
	if e.TellsOperator && a.Guard.Allows(r, auth.Admin) {
		w.Header().Set(OperatorHeader, "true")
	}
}

// check refuses a request that may not use its route.
func (a *API) check(e httpio.Endpoint, w http.ResponseWriter, r *http.Request) error {
	if !e.Reads.Contains(r) { // the verb may change something
		if err := a.Guard.CheckChangeOrigin(r); err != nil {
			return err
		}
	}
	if err := a.Guard.Authorize(w, r, e.Scope); err != nil {
		return err
	}
	if (e.Audited || e.Scope&auth.Admin == auth.Admin) && !e.Reads.Contains(r) {
		a.Guard.Audit(r)
	}
	return nil
}

// checkParameters refuses a request if some of its parameters cannot be decoded. The handlers look
// for parameters by name, and would answer another question.
func checkParameters(r *http.Request) error {
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return httpio.BadRequest("Cannot read the parameters: %v", err)
	}
	return nil
}

// checkSerializer refuses all serializers but json, the only one there is.
// Source: HttpQuery.setSerializer.
func checkSerializer(r *http.Request, path string) error {
	name := httpio.LastValue(r, "serializer")
	if name == "" || name == "json" || !strings.HasPrefix(path, "api/") {
		return nil
	}
	return &httpio.Error{Code: http.StatusBadRequest, Message: "Requested serializer was not found",
		Details: "Could not find a serializer with the name: " + name}
}

// noPage answers a path that is no route. Source: HttpQuery.notFound.
func (a *API) noPage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("json") {
		httpio.WriteBody(w, r, http.StatusNotFound, []byte(`{"err":"Page Not Found"}`))
		return
	}
	http.Error(w, "Page Not Found", http.StatusNotFound)
}
