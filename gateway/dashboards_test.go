package gateway_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"downpour/gateway"
	"downpour/gateway/metadata/tables"
	"downpour/pushdown/process/logtest"
)

const oneText = `{"form": 1, "title": "<script>", "panels": [
  {"id": "a", "type": "text", "text": "hello", "place": {"x": 0, "y": 0, "w": 6, "h": 1}}]}
`

// save puts a document made from a version, 0 for a new dashboard.
func (b *bench) save(name, document string, from int, header ...string) answer {
	b.Helper()
	made := []string{"If-None-Match", "*"}
	if from > 0 {
		made = []string{"If-Match", fmt.Sprintf("%q", fmt.Sprint(from))}
	}
	return b.do("PUT", "api/dashboards/"+name, strings.NewReader(document), append(made, header...)...)
}

// A dashboard comes back byte for byte, with its version; a change made from another one is told.
func TestDashboards(t *testing.T) {
	b := open(t, nil)
	f := func(a answer, status int, etag, body string) {
		t.Helper()
		if a.status != status || a.header.Get("ETag") != etag || !strings.Contains(a.body, body) {
			t.Errorf("got %d, ETag %s, %.300s, want %d, %s, %s", a.status, a.header.Get("ETag"), a.body, status, etag, body)
		}
	}
	f(b.get("api/dashboards"), 200, "", `{"dashboards":[]}`)
	f(b.get("api/dashboards/web"), 404, "", "no such dashboard: web")
	f(b.save("web", oneText, 0), 200, `"1"`, `"version":1`)
	f(b.save("web", oneText, 1), 200, `"2"`, `"version":2`)
	if a := b.get("API/v1/Dashboards/WEB"); a.body != oneText || a.header.Get("Content-Type") != "application/json; charset=UTF-8" {
		t.Errorf("got %v %q, want what was saved", a.header, a.body)
	}
	f(b.save("web", oneText, 1), 409, "", "dashboard web: version 2 was saved at 20")
	f(b.save("web", oneText, 0), 409, "", "this change is made from a new dashboard")
	f(b.get("api/dashboards/web?version=1"), 200, `"1"`, "hello")
	f(b.get("api/dashboards/web?version=9"), 404, "", "web has no version 9")
	f(b.get("api/dashboards/web?version=x"), 400, "", "version: got")
	f(b.get("api/dashboards/web/versions"), 200, "", `"versions":[{"version":2,`)
	f(b.get("api/dashboards/web/other"), 404, "", "Endpoint not found")

	// A change that does not say what it was made from changes nothing, nor does one that is wrong.
	f(b.do("PUT", "api/dashboards/web", strings.NewReader(oneText)), 428, "", "names the version")
	f(b.do("PUT", "api/dashboards/web", strings.NewReader(oneText), "If-Match", "*"), 400, "", "If-Match: got")
	f(b.do("PUT", "api/dashboards/web", strings.NewReader(oneText), "If-Match", `"2`), 400, "", "If-Match: got")
	f(b.save("web", strings.Replace(oneText, `"form": 1`, `"form": 2`, 1), 2), 400, "", "a later release made this document")
	f(b.save("we b", oneText, 0), 400, "", "name: got")
	f(b.save("web", strings.Repeat(" ", 10<<20), 2), 413, "", "more than 1048576 bytes")
	f(b.post("api/dashboards/web", oneText), 405, "", "not permitted")
	f(b.do("DELETE", "api/dashboards", nil), 405, "", "not permitted")
	f(b.get("api/dashboards"), 200, "", `"name":"web","version":2`)
	if a := b.get("api/dashboards"); strings.Contains(a.body, "<script>") || strings.Contains(a.body, "dashboard-document") {
		t.Errorf("the list has %s, want titles escaped, and no rows", a.body)
	}

	f(b.do("DELETE", "api/dashboards/web", nil, "If-Match", `"1"`), 409, "", "version 2")
	f(b.do("DELETE", "api/dashboards/web", nil, "If-None-Match", "*"), 400, "", "If-Match: want")
	f(b.do("DELETE", "api/dashboards/web", nil, "If-Match", `"2"`), 204, "", "")
	f(b.get("api/dashboards/web"), 404, "", "no such dashboard")
	f(b.get("api/dashboards/web/versions"), 200, "", `"deleted":true`)
}

// A save is logged with the name of its token, which the version has, too.
func TestDashboards_audit(t *testing.T) {
	var log logtest.Log
	cfg := config(0)
	cfg.TokenFile = tokenFile(t)
	st := &faulty{Store: memoryStore(t, cfg)}
	st.set()
	g, err := gateway.Start(t.Context(), cfg, st, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	b := &bench{T: t, cfg: cfg, store: st, g: g}

	a := b.save("web", oneText, 0, "Authorization", "Bearer "+bothToken)
	var saved struct{ By string }
	if err := json.Unmarshal([]byte(a.body), &saved); err != nil || a.status != 200 || saved.By == "" {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	b.do("DELETE", "api/dashboards/web", nil, "If-Match", `"1"`, "Authorization", "Bearer "+bothToken)
	for _, method := range []string{"PUT", "DELETE"} {
		if want := "method=" + method + " path=/api/dashboards/web"; !strings.Contains(log.String(), want) || !strings.Contains(log.String(), saved.By) {
			t.Errorf("the log has %s, want %s and the token %s", log.String(), want, saved.By)
		}
	}
}

// In mode ro dashboards are read and not changed; in mode wo there are none.
func TestDashboards_mode(t *testing.T) {
	b := open(t, nil)
	if a := b.save("web", oneText, 0); a.status != 200 {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	ro := *b.cfg
	ro.Mode = "ro"
	only := &bench{T: t, cfg: &ro, store: b.store, g: start(t, &ro, b.store)}
	for _, a := range []answer{only.save("web", oneText, 1), only.do("DELETE", "api/dashboards/web", nil, "If-Match", `"1"`)} {
		if a.status != http.StatusMethodNotAllowed || !strings.Contains(a.body, "mode ro (DOWNPOUR_MODE)") {
			t.Errorf("mode ro: got %d %s, want 405", a.status, a.body)
		}
	}
	if a := only.get("api/dashboards/web"); a.body != oneText {
		t.Errorf("mode ro: got %d %s", a.status, a.body)
	}
	wo := *b.cfg
	wo.Mode = "wo"
	if a := (&bench{T: t, cfg: &wo, store: b.store, g: start(t, &wo, b.store)}).get("api/dashboards/web"); a.status != http.StatusNotFound {
		t.Errorf("mode wo: got %d %s, want 404", a.status, a.body)
	}
}

// Without its table the gateway starts and serves; who asks for a dashboard is told what is missing.
func TestDashboards_noTable(t *testing.T) {
	cfg := config(0)
	cfg.TableState = "elsewhere"
	without := *cfg
	without.TableState = "downpour-state"
	st := &faulty{Store: memoryStore(t, &without)}
	st.set()
	b := &bench{T: t, cfg: cfg, store: st, g: start(t, cfg, st)}
	for _, a := range []answer{b.get("api/dashboards"), b.get("api/dashboards/web"), b.save("web", oneText, 0)} {
		if a.status != http.StatusFailedDependency || !strings.Contains(a.body, "table elsewhere (DOWNPOUR_TABLE_STATE), which -create-tables makes") {
			t.Errorf("got %d %s, want 424", a.status, a.body)
		}
	}
	if err := tables.Create(t.Context(), st, tables.Specs(cfg.TableNames(), cfg.Schema(), "NONE")); err != nil {
		t.Fatal(err)
	}
	if a := b.save("web", oneText, 0); a.status != 200 {
		t.Errorf("with the table: got %d %s", a.status, a.body)
	}
}

// The state table is none of the others.
func TestConfig_tableState(t *testing.T) {
	cfg := config(0)
	cfg.TableState = cfg.TableTree
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "DOWNPOUR_TABLE_STATE: got tsdb-tree") {
		t.Errorf("got %v", err)
	}
}
