package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// Profiles are served only if the gateway is set so, and then to administrators alone.
func TestProfiles(t *testing.T) {
	for _, on := range []bool{false, true} {
		name := gatewaytest.TokenFile(t)
		b := open(t, func(c *gateway.Config) { c.TokenFile, c.Profiling = name, on })
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline"} {
			for token, want := range map[string]int{
				gatewaytest.AdminToken: http.StatusOK, gatewaytest.ReadToken: http.StatusForbidden,
				gatewaytest.BothToken: http.StatusForbidden, gatewaytest.WrongToken: http.StatusUnauthorized,
			} {
				if !on {
					want = http.StatusNotFound
				}
				if a := b.Get(path, "Authorization", "Bearer "+token); a.Status != want {
					t.Errorf("profiling %t, %s with token %s: %d, want %d", on, path, token, a.Status, want)
				}
			}
		}
		a := b.Get("/debug/pprof/goroutine?debug=1", "Authorization", "Bearer "+gatewaytest.AdminToken)
		if got := strings.Contains(a.Body, "downpour/gateway"); got != on {
			t.Errorf("profiling %t: goroutines of the gateway are shown: %t", on, got)
		}
	}
}
