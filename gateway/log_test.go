package gateway_test

import (
	"bytes"
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
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// A query that takes longer than the setting is logged with what it asked and read, its plan and
// the id of its request; also one that fails. Faster ones are not.
func TestSlowQuery(t *testing.T) {
	slow := open(t, func(c *gateway.Config) { c.SlowQuery = time.Nanosecond })
	fast := open(t, func(c *gateway.Config) { c.SlowQuery = time.Hour })
	for _, b := range []*bench{slow, fast} {
		b.Put("m 1356998400 1 host=a", "m 1356998460 2 host=a", "m 1356998400 4 host=b")
	}
	// On a real clock two readings of it may be equal, so the query waits for its rows.
	slow.Store.Set(faultstore.Rule{Op: faultstore.Scan, Table: "tsdb", Delay: time.Millisecond})

	for path, asked := range map[string]string{
		"/api/query?start=1356998400&end=1356998500&m=sum:m{host=a}": `"metric":"m"`,
		"/api/query?start=1356998400&end=1356998500&m=sum:m&arrow":   `"metric":"m"`,
	} {
		if a := slow.Get(path, "X-Request-Id", "asked-"+fmt.Sprint(len(path))); a.Status != 200 {
			t.Fatalf("%s: %d %s", path, a.Status, a.Body)
		}
		line := slow.LogLine(fmt.Sprint("request=asked-", len(path)))
		for _, want := range []string{
			"a query was slow took=", "status=200", "client=127.0.0.1", asked, "rows=",
			"plan=scan tsdb metric 000001 rows [",
		} {
			if !strings.Contains(line, want) {
				t.Errorf("%s: no %q in the line %s", path, want, line)
			}
		}
	}

	slow.Store.Set(faultstore.Rule{Op: faultstore.Scan, Table: "tsdb", Err: store.ErrNoTable, Delay: time.Millisecond})
	slow.Get("/api/query?start=1356998400&end=1356998500&m=avg:m", "X-Request-Id", "failed")
	if line := slow.LogLine("a query was slow"); !strings.Contains(line, "request=failed") ||
		!strings.Contains(line, " err=") || !strings.Contains(line, "plan=scan tsdb metric 000001 rows [") {
		t.Errorf("got the line %s, want that of the query that failed, with its plan", line)
	}

	fast.Get(gatewaytest.SomeQuery)
	if log := fast.Get("/logs").Body; strings.Contains(log, "a query was slow") {
		t.Errorf("a fast query is in the log:\n%s", log)
	}
}

// A request has one id in the answer, the log, the trace and the error object. The client's is taken
// over if it can stand in a log.
func TestRequestID(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a")
	made := regexp.MustCompile(`^[0-9a-f]{16}$`)
	id := func(given string) string {
		return b.Get("/api/version", "X-Request-Id", given).Header.Get("X-Request-Id")
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

	a := b.Get("/api/query?start=1356998400&end=1356998500&m=sum:m&trace", "X-Request-Id", "traced")
	if !strings.Contains(a.Body, `"attributes":{"request":"traced"}`) {
		t.Errorf("no id in the trace: %s", a.Body)
	}

	b.Store.Set(faultstore.Rule{Op: faultstore.Scan, Table: "tsdb", Err: store.ErrDamaged})
	a = b.Get("/api/query?start=1356998400&end=1356998500&m=max:m", "X-Request-Id", "broken")
	var body struct{ Error struct{ Request string } }
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil || a.Status < 500 || body.Error.Request != "broken" {
		t.Errorf("got %d %s, want a fault with the id", a.Status, a.Body)
	}
	b.LogLine("request failed path=/api/query status=" + fmt.Sprint(a.Status) + " request=broken")

	// An error that OpenTSDB answers, too, has the members that it has there.
	if a := b.Get("/api/uid/nope"); a.Status != 501 || strings.Contains(a.Body, "request") {
		t.Errorf("got %d %s, want 501 without an id", a.Status, a.Body)
	}
}

// What changes the gateway or removes data leaves a line with the name of its token, by every way.
// What only reads does not.
func TestAudit(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.TokenFile, c.AllowDelete = gatewaytest.TokenFile(t), true })
	admin := []string{"Authorization", "Bearer " + gatewaytest.AdminToken}
	c := b.Dial()
	fmt.Fprintf(c, "auth %s\nput m 1356998400 1 host=a\ndropcaches\n", gatewaytest.AdminToken)
	c.Rest()
	b.LogLine("an administrative request command=dropcaches token=line 3 client=127.0.0.1", admin...)
	line := b.LogLine("an administrative request ended command=dropcaches token=line 3", admin...)
	if !strings.Contains(line, "outcome=Caches dropped.") {
		t.Errorf("got the line %s, want the answer", line)
	}

	for i, k := range []struct{ method, path, want, outcome string }{
		{"GET", "/api/dropcaches", "method=GET path=/api/dropcaches parameters=", "200"},
		{
			"DELETE", "/api/query?start=1356998400&end=1356998401&m=sum:m",
			"method=DELETE path=/api/query parameters=start=1356998400&end=1356998401&m=sum:m", "200",
		},
		{
			"GET", "/api/query?start=1356998400&end=1356998401&m=sum:m&method_override=delete",
			"method=DELETE path=/api/query", "200",
		},
		{"GET", "/api/uid/rename?metric=m&name=n", "method=GET path=/api/uid/rename parameters=metric=m&name=n", "200"},
		{"DELETE", "/api/annotation?start_time=1356998400", "method=DELETE path=/api/annotation", "204"},
	} {
		id := fmt.Sprint("audited-", i)
		b.Do(k.method, k.path, strings.NewReader(""), append(admin, "X-Request-Id", id)...)
		if line := b.LogLine("an administrative request "+k.want, admin...); !strings.Contains(line, "token=line 3") ||
			!strings.Contains(line, "request="+id) {
			t.Errorf("%s %s: got the line %s, want the token's name and the request's id", k.method, k.path, line)
			continue // the line of its end would never come
		}
		// Its client may have the answer before the line is there.
		ended := regexp.MustCompile("an administrative request ended " + regexp.QuoteMeta(k.want) +
			".* token=line 3 .* request=" + id + " outcome=(.*)")
		var outcome []string
		eventually(t, "the line of its end", func() bool {
			outcome = ended.FindStringSubmatch(b.Get("/logs", admin...).Body)
			return outcome != nil
		})
		if outcome[1] != k.outcome {
			t.Errorf("%s %s: ended with %s, want %s", k.method, k.path, outcome[1], k.outcome)
		}
	}

	before := strings.Count(b.Get("/logs", admin...).Body, "an administrative request")
	b.Get("/api/query?start=1356998400&end=1356998401&m=sum:n", admin...)
	b.Get("/api/config", admin...)
	b.Get("/logs", admin...)
	// This one is refused.
	b.Do("DELETE", "/api/query?start=1356998400&end=1356998401&m=sum:n", nil,
		"Authorization", "Bearer "+gatewaytest.ReadToken)
	log := b.Get("/logs", admin...).Body
	if n := strings.Count(log, "an administrative request"); n != before {
		t.Errorf("%d lines after requests that change nothing, want %d", n, before)
	}
	if strings.Contains(log, gatewaytest.AdminToken) {
		t.Error("a token is in the log")
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
		if strings.Count(out, "\n") != 2 || !strings.HasSuffix(out, "\n") || strings.ContainsAny(out, "\x1b\r\x00") ||
			strings.Contains(out, "\x9b") || len(out) > 16_000 {
			t.Errorf("got %q, want two lines without codes", out)
		}
		if strings.Count(out, "forged") != 4 || strings.Count(out, "no region") != 1 {
			t.Errorf("got %q, want the path, the body and, at the end, the error", out)
		}
	}
}
