package access

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
	// Allowed are origins beside the gateway's own.
	Allowed origin.List
	// Loopback says that the gateway listens on this host alone. Requests must
	// then name it as such. Otherwise a page could make its own host name resolve
	// to this host and, being of that origin, read everything (DNS rebinding).
	Loopback bool
}

// allows reports whether a request comes from the gateway's own page, from a page
// of a listed origin, or from no page at all.
func (o Origins) allows(r *http.Request) bool {
	page, ok := pageOf(r)
	return !ok || o.Allowed.Allows(page, r.Host)
}

// allowsChange is allows for a request that changes something. Here a link
// counts as a request of the page that holds it: the answer goes to the user who
// follows the link, but the change is made.
func (o Origins) allowsChange(r *http.Request) bool {
	if r.Header.Get("Origin") == "" && fromOtherSite(r) {
		return o.Allowed.Contains(refererOf(r))
	}
	return o.allows(r)
}

// fromOtherSite reports whether, according to the browser, a page of another site
// or of another host of the same site made it send the request. The browser says
// "none" if the user did, by typing the address or from a bookmark.
func fromOtherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// pageOf returns the origin of the page that made the browser send a request; ok
// is false if no page did. Browsers send no Origin for scripts, images and forms
// of other sites, but mark them in Sec-Fetch-Site. A followed link counts as no
// page's request, for its answer is shown to the user alone.
func pageOf(r *http.Request) (page string, ok bool) {
	if page = r.Header.Get("Origin"); page != "" {
		return page, true
	}
	if !fromOtherSite(r) || r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Method == http.MethodGet {
		return "", false
	}
	return refererOf(r), true
}

// refererOf returns the origin of the page in Referer, or "null", as browsers
// write the origin of a page that has none.
func refererOf(r *http.Request) string {
	if u, err := url.Parse(r.Referer()); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return "null"
}

// hostAllowed reports whether a request may have this Host header: any if the
// gateway does not listen on loopback, else localhost, an IP address or the host
// of a listed origin.
func (o Origins) hostAllowed(host string) bool {
	if !o.Loopback {
		return true
	}

	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	// No browser leaves the host out, and no page can make an IP address its own by DNS.
	return name == "" || strings.EqualFold(name, "localhost") || net.ParseIP(name) != nil || o.Allowed.Names(host, name)
}
