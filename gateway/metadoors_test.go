package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	{
		"POST", "api/query",
		`{"start":1356998400,"end":1357002000,"delete":true,"queries":[{"aggregator":"sum","metric":"m"}]}`,
		"admin",
	},
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
	if a := b.Post("api/put", point, "Authorization", "Bearer "+token("write")); a.Status != http.StatusNoContent {
		t.Fatalf("put: %d %s", a.Status, a.Body)
	}
	for _, c := range metaChanges {
		for scope, may := range map[string]bool{"": false, "read": false, "both": c.scope == "write", "admin": true} {
			var header []string
			if scope != "" {
				header = []string{"Authorization", "Bearer " + token(scope)}
			}
			a := b.Do(c.method, c.path, strings.NewReader(c.body), header...)
			refused := a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
			if refused == may {
				t.Errorf("%s %s with token %q: %d %s, want allowed %t", c.method, c.path, scope, a.Status, a.Body, may)
			}
		}
	}
}

// A page of another site can send a GET without an Origin. It changes nothing, because the browser
// says in other headers where it comes from.
func TestMetadata_foreignPage(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { cfg.AllowDelete = true })
	b.Put("m 1356998400 1 host=a")
	for _, c := range metaChanges {
		if c.method != "GET" {
			continue
		}
		for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"},
			{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate"}, {"Origin", "http://evil.example"}} {
			if a := b.Get(c.path, header...); !strings.Contains(a.Body, "CORS domain not allowed") {
				t.Errorf("%s with %v: %d %s", c.path, header, a.Status, a.Body)
			}
		}
	}
	if a := b.Get("api/query?start=1356998400&end=1357002000&m=sum:m"); !strings.Contains(a.Body, "1356998400") {
		t.Errorf("after the refused requests: got %s, want the point", a.Body)
	}
}

func TestStats(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a", "m 1356998401 1 host=a")
	var stats []struct {
		Metric, Value string
		Timestamp     int64
		Tags          map[string]string
	}
	a := b.Get("api/stats")
	if err := json.Unmarshal([]byte(a.Body), &stats); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	found := false
	for _, s := range stats {
		if s.Timestamp == 0 || s.Tags["host"] == "" {
			t.Errorf("incomplete: %+v", s)
		}
		found = found || s.Metric == "tsd.datapoints.added" && s.Value == "2"
	}
	if !found {
		t.Errorf("no tsd.datapoints.added of 2 in %s", a.Body)
	}
	if a := b.Get("stats"); !strings.Contains(a.Body, "tsd.datapoints.added ") || strings.HasPrefix(a.Body, "[") {
		t.Errorf("lines: %s", a.Body)
	}
	var lines []string
	if err := json.Unmarshal([]byte(b.Get("stats?json").Body), &lines); err != nil || len(lines) != len(stats) {
		t.Errorf("lines as JSON: %v, %d, want %d", err, len(lines), len(stats))
	}
	for _, path := range []string{"api/stats/threads", "api/stats/region_clients"} {
		a := b.Get(path)
		b.Refused(a, http.StatusNotImplemented, "Not implemented")
		if !strings.Contains(a.Body, "Java process. This one is none") {
			t.Errorf("%s: no reason in %s", path, a.Body)
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
	if a := b.Get("api/stats/jvm"); a.Status != 200 || json.Unmarshal([]byte(a.Body), &jvm) != nil ||
		jvm.Memory.HeapMemoryUsage.Used <= 0 ||
		jvm.Memory.HeapMemoryUsage.Committed < jvm.Memory.HeapMemoryUsage.Used || jvm.Runtime.StartTime == 0 ||
		len(jvm.GC) != 1 {
		t.Errorf("jvm: %d %s", a.Status, a.Body)
	}
	b.Refused(b.Do(http.MethodPut, "api/stats", nil), http.StatusMethodNotAllowed, "Method not allowed")
}
