package extra_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/process/logtest"
)

const oneText = `{"form": 1, "title": "<script>", "panels": [
  {"id": "a", "type": "text", "text": "hello", "place": {"x": 0, "y": 0, "w": 6, "h": 1}}]}
`

// save puts a document made from a version, 0 for a new dashboard.
func save(b *bench, name, document string, from int, header ...string) answer {
	b.Helper()
	made := []string{"If-None-Match", "*"}
	if from > 0 {
		made = []string{"If-Match", fmt.Sprintf("%q", fmt.Sprint(from))}
	}
	return b.Do("PUT", "api/dashboards/"+name, strings.NewReader(document), append(made, header...)...)
}

// A dashboard comes back byte for byte, with its version; a change made from another version is reported.
func TestDashboards(t *testing.T) {
	b := open(t, nil)
	f := func(a answer, status int, etag, body string) {
		t.Helper()
		if a.Status != status || a.Header.Get("ETag") != etag || !strings.Contains(a.Body, body) {
			t.Errorf("got %d, ETag %s, %.300s, want %d, %s, %s",
				a.Status, a.Header.Get("ETag"), a.Body, status, etag, body)
		}
	}
	f(b.Get("api/dashboards"), 200, "", `{"dashboards":[]}`)
	f(b.Get("api/dashboards/web"), 404, "", "no such dashboard: web")
	f(save(b, "web", oneText, 0), 200, `"1"`, `"version":1`)
	f(save(b, "web", oneText, 1), 200, `"2"`, `"version":2`)
	if a := b.Get("API/v1/Dashboards/WEB"); a.Body != oneText ||
		a.Header.Get("Content-Type") != "application/json; charset=UTF-8" {
		t.Errorf("got %v %q, want what was saved", a.Header, a.Body)
	}
	f(save(b, "web", oneText, 1), 409, "", "dashboard web: version 2 was saved at 20")
	f(save(b, "web", oneText, 0), 409, "", "this change is made from a new dashboard")
	f(b.Get("api/dashboards/web?version=1"), 200, `"1"`, "hello")
	f(b.Get("api/dashboards/web?version=9"), 404, "", "web has no version 9")
	f(b.Get("api/dashboards/web?version=x"), 400, "", "version: got")
	f(b.Get("api/dashboards/web/versions"), 200, "", `"versions":[{"version":2,`)
	f(b.Get("api/dashboards/web/other"), 404, "", "Endpoint not found")

	// A change that does not say what it was made from changes nothing, nor does one that is wrong.
	f(b.Do("PUT", "api/dashboards/web", strings.NewReader(oneText)), 428, "", "names the version")
	f(b.Do("PUT", "api/dashboards/web", strings.NewReader(oneText), "If-Match", "*"), 400, "", "If-Match: got")
	f(b.Do("PUT", "api/dashboards/web", strings.NewReader(oneText), "If-Match", `"2`), 400, "", "If-Match: got")
	f(save(b, "web", strings.Replace(oneText, `"form": 1`, `"form": 2`, 1), 2), 400, "",
		"a later release made this document")
	f(save(b, "we b", oneText, 0), 400, "", "name: got")
	f(save(b, "web", strings.Repeat(" ", 10<<20), 2), 413, "", "more than 1048576 bytes")
	f(b.Post("api/dashboards/web", oneText), 405, "", "not permitted")
	f(b.Do("DELETE", "api/dashboards", nil), 405, "", "not permitted")
	f(b.Get("api/dashboards"), 200, "", `"name":"web","version":2`)
	if a := b.Get("api/dashboards"); strings.Contains(a.Body, "<script>") ||
		strings.Contains(a.Body, "dashboard-document") {
		t.Errorf("the list has %s, want titles escaped, and no rows", a.Body)
	}

	f(b.Do("DELETE", "api/dashboards/web", nil, "If-Match", `"1"`), 409, "", "version 2")
	f(b.Do("DELETE", "api/dashboards/web", nil, "If-None-Match", "*"), 400, "", "If-Match: want")
	f(b.Do("DELETE", "api/dashboards/web", nil, "If-Match", `"2"`), 204, "", "")
	f(b.Get("api/dashboards/web"), 404, "", "no such dashboard")
	f(b.Get("api/dashboards/web/versions"), 200, "", `"deleted":true`)
}

// A save is logged with the name of its token, which the version has, too.
func TestDashboards_audit(t *testing.T) {
	var log logtest.Log
	cfg := config(0)
	cfg.TokenFile = gatewaytest.TokenFile(t)
	st := gatewaytest.NewFaulty(memoryStore(t, cfg))
	g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	b := &bench{T: t, Config: cfg, Store: st, Gateway: g}

	a := save(b, "web", oneText, 0, "Authorization", "Bearer "+gatewaytest.BothToken)
	var saved struct{ By string }
	if err := json.Unmarshal([]byte(a.Body), &saved); err != nil || a.Status != 200 || saved.By == "" {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	b.Do("DELETE", "api/dashboards/web", nil, "If-Match", `"1"`, "Authorization", "Bearer "+gatewaytest.BothToken)
	for _, method := range []string{"PUT", "DELETE"} {
		want := "method=" + method + " path=/api/dashboards/web"
		if !strings.Contains(log.String(), want) || !strings.Contains(log.String(), saved.By) {
			t.Errorf("the log has %s, want %s and the token %s", log.String(), want, saved.By)
		}
	}
}

// In mode ro dashboards are read and not changed; in mode wo there are none.
func TestDashboards_mode(t *testing.T) {
	b := open(t, nil)
	if a := save(b, "web", oneText, 0); a.Status != 200 {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	ro := *b.Config
	ro.Mode = "ro"
	only := serve(t, &ro, b.Store)
	for _, a := range []answer{
		save(only, "web", oneText, 1), only.Do("DELETE", "api/dashboards/web", nil, "If-Match", `"1"`),
	} {
		if a.Status != http.StatusMethodNotAllowed || !strings.Contains(a.Body, "mode ro (DOWNPOUR_MODE)") {
			t.Errorf("mode ro: got %d %s, want 405", a.Status, a.Body)
		}
	}
	if a := only.Get("api/dashboards/web"); a.Body != oneText {
		t.Errorf("mode ro: got %d %s", a.Status, a.Body)
	}
	wo := *b.Config
	wo.Mode = "wo"
	if a := serve(t, &wo, b.Store).Get("api/dashboards/web"); a.Status != http.StatusNotFound {
		t.Errorf("mode wo: got %d %s, want 404", a.Status, a.Body)
	}
}

// Without its table the gateway starts and serves; a request for a dashboard is refused with what is missing.
func TestDashboards_noTable(t *testing.T) {
	cfg := config(0)
	cfg.TableState = "elsewhere"
	without := *cfg
	without.TableState = "downpour-state"
	st := gatewaytest.NewFaulty(memoryStore(t, &without))
	b := serve(t, cfg, st)
	for _, a := range []answer{b.Get("api/dashboards"), b.Get("api/dashboards/web"), save(b, "web", oneText, 0)} {
		if a.Status != http.StatusFailedDependency ||
			!strings.Contains(a.Body, "table elsewhere (DOWNPOUR_TABLE_STATE), which -create-tables makes") {
			t.Errorf("got %d %s, want 424", a.Status, a.Body)
		}
	}
	if err := tables.Create(t.Context(), st, tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")); err != nil {
		t.Fatal(err)
	}
	if a := save(b, "web", oneText, 0); a.Status != 200 {
		t.Errorf("with the table: got %d %s", a.Status, a.Body)
	}
}
