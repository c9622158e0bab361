package probe

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The probed address can be connected to, wherever the program listens.
func TestURL(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:4242": "http://127.0.0.1:4242", ":4242": "http://127.0.0.1:4242", "0.0.0.0:1": "http://127.0.0.1:1",
		"[::]:4242": "http://127.0.0.1:4242", "[::1]:4242": "http://[::1]:4242", "rs1:4280": "http://rs1:4280",
		"4242": "",
	} {
		if got := URL(listen, false); got != want {
			t.Errorf("%s: got %q, want %q", listen, got, want)
		}
	}
	if got := URL(":1", true); got != "https://127.0.0.1:1" {
		t.Errorf("with TLS: got %q", got)
	}
}

// Only an answer of 200 is success. A failure has the program's own text.
func TestAsk(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Ready {
			http.Error(w, "the store is away", http.StatusServiceUnavailable)
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	const gone = "http://127.0.0.1:1" // a port that is never assigned automatically

	f := func(url, path, want string) {
		t.Helper()
		err := Ask(t.Context(), url, path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s%s: error %v, want %q", url, path, err, want)
		}
	}
	f(plain.URL, Health, "")
	f(secure.URL, Health, "")
	f(plain.URL, Ready, "503 Service Unavailable: the store is away")
	f(secure.URL, Ready, "the store is away")
	f(gone, Health, "connection refused")
	f(plain.URL, "/api/version", "want /healthz or /readyz")
	f("", Health, "unsupported protocol scheme")
}
