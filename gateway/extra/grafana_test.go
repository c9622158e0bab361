package extra_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
)

// Grafana's Prometheus data source gets answers from which it reads what was put: to the requests of its test button,
// its panels, its editor, its variables and its alert rules, with a token and a parameter of its own. The page of the
// docs says so. Those of the OpenTSDB data source are in integration/grafana_test.go.
func TestGrafana_prometheus(t *testing.T) {
	t.Parallel()
	b := open(t, func(cfg *gateway.Config) { cfg.TokenFile = gatewaytest.TokenFile(t) })
	var points []string
	for i := range 60 { // a point a minute
		for host, dc := range map[string]string{"web01": "x", "web02": "y"} {
			points = append(points, fmt.Sprintf(`{"metric":"sys.cpu.user","timestamp":%d,"value":%d,`+
				`"tags":{"host":%q,"dc":%q,"host.kind":"a"}}`, 1356998400+60*i, 60*i, host, dc))
		}
	}
	writer := []string{"Authorization", "Bearer " + gatewaytest.WriteToken}
	if a := b.Post("api/put", "["+strings.Join(points, ",")+"]", writer...); a.Status != http.StatusNoContent {
		t.Fatalf("put: %d %s", a.Status, a.Body)
	}

	const from, to = "1356998400", "1357001940"
	times := []string{"start", from, "end", to}
	listed := append([]string{"limit", "40000"}, times...)
	for _, c := range []struct {
		name, method, path string
		form               []string // of the body of a POST, else of the address
		status             int
		want               string // a part of the answer
	}{
		{"Save & test", "POST", "query", []string{"query", "1+1", "time", to}, 200, `"result":[1357001940,"2"]`},
		{"its version", "GET", "status/buildinfo", nil, 200, `"version":"3.`},
		{"a panel", "POST", "query_range", append([]string{"query", `sum by (dc) (rate({"sys.cpu.user"}[4m0s]))`,
			"step", "60"}, times...), 200, `{"metric":{"dc":"x"},"values":[[1356998460,"0.25"],[1356998520,"0.5"],`},
		{"a panel by GET", "GET", "query_range", append([]string{"query", `rate(sys_cpu_user{host=~"web01"}[4m0s])`,
			"step", "60"}, times...), 200, `{"dc":"x","host":"web01","host.kind":"a"},"values":[[1356998460,"0.25"],`},
		{"an interval that is too short", "POST", "query_range", append([]string{"query",
			"rate(sys_cpu_user[1m0s])", "step", "60"}, times...), 200, `"result":[]`},
		{"a table", "POST", "query", []string{"query", `sys.cpu.user{host="web02"}`, "time", to}, 200,
			`{"__name__":"sys.cpu.user","dc":"y","host":"web02","host.kind":"a"},"value":[1357001940,"3540"]`},
		{"an alert rule after the end", "POST", "query", []string{"query", "sys_cpu_user", "time", "1357002600"}, 200,
			`"result":[]`},
		{"with a parameter of the data source", "POST", "query?lookback_delta=15m", []string{"query",
			"count(sys_cpu_user)", "time", "1357002600"}, 200, `"2"`},
		{"an alert without data", "POST", "query", []string{"query", `absent(sys_cpu_user{host="web09"})`, "time", to},
			200, `{"host":"web09"},"value":[1357001940,"1"]`},
		{"metrics, of the editor", "GET", "label/__name__/values", listed, 200, `["sys.cpu.user"]`},
		{"metrics that begin so", "GET", "label/__name__/values", append([]string{"match[]", `{__name__=~".*cpu.*"}`},
			listed...), 200, `["sys.cpu.user"]`},
		{"labels, of the editor", "POST", "labels", listed, 200, `["__name__","dc","host","host.kind"]`},
		{"labels of a metric", "POST", "labels", append([]string{"match[]", `{"sys.cpu.user"}`}, listed...), 200,
			`["__name__","dc","host","host.kind"]`},
		{"values of a label", "GET", "label/host/values", append([]string{"match[]", "sys_cpu_user"}, listed...), 200,
			`["web01","web02"]`},
		{"values of a label with a dot", "GET", "label/U__host_2e_kind/values", append([]string{"match[]",
			`{"sys.cpu.user"}`}, listed...), 200, `["a"]`},
		{"values that go with another variable", "GET", "label/host/values", append([]string{"match[]",
			`sys_cpu_user{dc="x"}`}, listed...), 200, `["web01"]`},
		{"values everywhere", "GET", "label/host/values", listed, 200, `["web01","web02"]`},
		{"values of a query", "POST", "query", []string{"query", "topk(1, sys_cpu_user)", "time", to}, 200, `"3540"`},
		{"series", "POST", "series", append([]string{"match[]", `{"sys.cpu.user",dc="x"}`}, listed...), 200,
			`[{"__name__":"sys.cpu.user","dc":"x","host":"web01","host.kind":"a"}]`},
		{"types", "GET", "metadata", []string{"limit", "40000"}, 200, `"data":{}`},
		{"a pretty query", "POST", "format_query", []string{"query", "sum(x)by(y)"}, 200, `sum by (y) (x)`},
		{"rules", "GET", "rules", nil, 404, `"errorType":"not_found"`},
		{"exemplars", "POST", "query_exemplars", append([]string{"query", "sys_cpu_user"}, times...), 404,
			`"errorType":"not_found"`},
		{"a query that is wrong", "POST", "query", []string{"query", "sum((", "time", to}, 400, `"error":"`},
	} {
		a := asGrafana(b, c.method, c.path, c.form, "Authorization", "Bearer "+gatewaytest.ReadToken)
		if a.Status != c.status || !strings.Contains(a.Body, c.want) || !json.Valid([]byte(a.Body)) ||
			!strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: got %d %.500s, want %d with %s", c.name, a.Status, a.Body, c.status, c.want)
		}
	}
	if a := asGrafana(b, "POST", "query", []string{"query", "1+1"}); a.Status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s, want 401", a.Status, a.Body)
	}
}

// asGrafana sends a request as the data source does.
func asGrafana(b *bench, method, path string, parameters []string, header ...string) answer {
	b.Helper()
	form := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		form.Add(parameters[i], parameters[i+1])
	}
	path = "prometheus/api/v1/" + path
	if method == http.MethodGet {
		return b.Get(path+"?"+form.Encode(), header...)
	}
	return b.Post(path, form.Encode(), append(header, "Content-Type", "application/x-www-form-urlencoded")...)
}
