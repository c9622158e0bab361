package httpapi

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"downpour/gateway/api/origin"
)

// Origins says which browser pages may use the API, and under which host names
// it is reached.
type Origins struct {
	// Allowed are origins beside our own.
	Allowed origin.List
	// Loopback tells that the gateway listens on this host alone. Requests
	// must then name it as such, or a page whose name was made to point here
	// could read everything.
	Loopback bool
}

// allows tells whether a request comes from a page of ours, from a listed one,
// or from no page at all.
func (o Origins) allows(r *http.Request) bool {
	page, ok := pageOf(r)
	return !ok || o.Allowed.Allows(page, r.Host)
}

// allowsChange tells so for a request that changes something. There a link
// counts as a request of its page, too: whoever follows it sees the answer, but
// the change is made.
func (o Origins) allowsChange(r *http.Request) bool {
	if r.Header.Get("Origin") == "" && fromOtherSite(r) {
		return o.Allowed.Has(refererOf(r))
	}
	return o.allows(r)
}

// fromOtherSite tells whether the browser says that another site's page, or
// another host's of the same site, made it send a request. It says "none" where
// the user did.
func fromOtherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// pageOf returns the origin of the page that made the browser send a request;
// ok is false where no page did. Scripts, images and forms of other sites come
// without an Origin; browsers say so in Sec-Fetch-Site. A link that is followed
// shows its answer to the user alone.
func pageOf(r *http.Request) (page string, ok bool) {
	if page = r.Header.Get("Origin"); page != "" {
		return page, true
	}
	if !fromOtherSite(r) || r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Method == http.MethodGet {
		return "", false
	}
	return refererOf(r), true
}

// refererOf is the origin of the page that Referer names; "null", as browsers
// call a page without origin, where there is none.
func refererOf(r *http.Request) string {
	if u, err := url.Parse(r.Referer()); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return "null"
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
	return name == "" || strings.EqualFold(name, "localhost") || net.ParseIP(name) != nil || o.Allowed.Names(host, name)
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
	page := r.Header.Get("Origin")
	allowed := a.Origins.allows(r)
	switch {
	case page != "" && allowed:
		w.Header().Set("Access-Control-Allow-Origin", page)
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
	case !allowed && path(r) != "api/ws" && !strings.HasPrefix(path(r), "ui/"): // a GET as well: what it answers is not theirs
		a.foreign(w, r)
		return true
	}
	return false
}

// foreign refuses another site's page. Where origins are listed OpenTSDB answers
// a GET with status 200 and an error object; all else is refused plainly, what
// the browser sends without an Origin (jsonp, images) as well.
func (a *API) foreign(w http.ResponseWriter, r *http.Request) {
	page, _ := pageOf(r)
	code := http.StatusForbidden
	if r.Method == http.MethodGet && r.Header.Get("Origin") != "" && !a.Origins.Allowed.Empty() {
		code = http.StatusOK
	}
	writeError(w, r, a.Log, &apiError{Code: code, Message: "CORS domain not allowed",
		Details: "The domain [" + page + "] is not permitted access"})
}
