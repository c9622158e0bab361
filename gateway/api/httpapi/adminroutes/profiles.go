package adminroutes

import (
	"net/http"
	"net/http/pprof"
)

// profileHandler serves Go's own profiles of the process. Only a token that allows
// everything may read them: they show function names and the process's
// arguments, but no points. Source: package net/http/pprof.
func profileHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	for name, serve := range map[string]http.HandlerFunc{
		"cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc("/debug/pprof/"+name, serve)
	}
	return mux
}
