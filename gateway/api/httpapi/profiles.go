package httpapi

import (
	"net/http"
	"net/http/pprof"

	"downpour/pushdown/rpc/auth"
)

// profileRoutes are Go's own profiles of the process, for whoever may do
// anything: a profile shows function names and the process's arguments, never
// points. Source: package net/http/pprof.
func (a *API) profileRoutes(routes map[string]endpoint) {
	if !a.Profiles {
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	for name, serve := range map[string]http.HandlerFunc{
		"cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc("/debug/pprof/"+name, serve)
	}
	routes["debug/pprof"] = endpoint{auth.All, handler(mux), get}
	routes["debug/pprof/"] = endpoint{auth.All, handler(mux), get}
}
