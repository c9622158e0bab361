package httpio

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// Endpoint is one route of the API.
type Endpoint struct {
	// Scope is what a token must allow, for any verb; zero needs no token. Some handlers require
	// more, depending on the verb.
	Scope auth.Scope
	// Serve answers a request. An error that it returns becomes an error object.
	Serve func(http.ResponseWriter, *http.Request) error
	// Reads are the verbs by which a request changes nothing. A request by any other
	// verb is refused if a page of another site made the browser send it, even as a
	// link. So a route without Reads is closed to other sites.
	Reads Verbs
	// Memory is whose share of the process's memory its requests have: that of queries, or of what takes points.
	Memory memory.Class
	// OwnTime is set if requests that write have their own time limit, and not that of writes:
	// queries that delete, and the long work of tools.
	OwnTime bool
	// Audited is set if a request by any other verb than Reads is logged, though its
	// scope is not admin.
	Audited bool
	// TellsOperator says that pages ask for the route at their start: its answer has a header if the token is an
	// operator's.
	TellsOperator bool
	// Absent are the modes in which a gateway does not have the route.
	Absent Mode
	// Picture, if it is set, reports whether the answer to a request is a picture, which pages of other sites may show
	// while no token is needed.
	Picture func(*http.Request) bool
	// Denied, if set, is called for a request that may not use the route.
	Denied func(r *http.Request, err error)
}

// Mode is what a gateway is used for, see DOWNPOUR_MODE; 0 is everything. Several are a set.
type Mode uint8

// The modes in which a gateway has some of its routes. Source: RpcManager.initializeBuiltinRpcs, which leaves handlers
// out when tsd.mode is ro or wo.
const (
	ReadOnly Mode = 1 << iota
	WriteOnly
)

// String returns the mode as DOWNPOUR_MODE has it.
func (m Mode) String() string {
	switch m {
	case ReadOnly:
		return "ro"
	case WriteOnly:
		return "wo"
	}
	return "rw"
}

// Verbs are methods of HTTP. HEAD counts as GET.
type Verbs []string

// The reading verbs of most routes. A query can delete what it reads by a field of its body, with
// any verb; queryroutes checks that itself.
var (
	NoVerb    = Verbs{}
	Get       = Verbs{http.MethodGet}
	GetOrPost = Verbs{http.MethodGet, http.MethodPost}
)

// Contains reports whether the request's verb, after method_override, is one of v.
func (v Verbs) Contains(r *http.Request) bool {
	method, err := Method(r)
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return err == nil && slices.Contains(v, method)
}

// FromHandler adapts a handler that writes its own errors.
func FromHandler(h http.Handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error { h.ServeHTTP(w, r); return nil }
}

// Path is a request's route.
func Path(r *http.Request) string {
	route, _ := RouteOf(r.URL.Path)
	return route
}

// RouteOf returns the route of a URL's path: in lower case, without slashes
// around it and without the API version ("/API/v1/Put/" is "api/put"). The error
// refuses a version that is not a number or is above 1; callers report it before
// they look the route up.
// Source: HttpQuery.explodeAPIPath.
func RouteOf(urlPath string) (route string, err error) {
	route = strings.ToLower(strings.Trim(urlPath, "/"))
	number, rest, ok := cutVersion(route)
	if !ok {
		return route, nil
	}
	return "api/" + rest, checkVersion(number)
}

// cutVersion cuts the API version out of a route: of "api/v1/put" it is "1". A
// word that begins with v and no digit, as in api/version, is no API version.
func cutVersion(route string) (number, rest string, ok bool) {
	rest, ok = strings.CutPrefix(route, "api/v")
	if !ok || rest == "" || rest[0] < '0' || rest[0] > '9' {
		return "", "", false
	}
	number, rest, _ = strings.Cut(rest, "/")
	return number, rest, true
}

// checkVersion refuses an API version that is no number, or above 1. Source:
// HttpQuery.explodeAPIPath.
func checkVersion(number string) error {
	switch n, err := strconv.ParseInt(number, 10, 32); {
	case err != nil:
		return &Error{Code: http.StatusBadRequest, Message: "Invalid API version format supplied",
			Details: "API version [" + number + "] cannot be parsed"}
	case n > 1:
		return &Error{
			Code:    http.StatusNotImplemented,
			Message: "Requested API version is greater than the max implemented",
			Details: "API version [" + number + "] is greater than the max [1]",
		}
	}
	return nil
}
