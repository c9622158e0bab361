package origin

import (
	"net/http"
	"net/url"
	"strings"
)

// Rules decide from the headers of a request whether it is answered.
//
// Browsers name the requesting page in two ways. Origin comes with every verb except GET and HEAD,
// and with all reads of a script from another site. Sec-Fetch-* comes with everything, but only to
// https and to loopback: over plain http from another machine the browser does not identify the
// page that loads a script or an image, or that has the link. See Open.
type Rules struct {
	// Allowed are origins in addition to the gateway's own.
	Allowed List
	// Hosts are names of the gateway in addition to addresses, localhost and the hosts of Allowed.
	Hosts Hosts
	// Loopback is set if the gateway listens only on this host. All requests must then
	// name it as such. Otherwise a page could make its own host name resolve to this
	// host and, being of that origin, read everything (DNS rebinding).
	Loopback bool
	// Open is set if other hosts may come without a token. Browsers must then use a known name of
	// the gateway, and get neither a script nor a change for a GET which may be from a page of
	// another site. If tokens are needed, such a page has none.
	Open bool
}

// Request is the input of Rules.
type Request struct {
	Method string // as it was sent
	Host   string
	Header map[string][]string // by canonical names
}

// Of returns the input of Rules for a request.
func Of(r *http.Request) Request { return Request{Method: r.Method, Host: r.Host, Header: r.Header} }

// Use is what a request is for.
type Use int

// The uses of requests.
const (
	// Read is a request for an answer. A page of another site may not see it, but may link to it:
	// then only the user sees it.
	Read Use = iota
	// Script is a request for an answer that a page of any site can run as a script (jsonp).
	Script
	// Change changes something, by any verb. Here a link counts as a request of the page that has
	// it: the answer goes to the user who follows it, but the change is made.
	Change
	// Picture is a request for a picture that pages of all sites may show. They can read only its
	// size.
	Picture
	// File is a request for a file of our page, which has no data, or for a WebSocket, whose Origin is
	// checked by List.Allows: behind a proxy that changes the host name they are requested with a
	// foreign Origin, like everything, and only the page can show its user an explanation.
	File
)

// Verdict is the decision of Rules on a request.
type Verdict int

// The verdicts.
const (
	// Ours is a request of our own page, of a listed one, or of none.
	Ours Verdict = iota
	// Elsewhere is a request of a page of another site, for something that it may have.
	Elsewhere
	// Foreign is a request that is refused, because a page of another site made the browser send it.
	Foreign
	// Unsaid is a request that is refused, because a browser sends it and does not name the
	// requesting page.
	Unsaid
	// UnknownHost is a request that is refused, because it names a host that is not known to be ours.
	UnknownHost
)

// Decide decides on a request.
func (o Rules) Decide(r Request, use Use) Verdict {
	if !o.knows(r) {
		return UnknownHost
	}
	switch {
	case !o.allows(r, use):
		if use == File || use == Picture && r.forImage() {
			return Elsewhere
		}
		return Foreign
	case (use == Script || use == Change) && o.Open: //fault:plain-browsers-trusted TestRules
		return o.said(r)
	}
	return Ours
}

// knows reports whether a request uses a known name of the gateway: an address, localhost, or a
// listed name. No browser leaves the host out, and no page can make an IP address its own by DNS.
func (o Rules) knows(r Request) bool {
	switch {
	case o.Loopback:
		return o.Hosts.has(r.Host) || o.Allowed.names(r.Host)
	case o.Open && r.byBrowser():
		return o.Hosts.has(r.Host) || o.Allowed.names(r.Host) || o.Allowed.all
	}
	return true
}

// allows reports whether the page in the headers, if they name one, may make the request.
func (o Rules) allows(r Request, use Use) bool {
	switch page := r.first("Origin"); {
	case page != "":
		return o.Allowed.Allows(page, r.Host)
	case !r.fromOtherSite():
		return true
	case use == Change:
		return o.Allowed.Contains(r.referer())
	case r.Method == http.MethodGet && r.first("Sec-Fetch-Mode") == "navigate": // a link
		return true
	}
	return o.Allowed.Allows(r.referer(), r.Host)
}

// said decides on a request for a script or a change, where only Referer may name the page. A page can keep
// its browser from sending that, too, so a browser without it is refused. Browsers send an Origin with other
// verbs than GET and HEAD; there only programs send none.
func (o Rules) said(r Request) Verdict {
	if r.has("Origin") || r.has("Sec-Fetch-Site") || o.Allowed.Allows(r.referer(), r.Host) {
		return Ours
	}
	switch reads := r.Method == http.MethodGet || r.Method == http.MethodHead; {
	case r.has("Referer"):
		return Foreign
	case reads && r.byBrowser():
		return Unsaid
	}
	return Ours
}

// Page returns the origin of the page that made a browser send a request, "null" if it is unknown.
func (r Request) Page() string {
	if page := r.first("Origin"); page != "" {
		return page
	}
	return r.referer()
}

// byBrowser reports whether a browser sends a request. A page whose host name leads here may set any header of its
// requests but Origin, Via, Sec-* and a few more, User-Agent included in some browsers; it cannot leave out
// Accept-Language. Grafana's backend passes its users' headers on, and marks that. The fetch of Node.js sends a
// language, too, and only the mode of Sec-Fetch-*.
func (r Request) byBrowser() bool {
	via := strings.Fields(r.first("Via")) // 1.1 grafana
	switch {
	case len(via) > 1 && strings.TrimSuffix(via[1], ",") == "grafana":
		return false
	case r.has("Origin") || r.has("Sec-Fetch-Site"):
		return true
	case r.has("Sec-Fetch-Mode"):
		return false
	case r.has("Accept-Language"):
		return true
	}
	agent := r.first("User-Agent")
	return (strings.HasPrefix(agent, "Mozilla/") || strings.HasPrefix(agent, "Opera/")) &&
		!strings.Contains(agent, "PowerShell")
}

// fromOtherSite reports whether, according to the browser, a page of another site or of another host of
// the same site made it send the request. The browser says "none" if the user did, by typing the address or
// from a bookmark.
func (r Request) fromOtherSite() bool {
	site := r.first("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// forImage reports whether a browser requests an image to show in a page. Requests of scripts,
// forms and frames have other headers. Browsers that do not send the purpose do not send the site
// either.
func (r Request) forImage() bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return reads && !r.has("Origin") && r.first("Sec-Fetch-Dest") == "image" && r.first("Sec-Fetch-Mode") == "no-cors"
}

// referer returns the origin of the page in Referer, or "null", as browsers write the origin of a page
// that has none.
func (r Request) referer() string {
	if u, err := url.Parse(r.first("Referer")); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return "null"
}

func (r Request) has(name string) bool { return len(r.Header[name]) > 0 }

func (r Request) first(name string) string {
	if r.has(name) {
		return r.Header[name][0]
	}
	return ""
}
