package gateway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"downpour/encoding/batch"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// Queries that are senseless or ask for too much are refused with a reason, at little cost.
func TestQuery_hostile(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.LimitQueries = 64 })
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf("m %d %d host=web%d", 1356998400+i%600, i, i))
	}
	b.Put(lines...)
	get := func(q string, status int, message string) {
		t.Helper()
		cheap(b, func() { b.Refused(b.Get("/api/query?"+q), status, message) })
	}
	get("start=1356998410&end=1356998400&m=sum:m",
		400, "End time [1356998400000] must be greater than the start time [1356998410000]")
	get("start=1356998400&m=sum:nobody", 400, "No such name for 'metrics': 'nobody'")
	get("start=1356998400&m=sum:m%7Bnokey=*%7D", 400, "No such name for 'tagk': 'nokey'")
	get("start=1356998400&m=sum:m%7Bhost=nobody%7D", 400, "No such name for 'tagv': 'nobody'")
	get("start=1356998400&m=nope:m", 400, "No such aggregation function: nope")
	get("m=sum:m", 400, "Missing parameter <code>start</code>")
	get("start=1356998400", 400, "Missing sub queries")
	get("start=1&m=sum:1ms-avg-zero:m", 413, "")
	get("start=1&end=9999999999999&m=sum:1s-avg-nan:m%7Bhost=*%7D", 413, "")
	get("start=1356998400"+strings.Repeat("&m=sum:m", 1000), 413, "Too many sub queries")
	get("start=1356998400&m=sum:m%7Bhost=regexp("+strings.Repeat("a", 5000)+")%7D", 400, "")

	post := func(body string, status int, message string) {
		t.Helper()
		cheap(b, func() { b.Refused(b.Post("/api/query", body), status, message) })
	}
	sub := `{"aggregator":"sum","metric":"m"}`
	post("", 400, "Missing message content")
	for _, body := range []string{
		"{bad", "[", "\x00", `"x"`, strings.Repeat("[", 1<<19), strings.Repeat(`{"queries":[`, 1<<16),
	} {
		post(body, 400, "Unable to parse the given JSON")
	}
	post("{}", 500, "An internal null pointer exception was thrown")
	post(`{"start":1356998400,"queries":[]}`, 400, "Missing queries")
	post(`{"start":1356998400,"queries":[`+strings.TrimSuffix(strings.Repeat(sub+",", 1000), ",")+`]}`,
		413, "Too many sub queries")
	post(`{"start":1356998400,"queries":[`+strings.Repeat(sub+",", 1<<20/len(sub))+sub+`]}`, 413, "")
	post(`{"start":1`+strings.Repeat("0", 100_000)+`,"queries":[`+sub+`]}`, 400, "")
	filter := `{"start":1356998400,"end":1357002000,"queries":[{"aggregator":"none","metric":"m",` +
		`"filters":[{"type":"%s","tagk":"host","filter":"%s","groupBy":true}]}]}`
	post(fmt.Sprintf(filter, "regexp", strings.Repeat("(a|b)*", 1000)), 400, "")
	post(fmt.Sprintf(filter, "regexp", "((a{1,1000}){1,1000}){1,1000}"), 400, "")
	post(fmt.Sprintf(filter, "regexp", "(("), 400, "Unable to parse the given JSON")

	// A filter that matches very many names is allowed, and answered in full.
	for _, f := range []string{"wildcard", "regexp"} {
		pattern := map[string]string{"wildcard": "*e*b*", "regexp": "(w+e+b+)+.*"}[f]
		var results []json.RawMessage
		a := b.Post("/api/query", fmt.Sprintf(filter, f, pattern))
		if err := json.Unmarshal([]byte(a.Body), &results); err != nil || len(results) != 3000 {
			t.Errorf("%s: %d, %d groups, %v: %.200s", f, a.Status, len(results), err, a.Body)
		}
	}
}

// cheap fails the test if a request makes the process allocate more than 64 MiB.
func cheap(b *bench, do func()) {
	b.Helper()
	before := allocated()
	do()
	if grown := allocated() - before; grown > 64<<20 {
		b.Errorf("%d MiB were allocated, want 64 at most", grown>>20)
	}
}

// If a part cannot be read, the answer is 503 with the missing key ranges.
func TestQuery_incomplete(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.QueryTimeout = little(t); c.SaltWidth = 1 })
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("m 1356998400 1 host=h%d", i))
	}
	b.Put(lines...)
	judge := func(s store.Scan) error {
		if len(s.Start) > 0 && s.Start[0] >= 10 {
			return fmt.Errorf("region of bucket %d: %w", s.Start[0], store.ErrUnavailable)
		}
		return nil
	}
	b.Store.Judge.Store(&judge)
	a := askUntil(b, gatewaytest.SomeQuery, answered(503))
	b.Refused(a, 503, "The answer is incomplete")
	var body struct{ Error struct{ Missing [][2]string } }
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil || len(body.Error.Missing) == 0 {
		t.Fatalf("%v: %.300s", err, a.Body)
	}
	for _, m := range body.Error.Missing {
		if start, err := hex.DecodeString(m[0]); err != nil || start[0] < 10 {
			t.Errorf("missing %v, %v; want buckets from 0a on", m, err)
		}
	}
	if a.Header.Get("Retry-After") == "" {
		t.Error("got no Retry-After, want one")
	}
	b.Store.Judge.Store(nil)
	if a := askUntil(b, gatewaytest.SomeQuery, answered(200)); a.Status != 200 ||
		!strings.Contains(a.Body, `{"1356998400":100}`) {
		t.Errorf("healed: %d %s", a.Status, a.Body)
	}
}

// When a client goes away its query ends, with the context of its scans at the store: in process
// and on a pushdown server, before the first row and after it.
func TestQuery_clientGoes(t *testing.T) {
	const body = `{"start":1356998400,"end":1357084800,"queries":[{"aggregator":"sum","metric":"m"}]}`
	f := func(b *bench, method string, wait func(b *bench) (waiting func() bool)) {
		t.Helper()
		b.Put("m 1356998400 1 host=a")
		waiting := wait(b)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			var err error
			if method == http.MethodPost {
				_, err = b.Try(ctx, method, "/api/query", strings.NewReader(body))
			} else {
				_, err = b.Try(ctx, method, gatewaytest.SomeQuery, nil)
			}
			gone <- err
		}()
		eventually(t, "a scan waits", func() bool { return waiting() && b.Store.Scans.Load() > 0 })
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that the request was canceled", err)
		}
		eventually(t, "scans closed", func() bool { return b.Store.Scans.Load() == 0 })
	}
	slow := func(b *bench) func() bool {
		rules := b.Store.Set(faultstore.Rule{Op: faultstore.Next, Table: "tsdb", Delay: time.Hour})
		return func() bool { return rules.Hits()[0] > 0 }
	}
	stuck := func(b *bench) func() bool {
		var n atomic.Int64
		after := func(ctx context.Context) error { n.Add(1); <-ctx.Done(); return ctx.Err() }
		b.Store.After.Store(&after)
		return func() bool { return n.Load() > 0 }
	}
	f(open(t, nil), http.MethodGet, slow)
	f(open(t, nil), http.MethodPost, slow)
	f(open(t, nil), http.MethodPost, stuck)
	f(behind(t, 2, nil), http.MethodGet, slow)
	f(behind(t, 2, nil), http.MethodPost, stuck)
}

// As Arrow an answer ends with an end mark, and compressed it is the same one. The story query_forms has the forms of
// JSON.
func TestQuery_wholeStreams(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a", "m 1356998460 2.5 host=a", "m 1356998460 3 host=b")
	a := b.Get("/api/query?start=1356998400&end=1356998500&m=sum:m", "Accept", batch.StreamMediaType)
	if a.Status != 200 || a.Header.Get("Content-Type") != batch.StreamMediaType ||
		!bytes.HasSuffix([]byte(a.Body), []byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}) {
		t.Errorf("Arrow: %d %v, %d bytes", a.Status, a.Header, len(a.Body))
	}
	const long = "/api/query?start=1356998400&end=1357002000&m=sum:1s-sum-zero:m"
	plain, packed := b.Get(long), b.Get(long, "Accept-Encoding", "gzip")
	z, err := gzip.NewReader(strings.NewReader(packed.Body))
	if err != nil || packed.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("got header %v, %v, want gzip", packed.Header, err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != plain.Body || len(text) < 3600*10 {
		t.Errorf("compressed: %d bytes, %v; plain %d bytes", len(text), err, len(plain.Body))
	}
}
