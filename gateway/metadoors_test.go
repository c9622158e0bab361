package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
)

// metaChanges are requests that change data, by each verb and by GET, and the least scope that they
// need.
var metaChanges = []struct{ method, path, body, scope string }{
	{"GET", "api/uid/assign?metric=new1", "", "write"},
	{"POST", "api/uid/assign", `{"metric":["new2"]}`, "write"},
	{"GET", "api/uid/rename?metric=m&name=m2", "", "admin"},
	{"POST", "api/uid/rename", `{"metric":"m2","name":"m"}`, "admin"},
	{"POST", "api/uid/uidmeta", `{"uid":"000001","type":"metric","notes":"n"}`, "write"},
	{"PUT", "api/uid/uidmeta", `{"uid":"000001","type":"metric","notes":"n"}`, "write"},
	{"GET", "api/uid/uidmeta?uid=000001&type=metric&notes=x&method_override=post", "", "write"},
	{"DELETE", "api/uid/uidmeta?uid=000001&type=metric", "", "write"},
	{"POST", "api/uid/tsmeta", `{"tsuid":"000001000001000001","notes":"n"}`, "write"},
	{"GET", "api/uid/tsmeta?tsuid=000001000001000001&notes=x&method_override=put", "", "write"},
	{"DELETE", "api/uid/tsmeta?tsuid=000001000001000001", "", "write"},
	{"POST", "api/annotation", `{"startTime":1356998400,"notes":"n"}`, "write"},
	{"PUT", "api/annotation", `{"startTime":1356998400,"notes":"n"}`, "write"},
	{"GET", "api/annotation?start_time=1356998400&notes=x&method_override=post", "", "write"},
	{"POST", "api/annotations/bulk", `[{"startTime":1356998400,"notes":"n"}]`, "write"},
	{"DELETE", "api/annotation/bulk?start_time=1356998400&global", "", "write"},
	{"GET", "api/annotation/bulk?start_time=1356998400&global&method_override=delete", "", "write"},
	{"DELETE", "api/annotation?start_time=1356998400", "", "write"},
	{"DELETE", "api/query?start=1356998400&end=1357002000&m=sum:m", "", "admin"},
	{"GET", "api/query?start=1356998400&end=1357002000&m=sum:m&method_override=delete", "", "admin"},
	{"POST", "api/query", `{"start":1356998400,"end":1357002000,"delete":true,"queries":[{"aggregator":"sum","metric":"m"}]}`, "admin"},
}

// A request that changes data needs a token with its scope, also by GET.
func TestMetadata_tokens(t *testing.T) {
	token := func(scope string) string { return scope + "-token-0123456789" }
	file := filepath.Join(t.TempDir(), "tokens")
	var lines strings.Builder
	for _, scope := range []string{"read", "write", "admin"} {
		fmt.Fprintf(&lines, "%s %s\n", scope, token(scope))
	}
	fmt.Fprintf(&lines, "read %s\nwrite %s\n", token("both"), token("both"))
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, func(cfg *gateway.Config) { cfg.TokenFile, cfg.AllowDelete = file, true })
	const point = `{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"}}`
	if a := b.post("api/put", point, "Authorization", "Bearer "+token("write")); a.status != http.StatusNoContent {
		t.Fatalf("put: %d %s", a.status, a.body)
	}
	for _, c := range metaChanges {
		for scope, may := range map[string]bool{"": false, "read": false, "both": c.scope == "write", "admin": true} {
			var header []string
			if scope != "" {
				header = []string{"Authorization", "Bearer " + token(scope)}
			}
			a := b.do(c.method, c.path, strings.NewReader(c.body), header...)
			refused := a.status == http.StatusUnauthorized || a.status == http.StatusForbidden
			if refused == may {
				t.Errorf("%s %s with token %q: %d %s, want allowed %t", c.method, c.path, scope, a.status, a.body, may)
			}
		}
	}
}

// A page of another site can send a GET without an Origin. It changes nothing, because the browser
// says in other headers where it comes from.
func TestMetadata_foreignPage(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { cfg.AllowDelete = true })
	b.put("m 1356998400 1 host=a")
	for _, c := range metaChanges {
		if c.method != "GET" {
			continue
		}
		for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"},
			{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate"}, {"Origin", "http://evil.example"}} {
			if a := b.get(c.path, header...); !strings.Contains(a.body, "CORS domain not allowed") {
				t.Errorf("%s with %v: %d %s", c.path, header, a.status, a.body)
			}
		}
	}
	if a := b.get("api/query?start=1356998400&end=1357002000&m=sum:m"); !strings.Contains(a.body, "1356998400") {
		t.Errorf("after the refused requests: got %s, want the point", a.body)
	}
}

// Without AllowDelete no form of the request deletes anything. With it the query's series, and no
// others, lose the whole hours that the query reads, and the answer has what was deleted.
func TestDelete(t *testing.T) {
	ask := func(b *bench, verb, more string) answer {
		return b.do(verb, "api/query?start=1356998400&end=1356998500&m=sum:m%7Bhost=regexp(a.*)%7D"+more, nil)
	}
	fill := func(b *bench) {
		for _, host := range []string{"a1", "a2", "b1"} {
			b.put("m 1356998400 1 host="+host, "m 1356999000 2 host="+host, "m 1357009200 3 host="+host)
		}
	}
	const body = `{"start":1356998400,"end":1356998500,"delete":true,"queries":[{"aggregator":"sum","metric":"m","filters":[{"type":"regexp","tagk":"host","filter":"a.*","groupBy":true}]}]}`
	b := open(t, nil)
	fill(b)
	for _, a := range []answer{ask(b, "DELETE", ""), ask(b, "GET", "&method_override=delete"), b.post("api/query", body)} {
		b.refused(a, http.StatusBadRequest, "Bad request")
		if !strings.Contains(a.body, "tsd.http.query.allow_delete=false") {
			t.Errorf("want the setting that forbids it named, got %s", a.body)
		}
	}
	all := "api/query?start=1356998400&end=1357012000&m=none:m"
	before := b.get(all).body

	for i, how := range []string{"DELETE", "override", "POST"} {
		// With a limit of 1 the filter is a post filter: it is applied to names, row by row.
		b := open(t, func(cfg *gateway.Config) { cfg.AllowDelete, cfg.ExpansionLimit = true, []int{0, 1, 1}[i] })
		fill(b)
		want := ask(b, "GET", "").body
		var got answer
		switch how {
		case "DELETE":
			got = ask(b, "DELETE", "")
		case "override":
			got = ask(b, "GET", "&method_override=delete")
		default:
			got = b.post("api/query", body)
		}
		if got.status != http.StatusOK || got.body != want {
			t.Errorf("%s: answers %d %s, want what is deleted: %s", how, got.status, got.body, want)
		}
		if now := ask(b, "GET", "").body; now != "[]" {
			t.Errorf("%s: left in the hour: %s", how, now)
		}
		after := b.get(all).body
		if strings.Count(after, `"1357009200":3`) != 3 || strings.Count(after, `"1356999000":2`) != 1 || strings.Count(before, `"1356999000":2`) != 3 {
			t.Errorf("%s: other hours and series: %s, before %s", how, after, before)
		}
	}
}

// /api/query/last finds a point as soon as it is put, by the counter of the meta table and by
// looking back for hours.
func TestLast_embedded(t *testing.T) {
	b := open(t, nil)
	now := time.Now().Unix()
	b.put(fmt.Sprintf("m %d 7 host=a", now-1), fmt.Sprintf("m %d 7.5 host=a", now), "m 1356998400 1 host=b")
	b.post("api/annotation", fmt.Sprintf(`{"startTime":%d,"tsuid":"000001000001000001","notes":"no point"}`, now))
	want := fmt.Sprintf(`[{"metric":"m","timestamp":%d,"value":"7.5","tags":{"host":"a"},"tsuid":"000001000001000001"}]`, now*1000)
	for _, path := range []string{
		"api/query/last?timeseries=m&resolve",
		"api/query/last?timeseries=m%7Bhost=a%7D&resolve",
		"api/query/last?timeseries=m%7Bhost=a%7D&resolve&back_scan=2",
		"api/query/last?tsuids=000001000001000001&resolve",
		"api/query/last?tsuids=000001000001000001,000001000001000002&resolve&back_scan=1",
	} {
		if a := b.get(path); a.status != http.StatusOK || a.body != want {
			t.Errorf("%s: %d %s, want %s", path, a.status, a.body, want)
		}
	}
	if a := b.get("api/query/last?timeseries=m%7Bhost=a%7D&back_scan=1000000"); a.status != http.StatusBadRequest {
		t.Errorf("looking back without end: got %d %s, want 400", a.status, a.body)
	}
}

// A lookup sees what was put just before, and a rename takes effect on puts.
func TestLookup_afterPut(t *testing.T) {
	b := open(t, nil)
	for i := range 30 {
		b.put(fmt.Sprintf("m 1356998400 1 host=h%02d", i))
		a := b.get("api/search/lookup?m=m&limit=100")
		var found struct{ TotalResults int }
		if err := json.Unmarshal([]byte(a.body), &found); err != nil || found.TotalResults != i+1 {
			t.Fatalf("after %d series: %s", i+1, a.body)
		}
	}
	if a := b.get("api/uid/rename?metric=m&name=renamed"); a.status != http.StatusOK {
		t.Fatalf("rename: %d %s", a.status, a.body)
	}
	b.put("m 1356998400 1 host=h00")
	for metric, want := range map[string]int{"renamed": 30, "m": 1} {
		a := b.get("api/search/lookup?limit=0&m=" + metric)
		var found struct{ TotalResults int }
		if err := json.Unmarshal([]byte(a.body), &found); err != nil || found.TotalResults != want {
			t.Errorf("%s: %d series, want %d", metric, found.TotalResults, want)
		}
	}
}

func TestStats(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a", "m 1356998401 1 host=a")
	var stats []struct {
		Metric, Value string
		Timestamp     int64
		Tags          map[string]string
	}
	a := b.get("api/stats")
	if err := json.Unmarshal([]byte(a.body), &stats); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	found := false
	for _, s := range stats {
		if s.Timestamp == 0 || s.Tags["host"] == "" {
			t.Errorf("incomplete: %+v", s)
		}
		found = found || s.Metric == "tsd.datapoints.added" && s.Value == "2"
	}
	if !found {
		t.Errorf("no tsd.datapoints.added of 2 in %s", a.body)
	}
	if a := b.get("stats"); !strings.Contains(a.body, "tsd.datapoints.added ") || strings.HasPrefix(a.body, "[") {
		t.Errorf("lines: %s", a.body)
	}
	var lines []string
	if err := json.Unmarshal([]byte(b.get("stats?json").body), &lines); err != nil || len(lines) != len(stats) {
		t.Errorf("lines as JSON: %v, %d, want %d", err, len(lines), len(stats))
	}
	for _, path := range []string{"api/stats/threads", "api/stats/region_clients"} {
		a := b.get(path)
		if b.refused(a, http.StatusNotImplemented, "Not implemented"); !strings.Contains(a.body, "Java process. This one is none") {
			t.Errorf("%s: no reason in %s", path, a.body)
		}
	}
	var jvm struct {
		Memory struct {
			HeapMemoryUsage struct{ Init, Used, Committed, Max int64 }
		}
		Runtime struct{ StartTime, Uptime int64 }
		GC      map[string]struct{ CollectionCount, CollectionTime int64 }
		OS      struct{ SystemLoadAverage float64 }
	}
	if a := b.get("api/stats/jvm"); a.status != 200 || json.Unmarshal([]byte(a.body), &jvm) != nil || jvm.Memory.HeapMemoryUsage.Used <= 0 ||
		jvm.Memory.HeapMemoryUsage.Committed < jvm.Memory.HeapMemoryUsage.Used || jvm.Runtime.StartTime == 0 || len(jvm.GC) != 1 {
		t.Errorf("jvm: %d %s", a.status, a.body)
	}
	b.refused(b.do(http.MethodPut, "api/stats", nil), http.StatusMethodNotAllowed, "Method not allowed")
}
