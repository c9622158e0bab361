package httpapi

import (
	"net/http"
	"strings"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/pushdown/rpc/auth"
)

// Routes returns all endpoints by their route, see httpio.RouteOf. A path that ends in a slash stands for everything
// below it.
func (a *API) Routes() map[string]httpio.Endpoint {
	const noScope = auth.Scope(0)
	page := func(w http.ResponseWriter, r *http.Request) error { a.Page.ServeHTTP(w, r); return nil }
	routes := map[string]httpio.Endpoint{
		"":            {Scope: noScope, Serve: page, Reads: httpio.Get},
		"favicon.ico": {Scope: noScope, Serve: page, Reads: httpio.Get},
		"metrics":     {Scope: auth.Read, Serve: httpio.FromHandler(a.Metrics), Reads: httpio.Get},
		// The socket checks token and origin itself: its token comes as a
		// subprotocol.
		"api/ws": {Scope: noScope, Serve: httpio.FromHandler(a.Live), Reads: httpio.Get, Absent: httpio.WriteOnly},
	}
	parts := []map[string]httpio.Endpoint{
		a.Put.Endpoints(),
		a.Query.Endpoints(),
		a.Meta.Endpoints(),
		a.Admin.Endpoints(),
	}
	for _, part := range append(parts, a.More...) {
		for route, e := range part {
			if _, taken := routes[route]; taken {
				panic("httpapi: two handlers of the route " + route) // a fault of the program, which every start shows
			}
			routes[route] = e
		}
	}
	return routes
}

// notInMode answers a route that the mode leaves out like one that OpenTSDB does not have.
func (a *API) notInMode(w http.ResponseWriter, r *http.Request) {
	httpio.WriteError(w, r, a.Log, &httpio.Error{Code: http.StatusNotFound, Message: "Endpoint not found",
		Details: "This gateway runs in mode " + a.Mode.String() + " (DOWNPOUR_MODE)"})
}

// find returns the route of a path. A path of more than two words that is not in
// the table has the route of its first two words with a slash after them, if that
// is in the table.
func find(routes map[string]httpio.Endpoint, path string) (httpio.Endpoint, bool) {
	if e, ok := routes[path]; ok {
		return e, true
	}
	first, rest, _ := strings.Cut(path, "/")
	second, _, below := strings.Cut(rest, "/")
	if !below {
		return httpio.Endpoint{}, false
	}
	e, ok := routes[first+"/"+second+"/"]
	return e, ok
}
