package extra_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store/faultstore"
)

// What a request asks by its body is in both of its lines, decoded, whichever route it takes: also
// where a token that may only write is enough, and where the body is read behind the first line.
func TestAudit_body(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.TokenFile, c.AllowDelete = gatewaytest.TokenFile(t), true })
	admin := []string{"Authorization", "Bearer " + gatewaytest.AdminToken}
	for i, k := range []struct{ method, path, body string }{
		{"POST", "/api/uid/assign", `{"metric":["m","n"],"tagk":["host"],"tagv":["a"]}`},
		{"POST", "/api/uid/rename", `{"metric":"n","name":"o"}`},
		{"POST", "/api/uid/uidmeta", `{"uid":"000001","type":"metric","displayName":"x"}`},
		{"DELETE", "/api/uid/uidmeta", `{"uid":"000001","type":"metric"}`},
		{"POST", "/api/uid/tsmeta", `{"tsuid":"000001000001000001","displayName":"x"}`},
		{"DELETE", "/api/uid/tsmeta", `{"tsuid":"000001000001000001"}`},
		{"DELETE", "/api/annotation", `{"startTime":1356998400}`},
		{"DELETE", "/api/annotation/bulk", `{"startTime":"1356998400","global":true}`},
		{"POST", "/api/tree", `{"name":"t"}`},
		{"POST", "/api/tree/rule", `{"treeId":1,"type":"METRIC"}`},
		{"DELETE", "/api/tree", `{"treeId":1}`},
		{
			"POST", "/api/query",
			`{"start":1356998400,"end":1356998401,"queries":[{"metric":"m","aggregator":"sum"}],"delete":true}`,
		},
		{"POST", "/api/tools/uid", `{"command":"fsck"}`},
		{"POST", "/api/tools/fsck", `{"full":true}`},
		{"POST", "/api/tools/delete", `{"kind":"metrics","name":"o"}`},
		{"POST", "/api/tools/trees", `{"purge":1}`},
		{"POST", "/api/tools/import", `#note {"startTime":1356998400}`},
	} {
		for _, encoding := range []string{"", "gzip"} {
			body, id := strings.NewReader(k.body), fmt.Sprint("asked-", i, encoding)
			header := append(admin, "X-Request-Id", id)
			if encoding != "" {
				body, header = strings.NewReader(zipped(t, k.body)), append(header, "Content-Encoding", encoding)
			}
			a := b.Do(k.method, k.path, body, header...)
			if encoding != "" && strings.HasPrefix(k.path, "/api/tools/") {
				// The log could not show what such a body asks before it is done.
				if a.Status != http.StatusUnsupportedMediaType {
					t.Errorf("%s %s: a compressed body: %d %s, want 415", k.method, k.path, a.Status, a.Body)
				}
				continue
			}
			if a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden || a.Status >= 500 {
				t.Errorf("%s %s: %d %s", k.method, k.path, a.Status, a.Body)
			}
			for _, line := range b.AuditLines(id, admin...) {
				want := fmt.Sprintf(" method=%s path=%s parameters= body=%s token=line 3 client=127.0.0.1:",
					k.method, k.path, k.body)
				if !strings.Contains(line, want) {
					t.Errorf("%s: got the line %s, want%s", encoding, line, want)
				}
			}
		}
	}
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What users store all day, annotations, has no line. A long body is cut, and a token in it is not
// shown. A handler gets the whole body, whose beginning the log has.
func TestAudit_bounds(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.TokenFile = gatewaytest.TokenFile(t) })
	admin := []string{"Authorization", "Bearer " + gatewaytest.AdminToken}
	b.Post("/api/uid/assign", `{"metric":["m"]}`, admin...)

	long := `{"name":"` + strings.Repeat("ä", 400) + `","metric":"m"}`
	b.Post("/api/uid/rename", long, append(admin, "X-Request-Id", "long")...)
	work := `{"command":"fsck"` + strings.Repeat(" ", 1000) + `}`
	if a := b.Post("/api/tools/uid", work, append(admin, "X-Request-Id", "spaces")...); a.Status != http.StatusOK ||
		!strings.Contains(a.Body, "#end ") {
		t.Errorf("a body that is longer than its beginning in the log: %d %s", a.Status, a.Body)
	}
	token := strings.Repeat("x", 290) + gatewaytest.AdminToken // the bound parts it
	b.Post("/api/tools/uid?t="+gatewaytest.AdminToken, token, append(admin, "X-Request-Id", "secret")...)
	for id, want := range map[string]string{
		"long":   "body=" + long[:299] + "… token=line 3 ", // the 300th byte is half a character
		"spaces": "body=" + work[:300] + "… token=line 3 ",
		"secret": "parameters=t=[token] body=" + token[:290] + "[token] token=line 3 ",
	} {
		for _, line := range b.AuditLines(id, admin...) {
			if !strings.Contains(line, want) {
				t.Errorf("got the line %s, want %s", line, want)
			}
		}
	}

	before := strings.Count(b.Get("/logs", admin...).Body, "an administrative request")
	if a := b.Post("/api/annotation",
		`{"startTime":1356998400,"description":"x"}`, admin...); a.Status != http.StatusOK {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	b.Post("/api/annotation/bulk", `[{"startTime":1356998401}]`, admin...)
	log := b.Get("/logs", admin...).Body
	if n := strings.Count(log, "an administrative request"); n != before {
		t.Errorf("%d lines after annotations, want %d", n, before)
	}
	if strings.Contains(log, gatewaytest.AdminToken[:10]) {
		t.Error("a token, or its beginning, is in the log")
	}
}

// Slow expressions and pictures are in the log as slow queries are.
func TestSlowQuery_extras(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.SlowQuery = time.Nanosecond })
	b.Put("m 1356998400 1 host=a", "m 1356998460 2 host=a", "m 1356998400 4 host=b")
	// On a real clock two readings of it may be equal, so the query waits for its rows.
	b.Store.Set(faultstore.Rule{Op: faultstore.Scan, Table: "tsdb", Delay: time.Millisecond})
	for id, path := range map[string]string{
		"gexp":    "/api/query/gexp?start=1356998400&end=1356998500&exp=scale(sum:m{host=*},10)",
		"picture": "/q?start=1356998400&end=1356998500&m=sum:m&ascii",
	} {
		if a := b.Get(path, "X-Request-Id", id); a.Status != 200 {
			t.Fatalf("%s: %d %s", path, a.Status, a.Body)
		}
		line := b.LogLine("request=" + id)
		for _, want := range []string{
			"a query was slow took=", "status=200", "client=127.0.0.1", `"metric":"m"`, "rows=",
			"plan=scan tsdb metric 000001 rows [",
		} {
			if !strings.Contains(line, want) {
				t.Errorf("%s: no %q in the line %s", path, want, line)
			}
		}
	}
}

// The lines of a tool that is refused have its status.
func TestAudit_refusedTool(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.TokenFile = gatewaytest.TokenFile(t) })
	admin := []string{"Authorization", "Bearer " + gatewaytest.AdminToken}
	b.Post("/api/tools/delete", "", append(admin, "X-Request-Id", "refused")...)
	if lines := b.AuditLines("refused", admin...); len(lines) != 2 ||
		!strings.Contains(lines[1], " method=POST path=/api/tools/delete ") ||
		!strings.HasSuffix(lines[1], " outcome=400\n") {
		t.Errorf("got %q, want the outcome 400", lines)
	}
}
