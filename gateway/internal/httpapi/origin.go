package httpapi

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Origins says which browser pages may use the API, and under which host names
// it is reached.
type Origins struct {
	// Allowed lists origins, "http://host:port", beside our own; "*" is all.
	Allowed []string
	// Loopback tells that the gateway listens on this host alone. Requests
	// must then name it as such, or a page whose name was made to point here
	// could read everything.
	Loopback bool
}

// allows tells whether a request comes from a page of ours, from a listed one,
// or from no page at all.
func (o Origins) allows(r *http.Request) bool {
	origin, ok := pageOf(r)
	if !ok || slices.Contains(o.Allowed, origin) || slices.Contains(o.Allowed, "*") {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// pageOf returns the origin of the page that made the browser send a request;
// ok is false where no page did. Scripts, images and forms of other sites come
// without an Origin; browsers say so in Sec-Fetch-Site. A link that is followed
// shows its answer to the user alone.
func pageOf(r *http.Request) (origin string, ok bool) {
	if origin = r.Header.Get("Origin"); origin != "" {
		return origin, true
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "cross-site" && site != "same-site" || r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Method == http.MethodGet {
		return "", false
	}
	if u, err := url.Parse(r.Referer()); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host, true
	}
	return "null", true
}

// hostAllowed tells whether the Host header may name a loopback gateway.
func (o Origins) hostAllowed(host string) bool {
	if !o.Loopback {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if name == "" || strings.EqualFold(name, "localhost") || net.ParseIP(name) != nil {
		return true
	}
	return slices.ContainsFunc(o.Allowed, func(origin string) bool {
		u, err := url.Parse(origin)
		return err == nil && (strings.EqualFold(u.Host, host) || strings.EqualFold(u.Hostname(), name))
	})
}

const corsHeaders = "Authorization, Content-Type, Accept, Origin, User-Agent, DNT, Cache-Control, X-Mx-ReqToken, Keep-Alive, X-Requested-With, If-Modified-Since"

// guarded checks where a request comes from before anything else is done with
// it. Source: RpcHandler.applyCorsConfig.
func (a *API) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !a.Origins.hostAllowed(r.Host) {
			writeError(w, r, a.Log, &apiError{Code: http.StatusMisdirectedRequest, Message: "Unknown host name",
				Details: "This gateway listens on loopback and is not " + r.Host + "; list the origin in DOWNPOUR_ALLOW_ORIGINS"})
			return
		}
		if !a.cors(w, r) {
			h.ServeHTTP(w, r)
		}
	})
}

// cors sets the headers for browsers and reports whether it has answered. The
// page's own files hold no data and are let pass: behind a proxy that changes the
// host name they come, like everything, with a foreign Origin, and only the page
// can tell its user so.
func (a *API) cors(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	allowed := a.Origins.allows(r)
	switch {
	case origin != "" && allowed:
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
		w.Header().Set("Access-Control-Allow-Headers", corsHeaders)
		w.Header().Add("Vary", "Origin")
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusOK)
			return true
		}
	case r.Method == http.MethodOptions:
		writeError(w, r, a.Log, notAllowed(r))
		return true
	case !allowed && path(r) != "api/ws" && !strings.HasPrefix(path(r), "ui/"): // a GET as well: some change data
		a.foreign(w, r)
		return true
	}
	return false
}

// foreign refuses another site's page. Where origins are listed OpenTSDB answers
// a GET with status 200 and an error object; all else is refused plainly, what
// the browser sends without an Origin (jsonp, images) as well.
func (a *API) foreign(w http.ResponseWriter, r *http.Request) {
	origin, _ := pageOf(r)
	code := http.StatusForbidden
	if r.Method == http.MethodGet && r.Header.Get("Origin") != "" && len(a.Origins.Allowed) > 0 {
		code = http.StatusOK
	}
	writeError(w, r, a.Log, &apiError{Code: code, Message: "CORS domain not allowed",
		Details: "The domain [" + origin + "] is not permitted access"})
}
