package gateway_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/admin/audit"
	"downpour/gateway/api/httpapi/access"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// logLine returns the newest line of /logs that contains a text.
func (b *bench) logLine(text string, header ...string) string {
	b.Helper()
	for l := range strings.Lines(b.get("/logs", header...).body) {
		if strings.Contains(l, text) {
			return l
		}
	}
	b.Errorf("no line with %q in the log", text)
	return ""
}

// A query that takes longer than the setting is logged with what it asked and read, its plan and
// the id of its request; also one that fails. Faster ones are not.
func TestSlowQuery(t *testing.T) {
	slow := open(t, func(c *gateway.Config) { c.SlowQuery = time.Nanosecond })
	fast := open(t, func(c *gateway.Config) { c.SlowQuery = time.Hour })
	for _, b := range []*bench{slow, fast} {
		b.put("m 1356998400 1 host=a", "m 1356998460 2 host=a", "m 1356998400 4 host=b")
	}
	// On a real clock two readings of it may be equal, so the query waits for its rows.
	slow.store.set(faultstore.Rule{Op: faultstore.Scan, Table: "tsdb", Delay: time.Millisecond})

	for path, asked := range map[string]string{
		"/api/query?start=1356998400&end=1356998500&m=sum:m{host=a}":                  `"metric":"m"`,
		"/api/query?start=1356998400&end=1356998500&m=sum:m&arrow":                    `"metric":"m"`,
		"/api/query/gexp?start=1356998400&end=1356998500&exp=scale(sum:m{host=*},10)": `"metric":"m"`,
		"/q?start=1356998400&end=1356998500&m=sum:m&ascii":                            `"metric":"m"`,
	} {
		if a := slow.get(path, "X-Request-Id", "asked-"+fmt.Sprint(len(path))); a.status != 200 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		line := slow.logLine(fmt.Sprint("request=asked-", len(path)))
		for _, want := range []string{"a query was slow took=", "status=200", "client=127.0.0.1", asked, "rows=", "plan=scan tsdb metric 000001 rows ["} {
			if !strings.Contains(line, want) {
				t.Errorf("%s: no %q in the line %s", path, want, line)
			}
		}
	}

	slow.store.set(faultstore.Rule{Op: faultstore.Scan, Table: "tsdb", Err: store.ErrNoTable, Delay: time.Millisecond})
	slow.get("/api/query?start=1356998400&end=1356998500&m=avg:m", "X-Request-Id", "failed")
	if line := slow.logLine("a query was slow"); !strings.Contains(line, "request=failed") || !strings.Contains(line, " err=") || !strings.Contains(line, "plan=scan tsdb metric 000001 rows [") {
		t.Errorf("got the line %s, want that of the query that failed, with its plan", line)
	}

	fast.get(someQuery)
	if log := fast.get("/logs").body; strings.Contains(log, "a query was slow") {
		t.Errorf("a fast query is in the log:\n%s", log)
	}
}

// A request has one id in the answer, the log, the trace and the error object. The client's is taken
// over if it can stand in a log.
func TestRequestID(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998400 1 host=a")
	made := regexp.MustCompile(`^[0-9a-f]{16}$`)
	id := func(given string) string {
		return b.get("/api/version", "X-Request-Id", given).header.Get("X-Request-Id")
	}
	for _, given := range []string{"a", "Az09-_.", strings.Repeat("x", 64)} {
		if got := id(given); got != given {
			t.Errorf("%q became %q", given, got)
		}
	}
	seen := map[string]bool{}
	for _, given := range []string{"", "a b", "a=b", "ä", "\x1b[2J", "a\"", strings.Repeat("x", 65)} {
		got := id(strings.ReplaceAll(given, "\x1b", "\t"))
		if !made.MatchString(got) || seen[got] {
			t.Errorf("%q became %q, want a new id of 16 hex digits", given, got)
		}
		seen[got] = true
	}

	a := b.get("/api/query?start=1356998400&end=1356998500&m=sum:m&trace", "X-Request-Id", "traced")
	if !strings.Contains(a.body, `"attributes":{"request":"traced"}`) {
		t.Errorf("no id in the trace: %s", a.body)
	}

	b.store.set(faultstore.Rule{Op: faultstore.Scan, Table: "tsdb", Err: store.ErrDamaged})
	a = b.get("/api/query?start=1356998400&end=1356998500&m=max:m", "X-Request-Id", "broken")
	var body struct{ Error struct{ Request string } }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status < 500 || body.Error.Request != "broken" {
		t.Errorf("got %d %s, want a fault with the id", a.status, a.body)
	}
	b.logLine("request failed path=/api/query status=" + fmt.Sprint(a.status) + " request=broken")

	// An error that OpenTSDB answers, too, has the members that it has there.
	if a := b.get("/api/uid/nope"); a.status != 501 || strings.Contains(a.body, "request") {
		t.Errorf("got %d %s, want 501 without an id", a.status, a.body)
	}
}

// What changes the gateway or removes data leaves a line with the name of its token, by every way.
// What only reads does not.
func TestAudit(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.TokenFile, c.AllowDelete = tokenFile(t), true })
	admin := []string{"Authorization", "Bearer " + adminToken}
	c := b.dial()
	fmt.Fprintf(c, "auth %s\nput m 1356998400 1 host=a\ndropcaches\n", adminToken)
	c.rest()
	b.logLine("an administrative request command=dropcaches token=line 3 client=127.0.0.1", admin...)
	if line := b.logLine("an administrative request ended command=dropcaches token=line 3", admin...); !strings.Contains(line, "outcome=Caches dropped.") {
		t.Errorf("got the line %s, want the answer", line)
	}

	for i, k := range []struct{ method, path, want, outcome string }{
		{"GET", "/api/dropcaches", "method=GET path=/api/dropcaches parameters=", "200"},
		{"DELETE", "/api/query?start=1356998400&end=1356998401&m=sum:m", "method=DELETE path=/api/query parameters=start=1356998400&end=1356998401&m=sum:m", "200"},
		{"GET", "/api/query?start=1356998400&end=1356998401&m=sum:m&method_override=delete", "method=DELETE path=/api/query", "200"},
		{"GET", "/api/uid/rename?metric=m&name=n", "method=GET path=/api/uid/rename parameters=metric=m&name=n", "200"},
		{"DELETE", "/api/annotation?start_time=1356998400", "method=DELETE path=/api/annotation", "204"},
		{"POST", "/api/tools/delete", "method=POST path=/api/tools/delete", "400"},
	} {
		id := fmt.Sprint("audited-", i)
		b.do(k.method, k.path, strings.NewReader(""), append(admin, "X-Request-Id", id)...)
		if line := b.logLine("an administrative request "+k.want, admin...); !strings.Contains(line, "token=line 3") || !strings.Contains(line, "request="+id) {
			t.Errorf("%s %s: got the line %s, want the token's name and the request's id", k.method, k.path, line)
			continue // the line of its end would be awaited in vain
		}
		// Its client may have the answer before the line is there.
		ended := regexp.MustCompile("an administrative request ended " + regexp.QuoteMeta(k.want) + ".* token=line 3 .* request=" + id + " outcome=(.*)")
		var outcome []string
		eventually(t, "the line of its end", func() bool {
			outcome = ended.FindStringSubmatch(b.get("/logs", admin...).body)
			return outcome != nil
		})
		if outcome[1] != k.outcome {
			t.Errorf("%s %s: ended with %s, want %s", k.method, k.path, outcome[1], k.outcome)
		}
	}

	before := strings.Count(b.get("/logs", admin...).body, "an administrative request")
	b.get("/api/query?start=1356998400&end=1356998401&m=sum:n", admin...)
	b.get("/api/config", admin...)
	b.get("/logs", admin...)
	b.do("DELETE", "/api/query?start=1356998400&end=1356998401&m=sum:n", nil, "Authorization", "Bearer "+readToken) // refused
	log := b.get("/logs", admin...).body
	if n := strings.Count(log, "an administrative request"); n != before {
		t.Errorf("%d lines after requests that change nothing, want %d", n, before)
	}
	if strings.Contains(log, adminToken) {
		t.Error("a token is in the log")
	}
}

// What a request asks by its body is in both of its lines, decoded, whichever route it takes: also
// where a token that may only write is enough, and where the body is read behind the first line.
func TestAudit_body(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.TokenFile, c.AllowDelete = tokenFile(t), true })
	admin := []string{"Authorization", "Bearer " + adminToken}
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
		{"POST", "/api/query", `{"start":1356998400,"end":1356998401,"queries":[{"metric":"m","aggregator":"sum"}],"delete":true}`},
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
			a := b.do(k.method, k.path, body, header...)
			if encoding != "" && strings.HasPrefix(k.path, "/api/tools/") {
				// The log could not show what such a body asks before it is done.
				if a.status != http.StatusUnsupportedMediaType {
					t.Errorf("%s %s: a compressed body: %d %s, want 415", k.method, k.path, a.status, a.body)
				}
				continue
			}
			if a.status == http.StatusUnauthorized || a.status == http.StatusForbidden || a.status >= 500 {
				t.Errorf("%s %s: %d %s", k.method, k.path, a.status, a.body)
			}
			for _, line := range b.auditLines(id, admin...) {
				want := fmt.Sprintf(" method=%s path=%s parameters= body=%s token=line 3 client=127.0.0.1:", k.method, k.path, k.body)
				if !strings.Contains(line, want) {
					t.Errorf("%s: got the line %s, want%s", encoding, line, want)
				}
			}
		}
	}
}

// auditLines returns the two lines about one request, the first one first.
func (b *bench) auditLines(id string, header ...string) (lines []string) {
	b.Helper()
	if !strings.Contains(b.get("/logs", header...).body, " request="+id+"\n") {
		b.Errorf("no line about %s", id)
		return nil
	}
	eventually(b.T, "two lines about "+id, func() bool { // the client may have the answer before the second
		lines = nil
		for l := range strings.Lines(b.get("/logs", header...).body) {
			if strings.Contains(l, "an administrative request") && strings.Contains(l, " request="+id) {
				lines = append([]string{l}, lines...) // /logs has the newest line first
			}
		}
		return len(lines) >= 2
	})
	if len(lines) != 2 || strings.Contains(lines[0], "request ended") || !strings.Contains(lines[1], "request ended") {
		b.Errorf("%s: got %q, want a line at the beginning and one at the end", id, lines)
	}
	return lines
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
	b := open(t, func(c *gateway.Config) { c.TokenFile = tokenFile(t) })
	admin := []string{"Authorization", "Bearer " + adminToken}
	b.post("/api/uid/assign", `{"metric":["m"]}`, admin...)

	long := `{"name":"` + strings.Repeat("ä", 400) + `","metric":"m"}`
	b.post("/api/uid/rename", long, append(admin, "X-Request-Id", "long")...)
	work := `{"command":"fsck"` + strings.Repeat(" ", 1000) + `}`
	if a := b.post("/api/tools/uid", work, append(admin, "X-Request-Id", "spaces")...); a.status != http.StatusOK || !strings.Contains(a.body, "#end ") {
		t.Errorf("a body that is longer than its beginning in the log: %d %s", a.status, a.body)
	}
	token := strings.Repeat("x", 290) + adminToken // the bound parts it
	b.post("/api/tools/uid?t="+adminToken, token, append(admin, "X-Request-Id", "secret")...)
	for id, want := range map[string]string{
		"long":   "body=" + long[:299] + "… token=line 3 ", // the 300th byte is half a character
		"spaces": "body=" + work[:300] + "… token=line 3 ",
		"secret": "parameters=t=[token] body=" + token[:290] + "[token] token=line 3 ",
	} {
		for _, line := range b.auditLines(id, admin...) {
			if !strings.Contains(line, want) {
				t.Errorf("got the line %s, want %s", line, want)
			}
		}
	}

	before := strings.Count(b.get("/logs", admin...).body, "an administrative request")
	if a := b.post("/api/annotation", `{"startTime":1356998400,"description":"x"}`, admin...); a.status != http.StatusOK {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	b.post("/api/annotation/bulk", `[{"startTime":1356998401}]`, admin...)
	log := b.get("/logs", admin...).body
	if n := strings.Count(log, "an administrative request"); n != before {
		t.Errorf("%d lines after annotations, want %d", n, before)
	}
	if strings.Contains(log, adminToken[:10]) {
		t.Error("a token, or its beginning, is in the log")
	}
}

// What clients send into a line about an administrative request breaks no line and reaches no terminal
// as a code, in the log that is written and in the one of /logs.
func TestAudit_hostile(t *testing.T) {
	var text, lines bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&lines, nil)} {
		guard := &access.Guard{Log: slog.New(h)}
		r := httptest.NewRequest(http.MethodDelete, "/api/annotation", nil)
		r.URL.Path, r.URL.RawQuery = "/api/\x1b[2J\nlevel=INFO msg=forged", strings.Repeat("\r\n\x9b", 1000)
		r.Body = io.NopCloser(strings.NewReader("{\"name\":\n\"\x1b[2J\rmsg=forged" + strings.Repeat("\x9b\x00", 1000)))
		r = access.WithAudit(r)
		guard.Audit(r)
		// A job that fails behind the status of its answer.
		audit.Of(r.Context()).Err = errors.New("no region \x1b[2J" + strings.Repeat("\n", 1000))
		guard.AuditEnd(r, "200")
	}
	for _, out := range []string{text.String(), lines.String()} {
		if strings.Count(out, "\n") != 2 || !strings.HasSuffix(out, "\n") || strings.ContainsAny(out, "\x1b\r\x00") || strings.Contains(out, "\x9b") || len(out) > 16_000 {
			t.Errorf("got %q, want two lines without codes", out)
		}
		if strings.Count(out, "forged") != 4 || strings.Count(out, "no region") != 1 {
			t.Errorf("got %q, want the path, the body and, at the end, the error", out)
		}
	}
}
