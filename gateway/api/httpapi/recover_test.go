package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"downpour/encoding/batch"
)

// serving serves an API whose page and metrics are the handler.
func serving(t *testing.T, page http.HandlerFunc) *httptest.Server {
	t.Helper()
	a := newAPI(page)
	s := httptest.NewServer(a.Handler())
	t.Cleanup(s.Close)
	return s
}

// fetch returns an answer without decoding its body.
func fetch(t *testing.T, url, encoding string) (status int, body string, err error) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodGet, url, nil)
	req.Header.Set("Accept-Encoding", encoding)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// internalError is the body of a 500, with the request's id.
var internalError = regexp.MustCompile(`^{"error":{"code":500,"message":"Internal error","request":"[0-9a-f]{16}"}}$`)

// If a handler panics before it has written anything, the answer is 500. If it has begun, the
// connection is cut, so that nobody takes the beginning for the whole. The process goes on.
func TestRecovered(t *testing.T) {
	for _, path := range []string{"/", "/metrics", "/api/ws"} {
		for _, packed := range []string{"identity", "gzip"} {
			for _, said := range []int{0, 10, 100_000} {
				s := serving(t, func(w http.ResponseWriter, _ *http.Request) {
					if said > 0 {
						io.WriteString(w, strings.Repeat("x", said))
					}
					panic("a fault of ours")
				})
				status, body, err := fetch(t, s.URL+path, packed)
				if said > 0 {
					if err == nil {
						t.Errorf(
							"%s, %s, panic after %d bytes: got %d and %d bytes in good order, want a cut connection",
							path, packed, said, status, len(body))
					}
					continue
				}
				if err != nil || status != 500 || !internalError.MatchString(body) {
					t.Errorf("%s, %s: %d %q, %v; want a 500", path, packed, status, body, err)
				}
			}
		}
	}
}

// What is flushed reaches the client before the answer ends, compressed or not.
func TestHandler_flushReachesClient(t *testing.T) {
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		read := make(chan struct{})
		s := serving(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", batch.StreamMediaType)
			io.WriteString(w, strings.Repeat("0123456789", 300))
			http.NewResponseController(w).Flush()
			select {
			case <-read:
			case <-r.Context().Done():
			}
		})
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		req.Header.Set("Accept-Encoding", coding)
		client := http.Client{Timeout: 5 * time.Minute}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", coding, err)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, 8)); err != nil {
			t.Errorf("%s: nothing came before the end: %v", coding, err)
		}
		close(read)
		resp.Body.Close()
	}
}
