package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
)

// A request that writes is told to come again once the time of writes is over, whichever route it
// takes and whatever the store was asked for.
func TestWriteTime_everyRoute(t *testing.T) {
	const limit = 100 * time.Millisecond
	b := open(t, func(c *gateway.Config) {
		c.AutoMetrics, c.PutTimeout, c.Rollups = "true", limit, someRollups
		c.Histograms = `{"net.opentsdb.core.SimpleHistogramDecoder": 0}`
		c.MetaTracking, c.MetaIncrementing, c.MetaRealtimeTS, c.MetaRealtimeUID = "true", "true", "true", "true"
	})
	b.put("known 1356998400 1 host=a", "unloved 1356998400 1 host=a")
	if a := b.post("/api/tree", `{"name":"t"}`); a.status != http.StatusOK {
		t.Fatalf("a tree: %d %s", a.status, a.body)
	}
	b.get("/api/search/lookup?m=known") // its meta data is written

	answer := b.store.stopWriting()
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
		{"POST", "/api/tree", `{"name":"other"}`},
		{"POST", "/api/tree/rule", `{"treeId":1,"level":0,"order":0,"type":"METRIC"}`},
		{"PUT", "/api/dashboards/mine", oneText},
	} {
		var header []string
		if strings.HasPrefix(c.path, "/api/dashboards/") {
			header = []string{"If-None-Match", "*"}
		}
		a := b.do(c.method, c.path, strings.NewReader(c.body), header...)
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || strings.Contains(c.path, "?") == false && !strings.Contains(a.body, "DOWNPOUR_PUT_TIMEOUT") {
			t.Errorf("%s %s while the store does not answer: got %d, Retry-After %q, %s; want 503, a Retry-After and the setting", c.method, c.path, a.status, a.header.Get("Retry-After"), a.body)
		}
	}

	// What puts have left to be recorded is written for a lookup, which has the same time for that.
	answer()
	b.put("known 1356998402 1 host=b")
	answer = b.store.stopWriting()
	for _, path := range []string{"/api/search/lookup?m=known", "/api/query/last?timeseries=known", "/api/uid/tsmeta?m=known", "/api/uid/uidmeta?type=metric&uid=000001"} {
		if a := b.get(path); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "DOWNPOUR_PUT_TIMEOUT") {
			t.Errorf("%s while meta data cannot be written: got %d, Retry-After %q, %s; want 503, a Retry-After and the setting", path, a.status, a.header.Get("Retry-After"), a.body)
		}
	}
}
