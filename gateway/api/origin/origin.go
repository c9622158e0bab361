// Package origin decides which pages in browsers may use the gateway, and under which
// names of its host, by the headers of a request and the settings alone: see Rules. An
// origin is what browsers send: a scheme, a host, and a port unless it is the scheme's
// default.
//
//	Origin: http://localhost:8000     a page of that host and port
//	Origin: https://grafana.example   port 443
//	Origin: null                      a page without one: a file, a sandbox
package origin

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"downpour/pushdown/process/list"
)

// List is the allowed origins in addition to the gateway's own. The zero value has none.
type List struct {
	all    bool
	listed []*url.URL
}

// Parse reads a list of origins, in any case, or "*" for all. Entries that no browser would send as
// an origin allow nothing: unusable has the reasons, and err is set if there are no others.
func Parse(entries []string) (l List, unusable []error, err error) {
	entries = list.Trim(entries)
	l.all = slices.Contains(entries, "*")
	others := slices.DeleteFunc(entries, func(text string) bool { return text == "*" })
	l.listed, unusable, err = list.Usable(others, parse)
	if l.all {
		err = nil
	}
	return l, unusable, err
}

// parse reads one origin and normalizes it to the form that browsers send.
func parse(text string) (*url.URL, error) {
	u, err := url.Parse(strings.ToLower(text))
	switch {
	case err != nil || u.Scheme == "" || !isHost(u):
		return nil, fmt.Errorf("got %q, want * or an origin as browsers send it, such as http://localhost:8000", text)
	case u.Scheme+"://"+u.Host != strings.ToLower(text):
		return nil, fmt.Errorf("got %q, want the origin alone: %s://%s", text, u.Scheme, u.Host)
	case u.Scheme == "http" && u.Port() == "80", u.Scheme == "https" && u.Port() == "443":
		// Browsers send this origin without the default port.
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u, nil
}

// isHost reports whether an origin has a host, and a port if any, in the form that browsers send.
func isHost(u *url.URL) bool {
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	_, err := netip.ParseAddr(u.Hostname())
	return err == nil || isName(u.Hostname())
}

// Empty reports whether no origin is listed.
func (l List) Empty() bool { return !l.all && len(l.listed) == 0 }

// Contains reports whether an origin is listed.
func (l List) Contains(origin string) bool {
	if l.all {
		return true
	}
	for _, u := range l.listed {
		if strings.EqualFold(u.Scheme+"://"+u.Host, origin) { //fault:origin-by-its-beginning TestList
			return true
		}
	}
	return false
}

// Allows reports whether a page of an origin may use the gateway: if the origin is
// listed, or if the gateway has served the page itself, which shows when the origin
// has the request's Host.
func (l List) Allows(origin, host string) bool {
	if l.Contains(origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// names reports whether a listed origin has the host of a Host header, with any port.
func (l List) names(host string) bool {
	name := nameOf(host)
	for _, u := range l.listed {
		if u.Hostname() == name {
			return true
		}
	}
	return false
}
