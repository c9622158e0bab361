package httpapi

import (
	"maps"
	"net/http"
	"strings"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/pushdown/rpc/auth"
)

// Routes lists every route that a gateway without profiling has, by its path
// below "/". A path that ends in a slash stands for everything below it.
func Routes() map[string]httpio.Endpoint {
	return new(API).routes()
}

// routes returns all endpoints by their route, see httpio.RouteOf.
func (a *API) routes() map[string]httpio.Endpoint {
	const noScope = auth.Scope(0)
	page := func(w http.ResponseWriter, r *http.Request) error { a.Page.ServeHTTP(w, r); return nil }
	routes := map[string]httpio.Endpoint{
		"":            {Scope: noScope, Serve: page, Reads: httpio.Get},
		"favicon.ico": {Scope: noScope, Serve: page, Reads: httpio.Get},
		// The page of dashboards lists them, and below it each has a page.
		"d": {Scope: noScope, Serve: page, Reads: httpio.Get},
		// The page shows what /api/ops tells, which needs a token's scope.
		"ops": {Scope: noScope, Serve: page, Reads: httpio.Get},
		// The documentation; its pages are below.
		"docs":    {Scope: noScope, Serve: page, Reads: httpio.Get},
		"metrics": {Scope: auth.Read, Serve: httpio.FromHandler(a.Metrics), Reads: httpio.Get},
		// The socket checks token and origin itself: its token comes as a
		// subprotocol.
		"api/ws": {Scope: noScope, Serve: httpio.FromHandler(a.Live), Reads: httpio.Get},
		// The tools' routes are for the binary's sub-commands, while the gateway
		// has the embedded store open.
		"api/tools/export": {Scope: auth.Read, Serve: httpio.FromHandler(a.Tools), Reads: httpio.Get},
		"api/tools/scan":   {Scope: auth.Read, Serve: httpio.FromHandler(a.Tools), Reads: httpio.Get},
		"api/tools/names":  {Scope: auth.Read, Serve: httpio.FromHandler(a.Tools), Reads: httpio.Get},
		"api/tools/import": {Scope: auth.Write, Serve: httpio.FromHandler(a.Tools), Reads: httpio.NoVerb, OwnTime: true, Audited: true},
		"api/tools/assign": {Scope: auth.Write, Serve: httpio.FromHandler(a.Tools), Reads: httpio.NoVerb, Audited: true},
		"api/tools/rename": {Scope: auth.Admin, Serve: httpio.FromHandler(a.Tools), Reads: httpio.NoVerb},
		"api/tools/trees":  {Scope: auth.Write, Serve: httpio.FromHandler(a.Tools), Reads: httpio.NoVerb, OwnTime: true, Audited: true},
		"api/tools/delete": {Scope: auth.Admin, Serve: httpio.FromHandler(a.Tools), Reads: httpio.NoVerb, OwnTime: true},
		"api/tools/uid":    {Scope: auth.Admin, Serve: httpio.FromHandler(a.Tools), Reads: httpio.NoVerb, OwnTime: true},
		"api/tools/rollup": {Scope: auth.Admin, Serve: httpio.FromHandler(a.Tools), Reads: httpio.NoVerb, OwnTime: true},
		"api/tools/fsck":   {Scope: auth.Admin, Serve: httpio.FromHandler(a.Tools), Reads: httpio.NoVerb, OwnTime: true},
		// It deletes points.
		"api/tools/retention": {Scope: auth.Admin, Serve: httpio.FromHandler(a.Tools), Reads: httpio.NoVerb, OwnTime: true},
		// It keeps the store's files for a backup, in the store's own directory.
		"api/tools/checkpoint": {Scope: auth.Admin, Serve: httpio.FromHandler(a.Tools), Reads: httpio.NoVerb, OwnTime: true},
	}
	maps.Copy(routes, a.Put.Endpoints())
	maps.Copy(routes, a.Query.Endpoints())
	maps.Copy(routes, a.Meta.Endpoints())
	maps.Copy(routes, a.Trees.Endpoints())
	maps.Copy(routes, a.Admin.Endpoints())
	maps.Copy(routes, a.Dashboards.Endpoints())
	maps.Copy(routes, a.Ops.Endpoints())
	return routes
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
