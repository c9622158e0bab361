// Package httpapi is OpenTSDB's HTTP API: routing, verbs, bodies, error
// objects and answers, as JSON or as an Arrow IPC stream. What a query means is
// decided elsewhere; here it is read and written.
// Source: RpcHandler, HttpQuery, HttpJsonSerializer and the *Rpc classes.
package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"downpour/gateway/api/pace"
	"downpour/gateway/metadata/annotation"
	"downpour/gateway/metadata/last"
	"downpour/gateway/metadata/lookup"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/limit"
	"downpour/gateway/uid"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// API answers HTTP requests. All fields are set before Handler is called.
type API struct {
	Engine *engine.Engine
	Writer *write.Writer
	Series *write.Series
	Names  *uid.Dictionary

	Meta  *meta.Catalog
	Notes *annotation.Notes
	Find  *lookup.Finder
	Last  *last.Points
	// FlushMeta records what puts have left to be recorded; nil if they record
	// nothing.
	FlushMeta func(context.Context) error
	// Allowed are characters that names may have beside OpenTSDB's.
	Allowed []rune
	// AllowDelete lets queries delete what they read, from Rows.
	// Source: tsd.http.query.allow_delete.
	AllowDelete bool
	Rows        engine.Rows
	// Stats are the numbers that the gateway keeps of itself.
	Stats func() []Stat

	Live    http.Handler // /api/ws
	Page    http.Handler // everything that is no API
	Metrics http.Handler // /metrics
	Tools   http.Handler // /api/tools/…, what the sub-commands ask

	// Profiles serves /debug/pprof/.
	Profiles bool

	// Ready returns why puts or queries would not be accepted now.
	Ready func(context.Context) error
	// Settings are the effective settings, secrets masked.
	Settings map[string]string
	Version  Version
	Tokens   *auth.Tokens
	Origins  Origins
	// Memory is what requests reserve the bytes that they hold from.
	Memory *memory.Pool
	// Limits bound what queries read, AnswerLimits what they answer.
	Limits       *limit.Limits
	AnswerLimits AnswerLimits
	// Pace bounds how slowly a body may come.
	Pace pace.Limits
	// Timeout bounds a query, Now is the clock.
	Timeout time.Duration
	Now     func() time.Time
	// Zone is the zone of dates that name none; nil is UTC.
	Zone *time.Location
	// SubQueries bounds those of one query, see query.Parser.
	SubQueries int
	// Fix are the known errors that are put right where a query says nothing.
	Fix   query.Fixes
	Count Counter
	Log   *slog.Logger

	queries queryLog
}

// Counter is told what was done.
type Counter interface {
	Puts(ok, failed int)
	Query(status int, took time.Duration)
}

// endpoint is one route behind /api/.
type endpoint struct {
	scope auth.Scope
	serve func(http.ResponseWriter, *http.Request) error
	// reads are the verbs by which a request changes nothing, that of
	// method_override where there is one. Whatever is not listed is refused to
	// pages of other sites, links included, so that a route of which nobody has
	// thought is shut.
	reads verbs
}

// verbs are methods of HTTP; HEAD goes with GET.
type verbs []string

// What most routes read by. Some changes have no verb of their own: a query may
// delete what it reads by a field of its body, see mayDelete.
var (
	nothing   = verbs{}
	get       = verbs{http.MethodGet}
	getOrPost = verbs{http.MethodGet, http.MethodPost}
)

// has tells whether a request is by one of the verbs.
func (v verbs) has(r *http.Request) bool {
	method, err := apiMethod(r)
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return err == nil && slices.Contains(v, method)
}

// Handler returns the handler of the whole port.
func (a *API) Handler() http.Handler {
	routes := a.routes()
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.route(routes, w, r) })
	zipped := gzhttp.GzipHandler(h)
	return a.recovered(a.patiently(a.guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path(r) == "api/ws" {
			h.ServeHTTP(w, r) // upgraded, not answered
			return
		}
		zipped.ServeHTTP(w, r)
	}))))
}

// Route is what the table says of a route.
type Route struct {
	// Scope is that without which nothing is answered; some routes ask for more,
	// by verb.
	Scope auth.Scope
	// Reads are the verbs that change nothing; all others are refused to pages
	// of other sites.
	Reads []string
}

// Routes lists every route, as path below "/". A route that ends in a slash is
// all that lies below it.
func Routes() map[string]Route {
	out := map[string]Route{}
	for path, e := range new(API).routes() {
		out[path] = Route{e.scope, e.reads}
	}
	return out
}

func (a *API) routes() map[string]endpoint {
	unauthenticated := auth.Scope(0)
	page := func(w http.ResponseWriter, r *http.Request) error { a.Page.ServeHTTP(w, r); return nil }
	routes := map[string]endpoint{
		"":            {unauthenticated, page, get},
		"favicon.ico": {unauthenticated, page, get},
		"healthz":     {unauthenticated, a.healthz, get},
		"readyz":      {unauthenticated, a.readyz, get},
		"metrics":     {auth.Read, handler(a.Metrics), get},
		// The socket checks its token and origin itself: the token comes as a
		// subprotocol.
		"api/ws":             {unauthenticated, handler(a.Live), get},
		"api/put":            {auth.Write, a.put, nothing},
		"api/query":          {auth.Read, a.query, getOrPost},
		"api/suggest":        {auth.Read, a.suggest, getOrPost},
		"suggest":            {auth.Read, a.suggest, getOrPost},
		"api/aggregators":    {auth.Read, a.aggregators, getOrPost},
		"aggregators":        {auth.Read, a.aggregators, getOrPost},
		"api/config":         {auth.Read, a.config, getOrPost},
		"api/config/filters": {auth.Read, a.filters, getOrPost},
		"api/version":        {auth.Read, a.version, getOrPost},
		"version":            {auth.Read, a.version, getOrPost},
		"api/serializers":    {auth.Read, a.serializers, getOrPost},
		"api/dropcaches":     {auth.Admin, a.dropCaches, nothing},
		"dropcaches":         {auth.Admin, a.dropCaches, nothing},
	}
	a.metaRoutes(routes)
	a.toolRoutes(routes)
	a.profileRoutes(routes)
	for _, p := range notYet {
		routes[p] = endpoint{auth.Read, a.notImplemented, nothing}
	}
	return routes
}

// notYet are OpenTSDB's other routes: known, and answered as such.
var notYet = []string{
	"api/query/exp", "api/query/gexp", "api/rollup", "api/histogram", "api/tree", "api/tree/", "q", "logs",
}

func (a *API) notImplemented(_ http.ResponseWriter, r *http.Request) error {
	return &apiError{Code: http.StatusNotImplemented, Message: "Not implemented in this version", Details: "The route " + r.URL.Path + " exists in OpenTSDB and is not built yet"}
}

func handler(h http.Handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error { h.ServeHTTP(w, r); return nil }
}

// path is a request's route.
func path(r *http.Request) string {
	route, _ := RouteOf(r.URL.Path)
	return route
}

// RouteOf is the route of a URL's path: lower case, without slashes around it and
// without the API version. The error is that of a version above 1 or of one that
// is no number, to be told before the route is looked at.
// Source: HttpQuery.explodeAPIPath.
func RouteOf(urlPath string) (route string, err error) {
	route = strings.ToLower(strings.Trim(urlPath, "/"))
	number, rest, ok := version(route)
	if !ok {
		return route, nil
	}
	return "api/" + rest, checkVersion(number)
}

// version cuts the API version out of a route: of "api/v1/put" it is "1". What
// begins with a v and no digit, as api/version does, has none.
func version(route string) (number, rest string, ok bool) {
	rest, ok = strings.CutPrefix(route, "api/v")
	if !ok || rest == "" || rest[0] < '0' || rest[0] > '9' {
		return "", "", false
	}
	number, rest, _ = strings.Cut(rest, "/")
	return number, rest, true
}

func checkVersion(number string) error {
	switch n, err := strconv.ParseInt(number, 10, 32); {
	case err != nil:
		return &apiError{Code: http.StatusBadRequest, Message: "Invalid API version format supplied",
			Details: "API version [" + number + "] cannot be parsed"}
	case n > 1:
		return &apiError{Code: http.StatusNotImplemented, Message: "Requested API version is greater than the max implemented",
			Details: "API version [" + number + "] is greater than the max [1]"}
	}
	return nil
}

// checkSerializer refuses serializers other than the one there is.
// Source: HttpQuery.setSerializer.
func checkSerializer(r *http.Request, path string) error {
	name := r.URL.Query().Get("serializer")
	if name == "" || name == "json" || !strings.HasPrefix(path, "api/") {
		return nil
	}
	return &apiError{Code: http.StatusBadRequest, Message: "Requested serializer was not found",
		Details: "Could not find a serializer with the name: " + name}
}

func (a *API) route(routes map[string]endpoint, w http.ResponseWriter, r *http.Request) {
	p, err := RouteOf(r.URL.Path)
	if err := errors.Join(err, checkSerializer(r, p)); err != nil {
		writeError(w, r, a.Log, err)
		return
	}
	e, ok := find(routes, p)
	switch {
	case !ok && strings.HasPrefix(p, "ui/"):
		a.Page.ServeHTTP(w, r)
		return
	case !ok && (p == "api" || strings.HasPrefix(p, "api/")):
		writeError(w, r, a.Log, &apiError{Code: http.StatusNotFound, Message: "Endpoint not found"})
		return
	case !ok:
		a.noPage(w, r)
		return
	}
	if !e.reads.has(r) && !a.Origins.allowsChange(r) {
		writeError(w, r, a.Log, errForeignChange)
		return
	}
	if err := a.authorize(r, e.scope); err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		writeError(w, r, a.Log, err)
		return
	}
	account := a.Memory.Open(classOf(p))
	defer account.Close()
	if err := e.serve(w, r.WithContext(memory.With(r.Context(), account))); err != nil {
		writeError(w, r, a.Log, err)
	}
}

// classOf is the kind of work of a route, by which memory is shared out.
func classOf(route string) memory.Class {
	if route == "api/put" {
		return memory.Write
	}
	return memory.Query
}

func (a *API) noPage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("json") {
		writeBody(w, r, http.StatusNotFound, []byte(`{"err":"Page Not Found"}`))
		return
	}
	http.Error(w, "Page Not Found", http.StatusNotFound)
}

// authorize checks the bearer token against the scope that a route needs.
func (a *API) authorize(r *http.Request, need auth.Scope) error {
	if need == 0 {
		return nil
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch have := a.Tokens.Check(token); {
	case have&need == need:
		return nil
	case have == 0:
		return &apiError{Code: http.StatusUnauthorized, Message: "Unauthorized", Details: "This route needs a bearer token"}
	}
	return &apiError{Code: http.StatusForbidden, Message: "Forbidden", Details: "The token's scope does not allow this"}
}
