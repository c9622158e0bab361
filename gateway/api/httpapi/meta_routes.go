package httpapi

import (
	"strings"

	"downpour/pushdown/rpc/auth"
)

// metaRoutes are the routes of metadata, annotations and searches. All are open
// to readers: what changes data asks for more, whatever its verb.
func (a *API) metaRoutes(routes map[string]endpoint) {
	for route, e := range map[string]endpoint{
		"api/uid":          {auth.Read, a.otherUID, nothing},
		"api/uid/":         {auth.Read, a.otherUID, nothing},
		"api/uid/assign":   {auth.Read, a.uidAssign, nothing},
		"api/uid/rename":   {auth.Read, a.uidRename, nothing},
		"api/uid/uidmeta":  {auth.Read, a.uidMeta, get},
		"api/uid/tsmeta":   {auth.Read, a.tsMeta, get},
		"api/search":       {auth.Read, a.search, getOrPost},
		"api/search/":      {auth.Read, a.search, getOrPost},
		"api/annotation":   {auth.Read, a.annotations, get},
		"api/annotation/":  {auth.Read, a.annotations, get},
		"api/annotations":  {auth.Read, a.annotations, get},
		"api/annotations/": {auth.Read, a.annotations, get},
		"api/query/last":   {auth.Read, a.queryLast, getOrPost},
		"api/stats":        {auth.Read, a.stats, getOrPost},
		"api/stats/":       {auth.Read, a.otherStats, getOrPost},
		"stats":            {auth.Read, a.oldStats, getOrPost},
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
