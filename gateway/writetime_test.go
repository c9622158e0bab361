package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// A client that writes is asked to retry once the time of writes is over, whichever route it takes
// and whatever was requested from the store.
func TestWriteTime_everyRoute(t *testing.T) {
	const limit = 100 * time.Millisecond
	b := open(t, func(c *gateway.Config) {
		c.AutoMetrics, c.PutTimeout, c.Rollups = "true", limit, gatewaytest.SomeRollups
		c.Histograms = `{"net.opentsdb.core.SimpleHistogramDecoder": 0}`
		c.MetaTracking, c.MetaIncrementing, c.MetaRealtimeTS, c.MetaRealtimeUID = "true", "true", "true", "true"
	})
	b.Put("known 1356998400 1 host=a", "unloved 1356998400 1 host=a")
	b.Get("/api/search/lookup?m=known") // its meta data is written

	answer := b.Store.StopWriting()
	defer func() { answer() }() // before the gateway closes

	point := `{"metric":"known","timestamp":1356998401,"value":1,"tags":{"host":"a"}}`
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/api/put", point},
		{"POST", "/api/put?sync&sync_timeout=600000", point},
		{"POST", "/api/put?details", point},
		{"POST", "/api/put?summary", "[" + point + "," + point + "]"},
		{"POST", "/api/put", strings.Replace(point, "known", "new", 1)},
		{"POST", "/api/rollup", strings.Replace(point, "}}", `},"interval":"1h","aggregator":"sum"}`, 1)},
		{"POST", "/api/histogram", `{"metric":"known","timestamp":1356998401,"tags":{"host":"a"},"buckets":{"0,1":1}}`},
		{"POST", "/api/annotation", `{"startTime":1356998401,"description":"d"}`},
		{"PUT", "/api/annotation", `{"startTime":1356998401,"description":"d"}`},
		{"GET", "/api/annotation?start_time=1356998401&description=d&method_override=post", ""},
		{"POST", "/api/annotation/bulk", `[{"startTime":1356998401,"description":"d"}]`},
		{"GET", "/api/uid/assign?metric=other", ""},
		{"POST", "/api/uid/assign", `{"tagk":["other"]}`},
		{"POST", "/api/uid/rename", `{"metric":"unloved","name":"renamed"}`},
		{"POST", "/api/uid/uidmeta", `{"type":"metric","uid":"000001","displayName":"x"}`},
		{"POST", "/api/uid/tsmeta", `{"tsuid":"000001000001000001","displayName":"x"}`},
	} {
		a := b.Do(c.method, c.path, strings.NewReader(c.body))
		if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" ||
			strings.Contains(c.path, "?") == false && !strings.Contains(a.Body, "DOWNPOUR_PUT_TIMEOUT") {
			t.Errorf("%s %s while the store does not answer: got %d, Retry-After %q, %s; want 503, "+
				"a Retry-After and the setting", c.method, c.path, a.Status, a.Header.Get("Retry-After"), a.Body)
		}
	}

	// What puts have left to be recorded is written for a lookup, which has the same time for that.
	answer()
	b.Put("known 1356998402 1 host=b")
	answer = b.Store.StopWriting()
	for _, path := range []string{
		"/api/search/lookup?m=known", "/api/query/last?timeseries=known", "/api/uid/tsmeta?m=known",
		"/api/uid/uidmeta?type=metric&uid=000001",
	} {
		if a := b.Get(path); a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" ||
			!strings.Contains(a.Body, "DOWNPOUR_PUT_TIMEOUT") {
			t.Errorf("%s while meta data cannot be written: got %d, Retry-After %q, %s; "+
				"want 503, a Retry-After and the setting", path, a.Status, a.Header.Get("Retry-After"), a.Body)
		}
	}
}
