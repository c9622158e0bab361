package extra_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway"
)

// promAsk asks a route of Prometheus' API, whose parameters are pairs, by GET and by POST, and returns the answer's
// body: what both say.
func promAsk(b *bench, route string, parameters ...string) (status int, body string) {
	b.Helper()
	form := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		form.Add(parameters[i], parameters[i+1])
	}
	posted := b.Post("prometheus/api/v1/"+route, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	if len(form.Encode()) > 50<<10 { // more than an address may have
		return posted.Status, posted.Body
	}
	got := b.Get("prometheus/api/v1/" + route + "?" + form.Encode())
	if got.Status != posted.Status || got.Body != posted.Body {
		b.Errorf("%s: GET answers %d %s, POST %d %s", route, got.Status, got.Body, posted.Status, posted.Body)
	}
	return got.Status, got.Body
}

func openProm(t *testing.T) *bench {
	t.Helper()
	b := open(t, nil)
	b.Put(
		"sys.cpu.user 1356998400 1 host=a dc=x", "sys.cpu.user 1356998400 2 dc=x",
		"sys-cpu.user 1356998400 3 host=a", "net.bytes_in 1356998400 4 host=b",
		"net_bytes_in 1356998400 5 host=c", "disk/used 1356998400 6 host=a",
	)
	return b
}

// A metric is found by its name, and by its escaped name where no other is meant; the answer has the name that was
// written.
//
//fault:promql-end-excluded > end => >= end
func TestPromQL_names(t *testing.T) {
	t.Parallel()
	b := openProm(t)
	for text, want := range map[string]string{
		`sys.cpu.user{host="a"}`:   `{"__name__":"sys.cpu.user","dc":"x","host":"a"} 1`,
		`{"sys.cpu.user",host=""}`: `{"__name__":"sys.cpu.user","dc":"x"} 2`,
		`sys_cpu_user`:             `sys_cpu_user stands for several metrics, sys-cpu.user and sys.cpu.user`,
		`disk_used`:                `{"__name__":"disk_used","host":"a"} 6`,
		`{"disk/used"}`:            `{"__name__":"disk/used","host":"a"} 6`,
		`net_bytes_in`:             `{"__name__":"net_bytes_in","host":"c"} 5`,
		`{__name__=~"disk.*"}`:     `{"__name__":"disk/used","host":"a"} 6`,
		`{__name__=~"disk_.*"}`:    ``,
		`timestamp(disk_used)`:     `{"host":"a"} 1356998400`,
		`disk_used or up`:          `{"__name__":"disk_used","host":"a"} 6`,
		`disk_used{nokey="x"}`:     ``,
		`disk_used{host="日本"}`:     ``,
	} {
		_, body := promAsk(b, "query", "query", text, "time", "1356998400")
		var a struct {
			Error string
			Data  struct {
				Result []struct {
					Metric json.RawMessage
					Value  [2]any
				}
			}
		}
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatal(err)
		}
		got := a.Error
		for _, r := range a.Data.Result {
			got += fmt.Sprintf("%s %s", r.Metric, r.Value[1])
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// Lists have what Grafana asks for.
func TestPromQL_lists(t *testing.T) {
	t.Parallel()
	b := openProm(t)
	ok := func(data string) string { return `{"status":"success","data":` + data + `}` }
	cut := func(data string) string {
		return `{"status":"success","data":` + data + `,"warnings":["results truncated due to limit"]}`
	}
	// The hour of the points, and a later one.
	within := []string{"start", "1356998000", "end", "1356999000"}
	later := []string{"start", "1357102000", "end", "1357103000"}
	for _, c := range []struct {
		route      string
		parameters []string
		want       string
	}{
		{"labels", nil, ok(`["__name__","dc","host"]`)},
		{"labels", []string{"limit", "1"}, cut(`["__name__"]`)},
		{"labels", append([]string{"match[]", "disk_used"}, within...), ok(`["__name__","host"]`)},
		{"labels", append([]string{"match[]", "disk_used"}, later...), ok(`[]`)},
		{"label/host/values", nil, ok(`["a","b","c"]`)},
		{"label/host/values", []string{"match[]", "sys.cpu.user", "match[]", "net_bytes_in"}, ok(`["a","c"]`)},
		{"label/host/values", []string{"match[]", "sys.cpu.user", "match[]", "net_bytes_in", "limit", "1"},
			cut(`["a"]`)},
		{"label/U__host/values", []string{"match[]", "sys.cpu.user"}, ok(`["a"]`)},
		{"label/nokey/values", nil, ok(`[]`)},
		{"label/__name__/values", nil, ok(`["disk/used","net.bytes_in","net_bytes_in","sys-cpu.user","sys.cpu.user"]`)},
		{"label/__name__/values", []string{"match[]", `{__name__=~".*cpu.*"}`}, ok(`["sys-cpu.user","sys.cpu.user"]`)},
		{"label/__name__/values", append([]string{"match[]", `{host="b"}`}, within...), ok(`["net.bytes_in"]`)},
		{"series", append([]string{"match[]", `{dc=~".+"}`}, within...),
			ok(`[{"__name__":"sys.cpu.user","dc":"x"},{"__name__":"sys.cpu.user","dc":"x","host":"a"}]`)},
		{"metadata", nil, ok(`{}`)},
		{"format_query", []string{"query", "sum(x)by(y)"}, ok(`"sum by (y) (x)"`)},
		{"query", []string{"query", "-0.5e-7", "time", "1.5"},
			ok(`{"resultType":"scalar","result":[1.500,"-5e-08"]}`)},
	} {
		status, body := promAsk(b, c.route, c.parameters...)
		if d := cmp.Diff(c.want, body); status != http.StatusOK || d != "" {
			t.Errorf("%s %q: status %d, want -, got +: %s", c.route, c.parameters, status, d)
		}
	}
}

// What cannot be answered is refused in Prometheus' form, before it costs memory or time.
func TestPromQL_refused(t *testing.T) {
	t.Parallel()
	b := open(t, func(cfg *gateway.Config) { cfg.QueryTimeout = time.Minute })
	var lines []string
	for i := range 1001 {
		lines = append(lines, fmt.Sprintf("many.m%04d 1356998400 1 host=a", i))
	}
	b.Put(lines...)

	for _, c := range []struct {
		name, route string
		parameters  []string
		status      int
		kind, says  string
	}{
		{"no query", "query", nil, 400, "bad_data", "no expression found"},
		{"syntax", "query", []string{"query", "sum(("}, 400, "bad_data", "unclosed left parenthesis"},
		{"a long text", "query", []string{"query", strings.Repeat("x", 300<<10)}, 400,
			"bad_data", "at most 262144"},
		{"a text of a megabyte", "query", []string{"query", "sum(rate(x[5m]))" + strings.Repeat(" + x", 1<<18)}, 422,
			"execution", "more than 1048576 bytes"},
		{"nested", "query", []string{"query", strings.Repeat("(", 100_000)}, 400, "bad_data", "words and signs"},
		{"signs", "query", []string{"query", strings.Repeat("-", 100_000) + "1"}, 400,
			"bad_data", "words and signs"},
		{"a regular expression that unfolds", "query",
			[]string{"query", `x{a=~"(((a|b){100}){10}){1}", b=~'` + strings.Repeat("[a-z]{999}", 60) + `'}`},
			400, "bad_data", "steps"},
		{"a subquery of many steps", "query", []string{"query", "sum_over_time(vector(1)[1y:1ms])"}, 400,
			"bad_data",
			"steps"},
		{"and computed ones", "query", []string{"query", "sum_over_time(vector(1)[1y*1:1ms*1])"}, 400, "bad_data",
			"steps"},
		{"in a selector", "series", []string{"match[]", strings.Repeat("(", 100_000)}, 400,
			"bad_data", "words and signs"},
		{"many metrics", "query", []string{"query", `count({__name__=~".+"})`, "time", "1356998400"}, 422, "execution",
			"more than 1000 metrics"},
		{"all series", "series", []string{"match[]", `{x=""}`}, 400, "bad_data", "non-empty matcher"},
		{"no selector", "series", nil, 400, "bad_data", "no match[]"},
		{"no end", "query_range", []string{"query", "1", "start", "0"}, 400, "bad_data", "end"},
		{"an end before", "query_range", []string{"query", "1", "start", "5", "end", "1", "step", "1"}, 400,
			"bad_data",
			"end"},
		{"many steps", "query_range", []string{"query", "1", "start", "0", "end", "11001", "step", "1"}, 400,
			"bad_data",
			"11,000"},
		{"no step", "query_range", []string{"query", "1", "start", "0", "end", "1", "step", "0"}, 400,
			"bad_data", "step"},
		{"a time", "query", []string{"query", "1", "time", "NaN"}, 400, "bad_data", "valid timestamp"},
		{"a limit", "labels", []string{"limit", "-1"}, 400, "bad_data", "limit"},
		{"two series with the same labels", "query", []string{"query", `label_replace({__name__=~"many.m000[12]"}, ` +
			`"__name__", "x", "", "")`, "time", "1356998400"}, 422, "execution", "same labelset"},
		{"time", "query", []string{"query", "1", "timeout", "1e-9"}, 503, "timeout", "deadline"},
		{"a route that there is not", "rules", nil, 404, "not_found", "rules"},
	} {
		status, body := promAsk(b, c.route, c.parameters...)
		var e struct{ Status, ErrorType, Error string }
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatalf("%s: %v: %.300s", c.name, err, body)
		}
		if status != c.status || e.Status != "error" || e.ErrorType != c.kind || !strings.Contains(e.Error, c.says) {
			t.Errorf("%s: got %d %.300s, want %d %s with %q", c.name, status, body, c.status, c.kind, c.says)
		}
	}
}

// What an evaluation would hold is reserved before it is there: points of all series at all steps, and those of
// subqueries. A query beyond the memory of one request is refused, and costs little.
//
//fault:promql-steps-not-reserved max(steps, 1) => 1
//fault:promql-subquery-not-reserved steps*pointBytes => steps
func TestPromQL_memory(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { cfg.Memory = "64MiB" })
	var lines []string
	for i := range 2000 {
		lines = append(lines, fmt.Sprintf("wide %d 1 host=h%d", 1356998400, i))
	}
	b.Put(lines...)
	ranged := func(text, step string) (int, string) {
		return promAsk(b, "query_range", "query", text, "start", "1356998400", "end", "1357009000", "step", step)
	}
	if status, body := ranged("count(wide)", "1000"); status != http.StatusOK {
		t.Fatalf("%d %.300s", status, body)
	}

	type ask func() (status int, body string)
	for _, c := range []struct {
		most uint64 // MiB that five refusals of each may allocate together
		asks []ask
	}{
		{200, []ask{
			func() (int, string) { return ranged("count(wide)", "1") },
			func() (int, string) { return promAsk(b, "query", "query", "max_over_time(vector(1)[80d:1s])") },
			func() (int, string) { return ranged("max_over_time(wide[1h:1s])", "1000") },
		}},
		{100, []ask{func() (int, string) { return ranged(`count({__name__=~".+"})`, "1") }}},
		// Windows are computed at once, and then slice by slice: for each the gateway's memory.
		{5 * 64, []ask{func() (int, string) { return ranged("sum(count_over_time(wide[5m]))", "1") }}},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 5 {
			for i, ask := range c.asks {
				status, body := ask()
				if status != http.StatusUnprocessableEntity || !strings.Contains(body, "execution") {
					t.Errorf("%d: %d %.300s, want 422 execution", i, status, body)
				}
			}
		}
		runtime.ReadMemStats(&after)
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > c.most {
			t.Errorf("%d MiB were allocated for %d refusals, want at most %d", grown, 5*len(c.asks), c.most)
		}
	}
	b.Settled()
}

// Windows are answered in less memory than their points take: short ones as they are read, and slice by slice those
// that are longer than parts. A function that all points are read for is refused.
func TestPromQL_windowsInMemory(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { cfg.Memory = "64MiB" })
	const hosts, seconds = 120, 7200
	for host := range hosts {
		var lines []byte
		for i := range seconds {
			lines = fmt.Appendf(lines, `,{"metric":"long_total","timestamp":%d,"value":%d,"tags":{"host":"h%d"}}`,
				1356998400+i, i, host)
		}
		lines[0] = '['
		if a := b.Post("api/put", string(append(lines, ']'))); a.Status != http.StatusNoContent {
			t.Fatalf("%d %.300s", a.Status, a.Body)
		}
	}
	for text, want := range map[string]string{
		"sum(rate(long_total[1m]))":                       `"120"`,
		"sum(count_over_time(long_total[80m]))":           `"576000"`,
		"max(count_over_time(long_total[80m]))":           `"4800"`,
		"count(quantile_over_time(0.5, long_total[80m]))": "memory",
	} {
		a := b.Get("prometheus/api/v1/query_range?start=1357003290&end=1357003790&step=100&query=" +
			url.QueryEscape(text))
		if !strings.Contains(a.Body, want) {
			t.Errorf("%s: got %d %.300s, want %s", text, a.Status, a.Body, want)
		}
	}
	b.Settled()
}

// explain has the plans of all selectors, with the filters that are pushed down, and reads nothing; the log lists the
// expression.
func TestPromQL_explain(t *testing.T) {
	t.Parallel()
	b := openProm(t)
	a := b.Get("prometheus/api/v1/query?explain=true&time=1356998400&query=" +
		url.QueryEscape(`sys.cpu.user{host=~"a|b",dc!="y"} + disk_used{host=~"b.*"} + up`))
	var plans []struct{ Plan string }
	if err := json.Unmarshal([]byte(a.Body), &plans); err != nil || len(plans) != 2 {
		t.Fatalf("%d %.500s, %v; want two plans, as up is no metric", a.Status, a.Body, err)
	}
	if want := "\nwindow last of 300000 ms at [1356998400000 ms, 1356998400000 ms] every 1 ms\n"; !strings.Contains(
		plans[0].Plan, want) {
		t.Errorf("got the plan %s, want %s", plans[0].Plan, want)
	}
	if in := strings.Count(plans[0].Plan, "\ntag "); in != 1 || !strings.Contains(plans[0].Plan, " in 0") {
		t.Errorf("got the plan %s, want one predicate, on host: dc!= admits series without dc", plans[0].Plan)
	}
	a = b.Get("prometheus/api/v1/query?explain=true&time=1356998400&query=" +
		url.QueryEscape(`max by (host) (rate(sys.cpu.user{host=~"a|b"}[1m])) + count(sys.cpu.user{host!="a"}) + `+
			`group by (nowhere) (sys.cpu.user)`))
	if err := json.Unmarshal([]byte(a.Body), &plans); err != nil || len(plans) != 3 {
		t.Fatalf("%d %.500s, %v; want three plans", a.Status, a.Body, err)
	}
	window := func(i int) string { return regexp.MustCompile("window .*").FindString(plans[i].Plan) }
	if !regexp.MustCompile(`every 1 ms, max by \[\w+\]$`).MatchString(window(0)) {
		t.Errorf("got %s, want groups by the host", window(0))
	}
	for i := 1; i < 3; i++ { // the first has more series than match, and of the other no tag has the name
		if !strings.HasSuffix(window(i), "every 1 ms") {
			t.Errorf("got %s, want no groups", window(i))
		}
	}
	if a := b.Get("api/stats/query"); !strings.Contains(a.Body, `disk_used{host=~`) {
		t.Errorf("the log lacks the expression: %.1000s", a.Body)
	}
}

// Over salted tables a series may be under two salts, so that counts need the tags of each.
func TestPromQL_countSalted(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *gateway.Config) { c.SaltWidth = 1 })
	b.Put("m 1356998400 1 host=a", "m 1356998400 2 host=b")
	for text, want := range map[string]bool{"count(m)": false, "max(m)": true} {
		a := b.Get("prometheus/api/v1/query?explain=true&time=1356998400&query=" + url.QueryEscape(text))
		if got := strings.Contains(a.Body, " by []"); got != want || a.Status != 200 {
			t.Errorf("%s: %d, grouped where it is read: %t, want %t\n%s", text, a.Status, got, want, a.Body)
		}
	}
	if _, body := promAsk(b, "query", "query", "count(m)", "time", "1356998400"); !strings.Contains(body, `"2"`) {
		t.Errorf("got %s, want 2", body)
	}
}

// Clients see the release of the engine that go.mod names: v0.316.0 of the module is Prometheus 3.16.0.
func TestPromQL_version(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`\sgithub.com/prometheus/prometheus v0\.(\d)(\d+)\.(\d+)\s`).FindSubmatch(module)
	if found == nil {
		t.Fatal("go.mod does not name Prometheus")
	}
	want := fmt.Sprintf(`"version":"%s.%s.%s"`, found[1], found[2], found[3])
	if status, body := promAsk(open(t, nil), "status/buildinfo"); status != 200 || !strings.Contains(body, want) {
		t.Errorf("got %d %s, want %s", status, body, want)
	}
}
