// Package access decides who may use which route of the HTTP API: by the page
// that made a browser send the request, by the host name under which the gateway
// is reached, and by the bearer token.
package access

import (
	"log/slog"
	"net/http"
	"strings"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/origin"
	"downpour/pushdown/rpc/auth"
)

// Guard checks requests. Its fields are set before it is used.
type Guard struct {
	Tokens  *auth.Tokens
	Origins origin.Rules
	// Picture reports whether the answer to a request is a picture, which pages of other
	// sites may show if no token is needed to read; nil where they may show none.
	Picture func(*http.Request) bool
	Log     *slog.Logger
}

// Authorize checks the bearer token against the scope that a route needs; scope
// 0 needs no token.
func (g *Guard) Authorize(w http.ResponseWriter, r *http.Request, need auth.Scope) error {
	if need == 0 { // a probe does not wait for the disk that has the token file
		return nil
	}

	have := g.Tokens.Check(bearer(r))
	if have&need == need {
		return nil
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	if have == 0 {
		return &httpio.Error{
			Code:    http.StatusUnauthorized,
			Message: "Unauthorized",
			Details: "This route needs a bearer token",
		}
	}
	return &httpio.Error{
		Code:    http.StatusForbidden,
		Message: "Forbidden",
		Details: "The token's scope does not allow this",
	}
}

// Allows reports whether a request's token has a scope.
func (g *Guard) Allows(r *http.Request, scope auth.Scope) bool {
	return g.Tokens.Check(bearer(r))&scope == scope
}

// MayChange checks a request that changes names, meta data or stored data by any verb,
// because its route is open to readers, and logs it. The body should have been read: it
// may be compressed, and the log shows its beginning.
func (g *Guard) MayChange(w http.ResponseWriter, r *http.Request, scope auth.Scope) error {
	if err := g.mayChange(w, r, scope); err != nil {
		return err
	}
	g.Audit(r)
	return nil
}

// MayStore is MayChange for what users store all day, annotations and dashboards. It logs only
// deletions of these.
func (g *Guard) MayStore(w http.ResponseWriter, r *http.Request, scope auth.Scope) error {
	if err := g.mayChange(w, r, scope); err != nil {
		return err
	}
	if method, _ := httpio.Method(r); method == http.MethodDelete {
		g.Audit(r)
	}
	return nil
}

// mayChange checks scope and origin. The origin was checked by the verb already (see
// httpio.Endpoint), but not for a GET that changes something by its parameters.
func (g *Guard) mayChange(w http.ResponseWriter, r *http.Request, scope auth.Scope) error {
	if err := g.Authorize(w, r, scope); err != nil {
		return err
	}
	return g.CheckChangeOrigin(r)
}

// TokenName returns the name of a request's token, "" where none is needed.
func (g *Guard) TokenName(r *http.Request) string { return g.Tokens.Name(bearer(r)) }

// bearer returns the token of a request, "" for none.
func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// CheckChangeOrigin refuses a request that changes something if a page of another
// site, whose origin is not listed, made the browser send it, or may have.
func (g *Guard) CheckChangeOrigin(r *http.Request) error {
	switch g.Origins.Decide(origin.Of(r), origin.Change) { //fault:link-changes-data TestDoors_pages
	case origin.Ours:
		return nil
	case origin.Unsaid:
		return errUnsaid
	}
	return errForeignChange
}

// errForeignChange refuses a page of another site, and errUnsaid a browser that does not name the
// requesting page.
var (
	errForeignChange = &httpio.Error{Code: http.StatusForbidden, Message: "CORS domain not allowed",
		Details: "Another site's page may not change data; list its origin in DOWNPOUR_ALLOW_ORIGINS if it may"}
	errUnsaid = &httpio.Error{Code: http.StatusForbidden, Message: "CORS domain not allowed",
		Details: "A browser asks for a script (jsonp), or changes data by a GET, and does not say of which page; " +
			"over plain HTTP without tokens that may be any site's. " +
			"Ask without jsonp and change by POST, from this gateway's page or one whose origin is in " +
			"DOWNPOUR_ALLOW_ORIGINS"}
)

const corsHeaders = "Authorization, Content-Type, Accept, Origin, User-Agent, DNT, Cache-Control, " +
	"X-Mx-ReqToken, Keep-Alive, X-Requested-With, If-Modified-Since"

// Handler checks the origin of a request before h handles it.
// Source: RpcHandler.applyCorsConfig.
func (g *Guard) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !g.answered(w, r) {
			h.ServeHTTP(w, r)
		}
	})
}

// answered sets the headers for browsers and reports whether it has answered the request, as a preflight
// or with a refusal.
func (g *Guard) answered(w http.ResponseWriter, r *http.Request) bool {
	use := g.use(r)
	verdict := g.Origins.Decide(origin.Of(r), use)
	page := r.Header.Get("Origin")
	switch {
	case verdict == origin.UnknownHost:
		httpio.WriteError(w, r, g.Log, &httpio.Error{
			Code:    http.StatusMisdirectedRequest,
			Message: "Unknown host name",
			Details: "This gateway is not known as " + r.Host +
				"; list the name in DOWNPOUR_ALLOW_HOSTS, or the origin of its page in DOWNPOUR_ALLOW_ORIGINS",
		})
		return true
	case verdict == origin.Ours && page != "":
		w.Header().Set("Access-Control-Allow-Origin", page)
		w.Header().Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
		w.Header().Set("Access-Control-Allow-Headers", corsHeaders)
		w.Header().Add("Vary", "Origin")
		if r.Method == http.MethodOptions { // a preflight: the answer is 200, and empty
			return true
		}
	case r.Method == http.MethodOptions:
		// A preflight of a page that is not allowed, or none: no route has the verb.
		httpio.WriteError(w, r, g.Log, httpio.MethodNotAllowed(r.Method))
		return true
	case verdict == origin.Unsaid:
		httpio.WriteError(w, r, g.Log, errUnsaid)
		return true
	case verdict == origin.Foreign:
		// A GET is refused too: its answer is not for that page.
		g.refuseOrigin(w, r)
		return true
	case verdict == origin.Elsewhere && use == origin.Picture:
		// A page with Cross-Origin-Embedder-Policy shows only pictures that have this header.
		w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
	return false
}

// use returns the purpose of a request. Changes are known only by the route. The WebSocket makes
// its own check, after this one.
func (g *Guard) use(r *http.Request) origin.Use {
	switch route := httpio.Path(r); {
	case route == "api/ws" || strings.HasPrefix(route, "ui/"):
		return origin.File
	case httpio.LastValue(r, "jsonp") != "":
		return origin.Script
	case g.Picture != nil && g.Picture(r) && g.Tokens.Check("")&auth.Read != 0:
		return origin.Picture
	}
	return origin.Read
}

// refuseOrigin refuses another site's page. If origins are listed, OpenTSDB
// answers a GET with status 200 and an error object. Everything else gets a 403,
// also what browsers send without an Origin (jsonp, images).
func (g *Guard) refuseOrigin(w http.ResponseWriter, r *http.Request) {
	code := http.StatusForbidden
	if r.Method == http.MethodGet && r.Header.Get("Origin") != "" && !g.Origins.Allowed.Empty() {
		code = http.StatusOK
	}
	httpio.WriteError(w, r, g.Log, &httpio.Error{Code: code, Message: "CORS domain not allowed",
		Details: "The domain [" + origin.Of(r).Page() + "] is not permitted access"})
}
