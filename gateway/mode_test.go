package gateway_test

import (
	"net/http"
	"testing"
)

// In mode ro a gateway has no routes that write, in mode wo none that read; the routes that tell
// its own state are there in both.
func TestMode(t *testing.T) {
	f := func(mode, path string, want int) {
		t.Helper()
		cfg := config(0)
		cfg.Mode = mode
		g := start(t, cfg, memoryStore(t, cfg))
		resp, err := http.Get(g.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("mode %s, %s: status %d, want %d", mode, path, resp.StatusCode, want)
		}
	}
	f("rw", "api/put", http.StatusMethodNotAllowed)
	f("ro", "api/put", http.StatusNotFound)
	f("ro", "api/v1/put", http.StatusNotFound)
	f("ro", "API/V1/put/", http.StatusNotFound)
	f("ro", "api/v2/put", http.StatusNotImplemented) // a wrong version comes before an unknown route, as in OpenTSDB
	f("ro", "api/v1x/put", http.StatusBadRequest)
	f("ro", "api/uid/assign?metric=m", http.StatusNotFound)
	f("ro", "api/annotation", http.StatusNotFound)
	f("ro", "api/suggest?type=metrics", http.StatusOK)
	f("wo", "api/suggest?type=metrics", http.StatusNotFound)
	f("wo", "api/put", http.StatusMethodNotAllowed)
	f("wo", "api/version", http.StatusOK)
}
