package gateway_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

const (
	goodPoint = `{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"}}`
	badPoint  = `{"metric":"m","timestamp":1356998401,"value":"x","tags":{"host":"a"}}`
)

// Whatever the flags of a put: an answer without an error and without failed points means that all
// points are durable.
//
//fault:last-points-of-a-put-not-waited-for range pending => range pending[:max(0, len(pending)-1)]
func TestPut_flags(t *testing.T) {
	b := open(t, nil)
	b.put("m 1356998399 1 host=a") // the names are known
	f := func(flags, body string, status int, want string) {
		t.Helper()
		a := b.post("/api/put?"+flags, body)
		if a.status != status || !strings.HasPrefix(a.body, want) || want == "" && a.body != "" {
			t.Errorf("?%s %.40s…: got %d %s, want %d %s", flags, body, a.status, a.body, status, want)
		}
	}
	good := "[" + goodPoint + "," + goodPoint + "]"
	for _, sync := range []string{"", "&sync", "&sync&sync_timeout=60000"} {
		f(sync, good, 204, "")
		f("summary"+sync, good, 200, `{"success":2,"failed":0}`)
		f("details"+sync, good, 200, `{"success":2,"failed":0,"errors":[]}`)
		f("details&summary"+sync, good, 200, `{"success":2,"failed":0,"errors":[]}`)
		partly := "[" + goodPoint + "," + badPoint + "]"
		f(sync, partly, 400, `{"error":{"code":400,"message":"One or more data points had errors"`)
		f("summary"+sync, partly, 400, `{"success":1,"failed":1}`)
		f("details"+sync, partly, 400, `{"success":1,"failed":1,"errors":[{"datapoint":{"metric":"m","timestamp":1356998401,"value":"x","tags":{"host":"a"}},"error":"Unable to parse value to a number"}]}`)
	}
	b.store.set(faultstore.Rule{Op: faultstore.Apply, Table: "tsdb", Err: store.ErrUnavailable})
	lost := `"error":"Storage exception: `
	f("", good, 503, `{"error":{"code":503,"message":"Storage exception: `)
	f("sync", good, 503, `{"error":{"code":503,"message":"Storage exception: `)
	f("summary", good, 503, `{"success":0,"failed":2}`)
	f("details", goodPoint, 503, `{"success":0,"failed":1,"errors":[{"datapoint":{"metric":"m","timestamp":1356998400,"value":"1","tags":{"host":"a"}},`+lost)
	f("summary&sync", good, 200, `{"success":0,"failed":2}`)
	f("details&sync", goodPoint, 200, `{"success":0,"failed":1,"errors":[{"datapoint":{"metric":"m","timestamp":1356998400,"value":"1","tags":{"host":"a"}},`+lost)
	f("summary&sync", "["+goodPoint+","+badPoint+"]", 400, `{"success":0,"failed":2}`)

	b.store.set(faultstore.Rule{Op: faultstore.Apply, Table: "tsdb", Delay: 300 * time.Millisecond})
	f("sync&sync_timeout=soon", goodPoint, 400, `{"error":{"code":400,"message":"Unable to parse 'sync_timeout'`)
	f("sync_timeout=1", goodPoint, 204, "") // without sync it means nothing

	cfg := config(0)
	st := &stalled{Store: memoryStore(t, cfg), data: cfg.TableData}
	b = &bench{T: t, cfg: cfg, g: start(t, cfg, st)}
	b.put("m 1356998399 1 host=a")
	still := make(chan struct{})
	st.still.Store(&still)
	defer close(still)
	late := "sync&sync_timeout=1"
	f(late, goodPoint, 400, `{"error":{"code":400,"message":"The put call has timedout with 0 successful writes, 0 failed writes and 1 timed out writes."`)
	f("summary&"+late, good, 400, `{"success":0,"failed":0,"timeouts":2}`)
	f("details&"+late, goodPoint, 400, `{"success":0,"failed":0,"timeouts":1,"errors":[{"datapoint":`)
}

// A put takes a body with any Content-Type, chunked, and in any encoding that is known; a wrong or
// unknown encoding is refused.
func TestPut_bodies(t *testing.T) {
	b := open(t, nil)
	at := 1356998400
	f := func(encode func(io.Writer) io.WriteCloser, header ...string) {
		t.Helper()
		at++
		var body bytes.Buffer
		w := encode(&body)
		fmt.Fprintf(w, `{"metric":"m","timestamp":%d,"value":1,"tags":{"host":"a"}}`, at)
		w.Close()
		if a := b.do(http.MethodPost, "/api/put", io.MultiReader(&body), header...); a.status != 204 { // without a length: chunked
			t.Errorf("%v: %d %s", header, a.status, a.body)
		}
	}
	plain := func(w io.Writer) io.WriteCloser { return nopCloser{w} }
	for _, kind := range []string{"", "application/json", "application/x-www-form-urlencoded", "text/plain", "applicaton/json", "x", "application/json; charset=latin1"} {
		f(plain, "Content-Type", kind)
	}
	f(plain, "Content-Encoding", "identity")
	f(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, "Content-Encoding", "gzip")
	f(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, "Content-Encoding", "X-GZIP")
	f(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, "Content-Encoding", "deflate")
	f(func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 9); return z }, "Content-Encoding", "deflate")
	want := fmt.Sprint(at - 1356998400)
	if a := b.get("/api/query?start=1356998400&end=1356999000&m=sum:10m-count:m"); !strings.Contains(a.body, `{"1356998400":`+want+`.0}`) {
		t.Errorf("stored: %s, want %s points", a.body, want)
	}
	b.refused(b.post("/api/put", goodPoint, "Content-Encoding", "br"), 400, "Unsupported Content-Encoding: br")
	b.refused(b.post("/api/put", goodPoint, "Content-Encoding", "gzip"), 400, "Unable to decode the gzip body")
	b.refused(b.post("/api/put", "\x78\x9c\x00", "Content-Encoding", "deflate"), 400, "Unable to read the request body")
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// A value, a time or a tag that is a bare NaN or Infinity, a key in another case or a time that
// is a text but no integer costs its point, and the rest is stored.
func TestPut_oneBadPoint(t *testing.T) {
	f := func(from, to string) {
		t.Helper()
		b := open(t, nil)
		bad := strings.Replace(goodPoint, from, to, 1)
		if bad == goodPoint {
			t.Fatalf("%s is not part of %s", from, goodPoint)
		}
		a := b.post("/api/put?summary", "["+goodPoint+","+bad+"]")
		if a.status != 400 || !strings.Contains(a.body, `"success":1`) || !strings.Contains(a.body, `"failed":1`) {
			t.Errorf("%s: got %d %s, want one point stored and one refused", bad, a.status, a.body)
		}
	}
	for _, value := range []string{"NaN", "Infinity", "-Infinity", "+Infinity", "-INF", "+INF", `"1_0"`, `"1d"`, `"nan"`} {
		f(`"value":1`, `"value":`+value)
	}
	for _, at := range []string{"NaN", "Infinity", "true", `"1396656000.foo"`, `"1e9"`, `"0x1p30"`, `"1_396_656_000"`} {
		f(`"timestamp":1356998400`, `"timestamp":`+at)
	}
	for _, key := range []string{"metric", "timestamp", "value", "tags"} {
		f(`"`+key+`"`, `"`+strings.ToUpper(key)+`"`)
	}
}

// Bad bodies are refused with OpenTSDB's messages, and store nothing.
func TestPut_badBodies(t *testing.T) {
	b := open(t, nil)
	f := func(body, message string) {
		t.Helper()
		b.refused(b.post("/api/put", body), 400, message)
	}
	const parse = "Unable to parse the given JSON"
	f("", "Missing request content")
	f("  \n", "Missing request content")
	f("\x00", "Missing request content")
	for _, body := range []string{"null x", `"text"`, "17"} {
		f(body, "The JSON must start as an object or an array")
	}
	f("[]", "No datapoints found in content")
	for _, body := range []string{"{", "{not json", "[" + goodPoint, "[" + goodPoint + ",]", goodPoint + goodPoint, "[" + goodPoint + "] x",
		"[" + goodPoint + ",7]", `{"metric":{"a":1}}`, `{"metric":"m","tags":[]}`, `{"metric":"m","tags":{"host":{}}}`,
		strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000), `{"metric":` + strings.Repeat("[", 100_000)} {
		f(body, parse)
	}
	const failed = "One or more data points had errors"
	for _, point := range []string{
		`{}`, `{"metric":null}`, `{"metric":"m","timestamp":1356998400,"value":1}`,
		`{"metric":"m","timestamp":` + strings.Repeat("9", 10_000) + `,"value":1,"tags":{"host":"a"}}`,
		`{"metric":"m","timestamp":1356998400,"value":` + strings.Repeat("9", 10_000) + `,"tags":{"host":"a"}}`,
		`{"metric":"m","timestamp":1356998400,"value":1e999,"tags":{"host":"a"}}`,
		`{"metric":"m","timestamp":1e400,"value":1,"tags":{"host":"a"}}`,
		`{"metric":"m","timestamp":-1,"value":1,"tags":{"host":"a"}}`,
		`{"metric":"m","timestamp":10000000000000,"value":1,"tags":{"host":"a"}}`,
		`{"metric":"m","timestamp":1356998400,"value":true,"tags":{"host":"a"}}`,
		`{"metric":"` + strings.Repeat("m", 70_000) + `","timestamp":1356998400,"value":1,"tags":{"host":"a"}}`,
		`{"metric":"<script>","timestamp":1356998400,"value":1,"tags":{"host":"a"}}`,
	} {
		f(point, failed)
	}
	if a := b.get("/api/suggest?type=metrics"); a.body != "[]" {
		t.Errorf("want no metric, got %s", a.body)
	}
}

// A body that is too large gets 413 or is cut, costs a bounded amount of memory, and the gateway
// goes on.
func TestPut_tooMuch(t *testing.T) {
	b := open(t, nil)
	var bomb bytes.Buffer
	z, _ := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	if _, err := io.Copy(z, repeated(strings.Repeat(" ", 1<<16), 1<<14)); err != nil { // 1 GiB
		t.Fatal(err)
	}
	z.Close()
	points := repeated(goodPoint+",", 1_500_000) // 100 MB
	for name, try := range map[string]func() (answer, error){
		"100 MB of points": func() (answer, error) {
			return b.try(t.Context(), http.MethodPost, "/api/put", io.MultiReader(strings.NewReader("["), points))
		},
		"100 MB of blanks": func() (answer, error) {
			return b.try(t.Context(), http.MethodPost, "/api/query", repeated(" ", 100<<20))
		},
		"10 M elements": func() (answer, error) {
			return b.try(t.Context(), http.MethodPost, "/api/put", io.MultiReader(strings.NewReader("["), repeated("{},", 10_000_000), strings.NewReader("{}]")))
		},
		"gzip bomb put": func() (answer, error) {
			return b.try(t.Context(), http.MethodPost, "/api/put", bytes.NewReader(bomb.Bytes()), "Content-Encoding", "gzip")
		},
		"gzip bomb query": func() (answer, error) {
			return b.try(t.Context(), http.MethodPost, "/api/query", bytes.NewReader(bomb.Bytes()), "Content-Encoding", "gzip")
		},
		"gzip bomb suggest": func() (answer, error) {
			return b.try(t.Context(), http.MethodPost, "/api/suggest", bytes.NewReader(bomb.Bytes()), "Content-Encoding", "gzip")
		},
	} {
		before := allocated()
		a, err := try()
		if err == nil { // else the server cut us off while we were still writing
			b.refused(a, 413, "ore than")
		}
		if grown := allocated() - before; grown > 256<<20 {
			t.Errorf("%s: %d MiB were allocated, want 256 at most", name, grown>>20)
		}
		if a := b.post("/api/put", goodPoint); a.status != 204 {
			t.Errorf("after %s: %d %s", name, a.status, a.body)
		}
	}
}

// allocated counts every byte ever allocated: an upper bound of what is held.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
