package httpapi

import (
	"strings"

	"downpour/pushdown/auth"
)

// metaRoutes are the routes of metadata, annotations and searches. All are open
// to readers: what changes data asks for more, whatever its verb.
func (a *API) metaRoutes(routes map[string]endpoint) {
	for route, e := range map[string]endpoint{
		"api/uid":          {auth.Read, a.otherUID},
		"api/uid/":         {auth.Read, a.otherUID},
		"api/uid/assign":   {auth.Read, a.uidAssign},
		"api/uid/rename":   {auth.Read, a.uidRename},
		"api/uid/uidmeta":  {auth.Read, a.uidMeta},
		"api/uid/tsmeta":   {auth.Read, a.tsMeta},
		"api/search":       {auth.Read, a.search},
		"api/search/":      {auth.Read, a.search},
		"api/annotation":   {auth.Read, a.annotations},
		"api/annotation/":  {auth.Read, a.annotations},
		"api/annotations":  {auth.Read, a.annotations},
		"api/annotations/": {auth.Read, a.annotations},
		"api/query/last":   {auth.Read, a.queryLast},
		"api/stats":        {auth.Read, a.stats},
		"api/stats/":       {auth.Read, a.otherStats},
		"stats":            {auth.Read, a.oldStats},
	} {
		routes[route] = e
	}
}

// find returns the route of a path: itself, or the first two words of it with a
// slash behind, for all that lies below them.
func find(routes map[string]endpoint, path string) (endpoint, bool) {
	if e, ok := routes[path]; ok {
		return e, true
	}
	first, rest, _ := strings.Cut(path, "/")
	second, _, below := strings.Cut(rest, "/")
	if !below {
		return endpoint{}, false
	}
	e, ok := routes[first+"/"+second+"/"]
	return e, ok
}
