package extra_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
)

// A request to an extra that writes is 503 with Retry-After once the time of writes is over.
func TestWriteTime_extras(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.PutTimeout = 100 * time.Millisecond })
	if a := b.Post("/api/tree", `{"name":"t"}`); a.Status != http.StatusOK {
		t.Fatalf("a tree: %d %s", a.Status, a.Body)
	}
	answer := b.Store.StopWriting()
	defer answer() // before the gateway closes
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/api/tree", `{"name":"other"}`},
		{"POST", "/api/tree/rule", `{"treeId":1,"level":0,"order":0,"type":"METRIC"}`},
		{"PUT", "/api/dashboards/mine", oneText},
	} {
		a := b.Do(c.method, c.path, strings.NewReader(c.body), "If-None-Match", "*")
		if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" ||
			!strings.Contains(a.Body, "DOWNPOUR_PUT_TIMEOUT") {
			t.Errorf("%s %s while the store does not answer: got %d, Retry-After %q, %s; "+
				"want 503, a Retry-After and the setting",
				c.method, c.path, a.Status, a.Header.Get("Retry-After"), a.Body)
		}
	}
}
