// Package httpapi is OpenTSDB's HTTP API: it puts the routes together and leads
// each request to its handler, through the checks that all requests pass.
//
//	httpapi      the table of routes, token, panics, slow bodies
//	putroutes    /api/put, rollup, histogram: bodies of points
//	queryroutes  /api/query, exp, gexp: answers as JSON or as an Arrow IPC stream; /q
//	metaroutes   annotations, UIDs, UIDMeta and TSMeta, lookups, last points, suggest
//	treeroutes   trees, their rules and branches
//	dashboardroutes  dashboards: documents and their versions
//	opsroutes    what the gateway does, for its operator; ends queries
//	adminroutes  health, version, settings, stats, profiles, dropping caches
//	querylog     the running and the last completed queries
//	access       origins, CORS and tokens
//	httpio       what all of them share: parameters, bodies, JSON, error objects
//
// Imports go downwards. What a query means is decided in gateway/query; here it
// is read and its answer written.
// Source: RpcHandler, RpcManager and the *Rpc classes.
package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/adminroutes"
	"downpour/gateway/api/httpapi/dashboardroutes"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/metaroutes"
	"downpour/gateway/api/httpapi/opsroutes"
	"downpour/gateway/api/httpapi/putroutes"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/api/httpapi/treeroutes"
	"downpour/gateway/api/pace"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// API answers HTTP requests. All fields are set before Handler is called.
type API struct {
	Put        putroutes.Handlers
	Query      queryroutes.Handlers
	Meta       metaroutes.Handlers
	Trees      treeroutes.Handlers
	Admin      adminroutes.Handlers
	Dashboards dashboardroutes.Handlers
	Ops        opsroutes.Handlers

	Live    http.Handler // /api/ws
	Page    http.Handler // everything that is not API
	Metrics http.Handler // /metrics
	Tools   http.Handler // /api/tools/…, used by the binary's sub-commands

	// Guard checks origins and tokens.
	Guard *access.Guard
	// Memory is the process's budget, of which requests reserve what they hold.
	Memory *memory.Pool
	// WriteTime bounds a request that writes, from the end of its body; 0 is no bound.
	WriteTime time.Duration
	// Pace bounds how slowly a body may come.
	Pace pace.Limits
	Log  *slog.Logger
}

// Handler returns the handler of the whole port.
func (a *API) Handler() http.Handler {
	routes := a.routes()
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.route(routes, w, r) })
	zipped := gzhttp.GzipHandler(plain)
	// Outermost first: parameters may be separated by semicolons, as in OpenTSDB, for whatever reads them; all that is logged of a request
	// has its id, a panic anywhere is answered, every reader of a body is bound to the pace, and origins are checked before the route is
	// looked up.
	return http.AllowQuerySemicolons(httpio.WithRequestID(a.recovered(a.withBodyPace(a.Guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //fault:parameters-behind-semicolons-lost TestStories/parameters
		if httpio.Path(r) == "api/ws" {
			plain.ServeHTTP(w, r) // its connection is upgraded, not answered
			return
		}
		zipped.ServeHTTP(w, r)
	}))))))
}

// route answers one request, by the handler of its route.
func (a *API) route(routes map[string]httpio.Endpoint, w http.ResponseWriter, r *http.Request) {
	path, err := httpio.RouteOf(r.URL.Path)
	if err := errors.Join(err, checkParameters(r), checkSerializer(r, path)); err != nil { //fault:parameters-undecoded-lost TestStories/parameters
		httpio.WriteError(w, r, a.Log, err)
		return
	}

	e, ok := find(routes, path)
	switch {
	case !ok && pageBelow(path):
		a.Page.ServeHTTP(w, r)
		return
	case !ok && (path == "api" || strings.HasPrefix(path, "api/")):
		httpio.WriteError(w, r, a.Log, &httpio.Error{Code: http.StatusNotFound, Message: "Endpoint not found"})
		return
	case !ok:
		a.noPage(w, r)
		return
	}

	if err := a.check(e, w, r); err != nil {
		if e.Denied != nil {
			e.Denied(r, err)
		}
		httpio.WriteError(w, r, a.Log, err)
		return
	}
	a.tellOperator(w, r, path)
	account := a.Memory.Open(memoryClass(path))
	defer account.Close()
	if err := a.withinWriteTime(e, w, r.WithContext(memory.With(r.Context(), account))); err != nil {
		httpio.WriteError(w, r, a.Log, err)
	}
}

// pageBelow reports whether a path is below one of the pages' own.
func pageBelow(path string) bool {
	first, _, below := strings.Cut(path, "/")
	return below && (first == "ui" || first == "d" || first == "docs")
}

// OperatorHeader tells a page that its token has the scope of an operator, so that it can show what only
// operators may use. It comes with answers that pages ask for at their start.
const OperatorHeader = "Downpour-Operator"

// tellOperator sets OperatorHeader.
func (a *API) tellOperator(w http.ResponseWriter, r *http.Request, path string) {
	if (path == "api/aggregators" || path == "api/dashboards" || strings.HasPrefix(path, "api/dashboards/")) && a.Guard.Allows(r, auth.Admin) {
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

// memoryClass returns the class by which the process's memory is shared out among
// routes.
func memoryClass(route string) memory.Class {
	switch route {
	case "api/put", "api/rollup", "api/histogram":
		return memory.Write
	}
	return memory.Query
}

// noPage answers a path that is no route. Source: HttpQuery.notFound.
func (a *API) noPage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("json") {
		httpio.WriteBody(w, r, http.StatusNotFound, []byte(`{"err":"Page Not Found"}`))
		return
	}
	http.Error(w, "Page Not Found", http.StatusNotFound)
}
