// Package adminroutes has the routes of an operator: health, version and settings,
// statistics, running queries and profiles, and dropping caches. It also answers the
// fixed lists of OpenTSDB's API: aggregators, filters, serializers.
// Source: StatsRpc, RpcManager.ListAggregators, ShowConfig, Version, DropCaches.
package adminroutes

import (
	"context"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/pushdown/rpc/auth"
)

// Handlers answer the operator's routes. All fields are set before Endpoints is
// called.
type Handlers struct {
	// Ready returns why puts or queries would not be accepted now.
	Ready   func(context.Context) error
	Version Version
	// Settings are the effective settings, with secrets masked.
	Settings map[string]string
	// Profiles serves /debug/pprof/.
	Profiles bool

	// Stats returns the gateway's numbers.
	Stats   func() []Stat
	Queries *querylog.Log
	// LogLines returns the last lines of the log, the newest first.
	LogLines func() []string
	// Now is the clock.
	Now func() time.Time

	// DropCaches drops what is cached here and on pushdown servers, and makes other gateways
	// check what they have cached.
	DropCaches func(context.Context) error
}

// Version is what /api/version answers; all values are strings, as in OpenTSDB.
type Version struct {
	ShortRevision string `json:"short_revision"`
	Repo          string `json:"repo"`
	Host          string `json:"host"`
	Version       string `json:"version"`
	FullRevision  string `json:"full_revision"`
	RepoStatus    string `json:"repo_status"`
	User          string `json:"user"`
	Branch        string `json:"branch"`
	Timestamp     string `json:"timestamp"`
}

// Endpoints returns the routes by path.
func (h *Handlers) Endpoints() map[string]httpio.Endpoint {
	const noScope = auth.Scope(0)
	routes := map[string]httpio.Endpoint{
		"healthz": {Scope: noScope, Serve: h.healthz, Reads: httpio.Get},
		"readyz":  {Scope: noScope, Serve: h.readyz, Reads: httpio.Get},
		"api/aggregators": {
			Scope:         auth.Read,
			Serve:         getOrPost(h.aggregators),
			Reads:         httpio.GetOrPost,
			TellsOperator: true,
		},
		"aggregators":        {Scope: auth.Read, Serve: getOrPost(h.aggregators), Reads: httpio.GetOrPost},
		"api/config":         {Scope: auth.Read, Serve: getOrPost(h.config), Reads: httpio.GetOrPost},
		"api/config/filters": {Scope: auth.Read, Serve: getOrPost(h.filters), Reads: httpio.GetOrPost},
		"api/version":        {Scope: auth.Read, Serve: getOrPost(h.version), Reads: httpio.GetOrPost},
		"version":            {Scope: auth.Read, Serve: getOrPost(h.version), Reads: httpio.GetOrPost},
		"api/serializers":    {Scope: auth.Read, Serve: h.serializers, Reads: httpio.GetOrPost},
		"api/stats":          {Scope: auth.Read, Serve: h.stats, Reads: httpio.GetOrPost},
		"api/stats/":         {Scope: auth.Read, Serve: h.otherStats, Reads: httpio.GetOrPost},
		"stats":              {Scope: auth.Read, Serve: h.oldStats, Reads: httpio.GetOrPost},
		"logs":               {Scope: auth.Admin, Serve: h.logs, Reads: httpio.Get},
		"api/dropcaches": {
			Scope: auth.Admin,
			Serve: h.dropCaches,
			Reads: httpio.NoVerb, //fault:link-drops-caches TestDoors_reads
		},
		"dropcaches": {Scope: auth.Admin, Serve: h.dropCaches, Reads: httpio.NoVerb},
	}
	if h.Profiles {
		profiles := httpio.FromHandler(profileHandler())
		routes["debug/pprof"] = httpio.Endpoint{Scope: auth.All, Serve: profiles, Reads: httpio.Get}
		routes["debug/pprof/"] = httpio.Endpoint{Scope: auth.All, Serve: profiles, Reads: httpio.Get}
	}
	return routes
}
