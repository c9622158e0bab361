package tools_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"downpour/gateway/api/standby"
	"downpour/gateway/extra/tools"
	"downpour/pushdown/store/pebble"
)

// A tool does not open an embedded store for which a gateway waits, and says why it waits. It does not wait for a
// gateway with another store, nor for somebody else at that port.
func TestTools_awaitGateway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var waiting atomic.Int32
	var opened int
	p := newPlace(t, "pebble:"+dir, func() (tools.Store, error) {
		if waiting.Load() > 0 {
			t.Error("the store was opened while a gateway waited for it")
		}
		opened++
		return pebble.Open(dir, pebble.Options{})
	})
	address := "pebble:" + dir
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if waiting.Add(-1) >= 0 {
			w.Header().Set(standby.Header, address)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	f := func(of string, times int32, waits bool, name string, args ...string) {
		t.Helper()
		address = of
		waiting.Store(times)
		before := opened
		if err := p.tool(server.URL, nil, name, args...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if said := strings.Count(p.errs.String(), "waiting for it"); (said == 1) != waits || said > 1 {
			t.Errorf("%s: got %q, want that it waits: %t", name, &p.errs, waits)
		}
		if name == "mkmetric" && opened != before+1 {
			t.Errorf("%s has opened the store %d times, want once", name, opened-before)
		}
	}
	f("pebble:"+dir, 2, true, "mkmetric", "m")
	f("pebble:"+dir, 1, true, "backup", filepath.Join(t.TempDir(), "backups"))
	f("pebble:"+dir, 0, false, "mkmetric", "n")
	f("pebble:/another", 1, false, "mkmetric", "o")
}
