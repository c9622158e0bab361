package extra_test

import (
	"net/http"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// bodyRoutes are the routes that take a JSON body, each with one that has a number or a text where
// %s stands, and how a bare NaN there is answered: as by Jackson, which takes it as a number, a
// text, or 0 where an integer is wanted.
var bodyRoutes = []struct {
	method, path, body string
	status             int
	want               string
}{
	{"POST", "/api/put", `[{"metric":"m","timestamp":1356998400,"value":%s,"tags":{"host":"a"}},` +
		`{"metric":"m","timestamp":1356998401,"value":1,"tags":{"host":"a"}}]`, 400, `One or more data points`},
	{"POST", "/api/put", `[{"metric":"m","timestamp":%s,"value":1,"tags":{"host":"a"}},` +
		`{"metric":"m","timestamp":1356998401,"value":1,"tags":{"host":"a"}}]`, 400, `One or more data points`},
	{"POST", "/api/put", `{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":%s}}`, 204, ``},
	{"POST", "/api/rollup",
		`{"metric":"m","timestamp":1356998400,"value":%s,"tags":{"host":"a"},"interval":"1h","aggregator":"sum"}`,
		400, `One or more data points`},
	{"POST", "/api/histogram",
		`{"metric":"h","timestamp":1356998400,"overflow":%s,"underflow":0,"buckets":{"0,1":1},"tags":{"host":"a"}}`,
		204, ``},
	{"POST", "/api/query", `{"start":%s,"queries":[{"aggregator":"sum","metric":"m"}]}`, 400, `Invalid time: NaN`},
	{"POST", "/api/query", `{"start":1356998400,"msResolution":%s,"queries":[{"aggregator":"sum","metric":"m"}]}`,
		400, `msResolution: NaN where true or false is wanted`},
	{"POST", "/api/query", `{"start":1356998400,"queries":[{"aggregator":"sum","metric":"m","rate":true,` +
		`"rateOptions":{"counterMax":%s}}]}`, 200, `"metric":"m"`},
	{"POST", "/api/query/exp", `{"time":{"start":%s,"aggregator":"sum"},"metrics":[{"id":"a","metric":"m"}],` +
		`"expressions":[{"id":"e","expr":"a"}]}`, 400, `Invalid time`},
	{"POST", "/api/query/last", `{"backScan":%s,"queries":[{"metric":"m"}]}`, 200, `[]`},
	{"POST", "/api/search/lookup", `{"metric":"m","limit":%s}`, 200, `"limit":0`},
	{"POST", "/api/search/values?tagk=host", `{"metric":"m","limit":%s}`, 400, `limit: got 0`},
	{"POST", "/api/suggest", `{"type":"metrics","max":%s}`, 400, `Unable to parse 'max' as a number`},
	{"POST", "/api/annotation", `{"startTime":1356998400,"description":%s}`, 200, `"description":"NaN"`},
	{"POST", "/api/annotation", `{"startTime":%s,"description":"d"}`, 400, `start timestamp has not been set`},
	{"POST", "/api/annotation/bulk", `[{"startTime":%s,"description":"d"}]`, 400, `start timestamp has not been set`},
	{"POST", "/api/uid/assign", `{"metric":[%s]}`, 200, `"NaN"`},
	{"POST", "/api/uid/rename", `{"metric":"m","name":%s}`, 400, `already assigned`},
	{"POST", "/api/uid/uidmeta", `{"uid":"000001","type":"metric","description":%s}`, 200, `"description":"NaN"`},
	{"POST", "/api/uid/tsmeta", `{"tsuid":"000001000001000001","max":%s}`, 200, `"max":"NaN"`},
	{"POST", "/api/tree", `{"name":%s}`, 200, `"name":"NaN"`},
	{"POST", "/api/tree/rule", `{"treeId":1,"level":%s,"order":0,"type":"METRIC"}`, 200, `"level":0`},
	{"POST", "/api/tree/rules", `[{"treeId":1,"level":%s,"order":0,"type":"METRIC"}]`, 204, ``},
	{"PUT", "/api/dashboards/d", `{"title":%s}`, 400, ``},
}

func bodyBench(t *testing.T) *bench {
	b := open(t, func(c *gateway.Config) {
		gatewaytest.WithRollups(c)
		c.Histograms = `{"net.opentsdb.core.SimpleHistogramDecoder":1}`
	})
	b.Put("m 1356998400 1 host=a")
	return b
}

// A bare NaN in a body is read at every route as OpenTSDB reads it, and costs no more than its own point.
func TestBodies_nan(t *testing.T) {
	b := bodyBench(t)
	for _, r := range bodyRoutes {
		a := b.Do(r.method, r.path, strings.NewReader(strings.Replace(r.body, "%s", "NaN", 1)), "If-None-Match", "*")
		if a.Status != r.status || !strings.Contains(a.Body, r.want) {
			t.Errorf("%s %s %s: %d %s, want %d with %s", r.method, r.path, r.body, a.Status, a.Body, r.status, r.want)
		}
	}
	a := b.Get("/api/query?start=1356998401&end=1356998402&m=none:m%7Bhost=a%7D")
	if !strings.Contains(a.Body, `"1356998401":1`) {
		t.Errorf("the good point next to those of NaN: %d %s", a.Status, a.Body)
	}
}

// JSON that is nested a hundred thousand deep is a 400 that says why, at every route and wherever
// it stands, and the gateway goes on.
func TestBodies_deep(t *testing.T) {
	const n = 100_000
	lists, objects := strings.Repeat("[", n), strings.Repeat(`{"a":`, n)
	b := bodyBench(t)
	for _, r := range bodyRoutes {
		for what, body := range map[string]string{
			"lists":        strings.Replace(r.body, "%s", lists+strings.Repeat("]", n), 1),
			"objects":      strings.Replace(r.body, "%s", objects+"1"+strings.Repeat("}", n), 1),
			"open lists":   strings.Replace(r.body, "%s", lists, 1),
			"open objects": strings.Replace(r.body, "%s", objects, 1),
			"only lists":   lists + strings.Repeat("]", n), "only open lists": lists, "only open objects": objects,
		} {
			a := b.Do(r.method, r.path, strings.NewReader(body), "If-None-Match", "*")
			if a.Status != http.StatusBadRequest ||
				!strings.Contains(a.Body, "JSON") && !strings.Contains(a.Body, "Cannot deserialize") ||
				len(a.Body) > 1000 {
				t.Errorf("%s %s %s, %s: %d %.300s, want a short 400 about the JSON",
					r.method, r.path, r.body, what, a.Status, a.Body)
			}
		}
	}
	if a := b.Get("/healthz"); a.Status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.Status, a.Body)
	}
}
