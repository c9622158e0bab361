package httpapi

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
)

// serving is an API whose page and metrics do as they are told.
func serving(t *testing.T, page http.HandlerFunc) *httptest.Server {
	t.Helper()
	a := &API{Page: page, Metrics: page, Live: page, Log: slog.New(slog.DiscardHandler)}
	s := httptest.NewServer(a.Handler())
	t.Cleanup(s.Close)
	return s
}

// fetch returns the answer as the wire has it.
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

// A handler that panics before it has said anything is a 500; one that has
// begun loses its connection, so that its beginning is not taken for the whole.
// The process lives.
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
						t.Errorf("%s, %s, after %d bytes: %d and %d bytes in good order", path, packed, said, status, len(body))
					}
					continue
				}
				if err != nil || status != 500 || body != `{"error":{"code":500,"message":"Internal error"}}` {
					t.Errorf("%s, %s: %d %q, %v; want a 500", path, packed, status, body, err)
				}
			}
		}
	}
}

var errCut = errors.New("the client is gone")

// cutWriter takes so many bytes.
type cutWriter struct {
	httptest.ResponseRecorder
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		return 0, errCut
	}
	c.left -= len(p)
	return c.ResponseRecorder.Write(p)
}

func someResults(n int) []engine.Result {
	r := engine.Result{}
	r.Metric = "m"
	for i := range n {
		r.Points.Append(int64(1356998400000+i*1000), encoding.FloatValue(float64(i)))
	}
	return []engine.Result{r}
}

// An answer that cannot be written to its end says so, and an Arrow stream has
// no end mark then.
func TestAnswer_cut(t *testing.T) {
	end := []byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}
	forms := map[string]func(http.ResponseWriter) error{
		"json": func(w http.ResponseWriter) error {
			return writeAnswer(w, httptest.NewRequest("GET", "/", nil), &query.Query{}, newEffort(t.Context(), time.Minute), someResults(20_000), engine.Stats{}, nil)
		},
		"arrow": func(w http.ResponseWriter) error {
			f := &filler{answer: &engine.Answer{Results: someResults(20_000)}, ctx: t.Context(), left: time.Hour, check: func(int) error { return nil }}
			_, err := writeArrow(w, f, batch.ResultOptions{})
			return err
		},
	}
	for name, write := range forms {
		whole := &cutWriter{ResponseRecorder: *httptest.NewRecorder(), left: 1 << 30}
		if err := write(whole); err != nil {
			t.Fatal(err)
		}
		size := whole.Body.Len()
		if name == "arrow" && !bytes.HasSuffix(whole.Body.Bytes(), end) {
			t.Error("the whole stream has no end mark")
		}
		for _, left := range []int{0, 1, size / 2, size - 1} {
			w := &cutWriter{ResponseRecorder: *httptest.NewRecorder(), left: left}
			if err := write(w); !errors.Is(err, errCut) {
				t.Errorf("%s cut at %d of %d: %v", name, left, size, err)
			}
			if bytes.HasSuffix(w.Body.Bytes(), end) || w.Body.Len() == size {
				t.Errorf("%s cut at %d of %d: it looks whole", name, left, size)
			}
			if v := panicOf(func() { abort(errCut) }); v != http.ErrAbortHandler {
				t.Errorf("abort panics with %v", v)
			}
		}
	}
}

func panicOf(do func()) (v any) {
	defer func() { v = recover() }()
	do()
	return nil
}

// The API version is the element behind api/, where it is one.
func TestVersion(t *testing.T) {
	f := func(spelling, route string, status int) {
		t.Helper()
		got, err := RouteOf(spelling)
		code := 0
		if err != nil {
			code = classify(err).Code
		}
		if got != route || code != status {
			t.Errorf("%s: route %q, status %d, want %q, %d", spelling, got, code, route, status)
		}
	}
	f("/api/put", "api/put", 0)
	f("/API/Put/", "api/put", 0)
	f("/api/v1/put", "api/put", 0)
	f("//api/V1/put", "api/put", 0)
	f("/api/v1", "api/", 0)
	f("/api/v2/put", "api/put", 501)
	f("/api/v1x/put", "api/put", 400)
	f("/api/v99999999999999999999/put", "api/put", 400)
	f("/api/version", "api/version", 0)
	f("/api/v", "api/v", 0)
	f("/api/v-1/put", "api/v-1/put", 0)
	f("/api//put", "api//put", 0)
	f("/", "", 0)
}

// Texts and numbers mean the same in a put.
func TestScalar(t *testing.T) {
	f := func(body, timestamp, value string) {
		t.Helper()
		points, err := parsePoints([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff([]scalar{scalar(timestamp), scalar(value)}, []scalar{points[0].Timestamp, points[0].Value}); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
	f(`{"timestamp":1356998400,"value":1}`, "1356998400", "1")
	f(`{"timestamp":"1356998400","value":"1"}`, "1356998400", "1")
	f(`{"timestamp":1356998400.0,"value":1.0}`, "1356998400.0", "1.0")
	f(`{"timestamp":null,"value":null}`, "", "")
	f(`{"value":1e3,"value":-0.0}`, "", "-0.0")
	f(`[{"value":true,"unknown":{"a":[1]}}]`, "", "true")
}
