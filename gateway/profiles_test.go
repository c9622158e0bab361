package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"downpour/gateway"
)

// Profiles are served only if the gateway is set so, and then to administrators alone.
func TestProfiles(t *testing.T) {
	for _, on := range []bool{false, true} {
		name := tokenFile(t)
		b := open(t, func(c *gateway.Config) { c.TokenFile, c.Profiling = name, on })
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline"} {
			for token, want := range map[string]int{
				adminToken: http.StatusOK, readToken: http.StatusForbidden, bothToken: http.StatusForbidden, wrongToken: http.StatusUnauthorized,
			} {
				if !on {
					want = http.StatusNotFound
				}
				if a := b.get(path, "Authorization", "Bearer "+token); a.status != want {
					t.Errorf("profiling %t, %s with token %s: %d, want %d", on, path, token, a.status, want)
				}
			}
		}
		a := b.get("/debug/pprof/goroutine?debug=1", "Authorization", "Bearer "+adminToken)
		if got := strings.Contains(a.body, "downpour/gateway"); got != on {
			t.Errorf("profiling %t: goroutines of the gateway are shown: %t", on, got)
		}
	}
}
