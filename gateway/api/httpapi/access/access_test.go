package access_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/origin"
	"downpour/pushdown/rpc/auth"
)

const reads, writes = "token-that-may-read", "token-that-may-write"

// guarded returns a Guard with two tokens, or none if it is open, for pages of http://listed alone.
func guarded(t *testing.T, open bool, log *slog.Logger) *access.Guard {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("read "+reads+"\nwrite "+writes+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if open {
		file = ""
	}
	tokens, err := auth.Load(file, auth.All, log)
	if err != nil {
		t.Fatal(err)
	}
	listed, _, err := origin.Parse([]string{"http://listed"})
	if err != nil {
		t.Fatal(err)
	}
	return &access.Guard{Tokens: tokens, Origins: origin.Rules{Allowed: listed, Open: open}, Log: log}
}

// statusOf returns the status of an error, 0 if there is none.
func statusOf(err error) int {
	var e *httpio.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// A route that needs a scope is for tokens that have it: without a token it is 401, with another one 403, and both
// answers name the scheme.
func TestAuthorize(t *testing.T) {
	g := guarded(t, false, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		header string
		need   auth.Scope
		want   int
	}{
		{"", 0, 0}, {"Bearer nonsense", 0, 0},
		{"", auth.Read, 401}, {"Bearer nonsense", auth.Read, 401}, {reads + "!", auth.Read, 401},
		{"Bearer " + reads, auth.Read, 0}, {"Bearer " + reads, auth.Write, 403}, {"Bearer " + reads, auth.Admin, 403},
		{"Bearer " + writes, auth.Write, 0}, {"Bearer " + writes, auth.Write | auth.Read, 403},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/query", nil)
		r.Header.Set("Authorization", c.header)
		got := statusOf(g.Authorize(w, r, c.need))
		if scheme := w.Header().Get("WWW-Authenticate"); got != c.want || (scheme == "Bearer") != (c.want != 0) {
			t.Errorf("%q for %v: got %d, scheme %q, want %d", c.header, c.need, got, scheme, c.want)
		}
		if allows := g.Allows(r, c.need); allows != (c.want == 0) {
			t.Errorf("%q for %v: allowed %t", c.header, c.need, allows)
		}
	}
}

// What a browser learns from the headers: an allowed page that it may read the answer, and caches that this depends
// on the page. All answers are of the type that they name.
func TestHandler(t *testing.T) {
	type answer struct {
		Status        int
		Handled       bool
		Allowed, Vary string
	}
	const self = "127.0.0.1:4242"
	open := guarded(t, true, slog.New(slog.DiscardHandler))
	for what, c := range map[string]struct {
		method, host, page string
		want               answer
	}{
		"a program": {http.MethodGet, self, "", answer{200, true, "", ""}},
		"its own page": {http.MethodGet, self, "http://" + self,
			answer{200, true, "http://" + self, "Origin"}},
		"a listed page": {http.MethodPost, self, "http://listed",
			answer{200, true, "http://listed", "Origin"}},
		"its preflight": {http.MethodOptions, self, "http://listed",
			answer{200, false, "http://listed", "Origin"}},
		"another page":         {http.MethodPost, self, "http://other", answer{403, false, "", ""}},
		"another page's GET":   {http.MethodGet, self, "http://other", answer{200, false, "", ""}},
		"its preflight's":      {http.MethodOptions, self, "http://other", answer{405, false, "", ""}},
		"OPTIONS of a program": {http.MethodOptions, self, "", answer{405, false, "", ""}},
		"another name":         {http.MethodGet, "a.example", "http://a.example", answer{421, false, "", ""}},
	} {
		var got answer
		h := open.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Handled = true }))
		w, r := httptest.NewRecorder(), httptest.NewRequest(c.method, "/api/query", nil)
		r.Host = c.host
		if c.page != "" {
			r.Header.Set("Origin", c.page)
		}
		h.ServeHTTP(w, r)
		header := w.Header()
		got.Status, got.Allowed, got.Vary = w.Code, header.Get("Access-Control-Allow-Origin"), header.Get("Vary")
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", what, d)
		}
		for _, name := range []string{"Access-Control-Allow-Methods", "Access-Control-Allow-Headers"} {
			if (header.Get(name) != "") != (c.want.Allowed != "") {
				t.Errorf("%s: %s is %q", what, name, header.Get(name))
			}
		}
		if header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: a browser may take the answer for another type: %v", what, header)
		}
	}
}

// A change needs its scope and is of an allowed page, even by a verb for which the page was not checked. It is in the
// log; of what users store all day deletions alone are, and what is refused is not.
func TestMayChange(t *testing.T) {
	for what, c := range map[string]struct {
		method, token, page string
		want                int
		changes, stores     bool // are in the log
	}{
		"by a token":        {http.MethodPost, writes, "", 0, true, false},
		"a deletion":        {http.MethodDelete, writes, "", 0, true, true},
		"by a listed page":  {http.MethodPost, writes, "http://listed", 0, true, false},
		"without a right":   {http.MethodDelete, reads, "", 403, false, false},
		"without a token":   {http.MethodDelete, "", "", 401, false, false},
		"by another page":   {http.MethodDelete, writes, "http://other", 403, false, false},
		"a GET, by another": {http.MethodGet, writes, "http://other", 403, false, false},
	} {
		var log bytes.Buffer
		g := guarded(t, false, slog.New(slog.NewTextHandler(&log, nil)))
		for name, may := range map[string]func(http.ResponseWriter, *http.Request, auth.Scope) error{
			"change": g.MayChange, "store": g.MayStore,
		} {
			log.Reset()
			r := access.WithAudit(httptest.NewRequest(c.method, "/api/annotation", strings.NewReader("text")))
			r.Header.Set("Authorization", "Bearer "+c.token)
			if c.page != "" {
				r.Header.Set("Origin", c.page)
			}
			if got := statusOf(may(httptest.NewRecorder(), r, auth.Write)); got != c.want {
				t.Errorf("%s, %s: got %d, want %d", what, name, got, c.want)
			}
			logged := name == "change" && c.changes || name == "store" && c.stores
			if has := strings.Contains(log.String(), "path=/api/annotation"); has != logged {
				t.Errorf("%s, %s: logged %t, want %t: %s", what, name, has, logged, log.String())
			}
		}
	}
}

// A request is logged once before it changes something, with what it sends, and once when it has ended. Its token is
// in neither line.
func TestAudit(t *testing.T) {
	var log bytes.Buffer
	g := guarded(t, false, slog.New(slog.NewTextHandler(&log, nil)))
	body := strings.NewReader("my " + writes + " text")
	r := access.WithAudit(httptest.NewRequest(http.MethodPost, "/api/x?a="+writes, body))
	r.Header.Set("Authorization", "Bearer "+writes)
	if g.AuditEnd(r, "200"); log.Len() > 0 {
		t.Errorf("the end of what has not begun is logged: %s", &log)
	}
	g.Audit(r)
	g.Audit(r)
	g.AuditEnd(r, "cut")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `body="my `) || !strings.Contains(lines[0], ` text"`) ||
		!strings.Contains(lines[1], "outcome=cut") || strings.Contains(log.String(), writes) {
		t.Errorf("got\n%s", &log)
	}

	log.Reset()
	r = access.WithAudit(httptest.NewRequest(http.MethodPost, "/api/x", nil))
	if g.Audit(r); log.Len() == 0 || strings.Contains(log.String(), "body=") {
		t.Errorf("without a body: %s", &log)
	}
}
