package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"downpour/gateway/api/httpapi/httpio"
)

// Routes that a mode leaves out. Source: RpcManager.initializeBuiltinRpcs,
// which leaves their handlers out when tsd.mode is ro or wo. Dashboards are read in mode ro; their
// handlers refuse to change them.
var (
	writing = []string{"put", "rollup", "histogram", "uid", "annotation", "annotations", "tree"}
	reading = []string{"query", "suggest", "search", "annotation", "annotations", "uid", "tree", "ws", "q", "dashboards"}
)

// inMode leaves out routes: in mode ro those that write points or metadata, in mode wo
// those that read. They are answered like routes that OpenTSDB does not have.
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
		route, err := httpio.RouteOf(r.URL.Path)
		word, _, _ := strings.Cut(strings.TrimPrefix(route, "api/"), "/")
		// A path that names no route, or a version that is none, has the same answer in every mode.
		if err != nil || !gone[word] {
			h.ServeHTTP(w, r)
			return
		}

		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error":{"code":404,"message":"Endpoint not found","details":"This gateway runs in mode %s (DOWNPOUR_MODE)"}}`, s.cfg.Mode)
	})
}
