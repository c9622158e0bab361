package gateway

import (
	"fmt"
	"net/http"
	"strings"
)

// Routes that a mode does without. Source: RpcManager.initializeBuiltinRpcs,
// which leaves their handlers out when tsd.mode is ro or wo.
var (
	writing = []string{"put", "rollup", "histogram", "uid", "annotation", "annotations", "tree"}
	reading = []string{"query", "suggest", "search", "annotation", "annotations", "uid", "tree", "ws", "q"}
)

// inMode answers as OpenTSDB does where a route is not there: in mode ro those
// that write points or metadata, in mode wo those that read.
func (s *Server) inMode(h http.Handler) http.Handler {
	missing := map[string][]string{"ro": writing, "wo": reading}[s.cfg.Mode]
	if missing == nil {
		return h
	}
	gone := make(map[string]bool, len(missing))
	for _, route := range missing {
		gone[route] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !gone[routeOf(r.URL.Path)] {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error":{"code":404,"message":"Endpoint not found","details":"This gateway runs in mode %s (DOWNPOUR_MODE)"}}`, s.cfg.Mode)
	})
}

// routeOf is a path's first word behind api/ and its version: "query" of
// /api/v1/query/last. Paths outside the API are their own first word.
func routeOf(path string) string {
	words := strings.Split(strings.ToLower(strings.Trim(path, "/")), "/")
	if words[0] == "api" && len(words) > 1 {
		words = words[1:]
		if v := words[0]; len(words) > 1 && len(v) > 1 && v[0] == 'v' && strings.Trim(v[1:], "0123456789") == "" {
			words = words[1:]
		}
	}
	return words[0]
}
