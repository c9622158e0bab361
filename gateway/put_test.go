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

	"downpour/gateway/gatewaytest"
)

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
		// Without a length: chunked.
		if a := b.Do(http.MethodPost, "/api/put", io.MultiReader(&body), header...); a.Status != 204 {
			t.Errorf("%v: %d %s", header, a.Status, a.Body)
		}
	}
	plain := func(w io.Writer) io.WriteCloser { return nopCloser{w} }
	for _, kind := range []string{
		"", "application/json", "application/x-www-form-urlencoded", "text/plain", "applicaton/json", "x",
		"application/json; charset=latin1",
	} {
		f(plain, "Content-Type", kind)
	}
	f(plain, "Content-Encoding", "identity")
	f(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, "Content-Encoding", "gzip")
	f(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, "Content-Encoding", "X-GZIP")
	f(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, "Content-Encoding", "deflate")
	f(func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 9); return z }, "Content-Encoding", "deflate")
	want := fmt.Sprint(at - 1356998400)
	a := b.Get("/api/query?start=1356998400&end=1356999000&m=sum:10m-count:m")
	if !strings.Contains(a.Body, `{"1356998400":`+want+`.0}`) {
		t.Errorf("stored: %s, want %s points", a.Body, want)
	}
	b.Refused(b.Post("/api/put", gatewaytest.GoodPoint, "Content-Encoding", "br"), 400,
		"Unsupported Content-Encoding: br")
	b.Refused(b.Post("/api/put", gatewaytest.GoodPoint, "Content-Encoding", "gzip"), 400,
		"Unable to decode the gzip body")
	b.Refused(b.Post("/api/put", "\x78\x9c\x00", "Content-Encoding", "deflate"), 400, "Unable to read the request body")
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Bodies whose names, numbers or nesting are very long are refused as short ones are, and store nothing. The story
// put_bad_bodies has those.
func TestPut_longBodies(t *testing.T) {
	b := open(t, nil)
	f := func(body, message string) {
		t.Helper()
		b.Refused(b.Post("/api/put", body), 400, message)
	}
	for _, body := range []string{
		strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000),
		`{"metric":` + strings.Repeat("[", 100_000),
	} {
		f(body, "Unable to parse the given JSON")
	}
	for _, point := range []string{
		`{"metric":"m","timestamp":` + strings.Repeat("9", 10_000) + `,"value":1,"tags":{"host":"a"}}`,
		`{"metric":"m","timestamp":1356998400,"value":` + strings.Repeat("9", 10_000) + `,"tags":{"host":"a"}}`,
		`{"metric":"` + strings.Repeat("m", 70_000) + `","timestamp":1356998400,"value":1,"tags":{"host":"a"}}`,
	} {
		f(point, "One or more data points had errors")
	}
	if a := b.Get("/api/suggest?type=metrics"); a.Body != "[]" {
		t.Errorf("want no metric, got %s", a.Body)
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
	points := repeated(gatewaytest.GoodPoint+",", 1_500_000) // 100 MB
	for name, try := range map[string]func() (answer, error){
		"100 MB of points": func() (answer, error) {
			return b.Try(t.Context(), http.MethodPost, "/api/put", io.MultiReader(strings.NewReader("["), points))
		},
		"100 MB of blanks": func() (answer, error) {
			return b.Try(t.Context(), http.MethodPost, "/api/query", repeated(" ", 100<<20))
		},
		"10 M elements": func() (answer, error) {
			return b.Try(t.Context(), http.MethodPost, "/api/put",
				io.MultiReader(strings.NewReader("["), repeated("{},", 10_000_000), strings.NewReader("{}]")))
		},
		"gzip bomb put": func() (answer, error) {
			return b.Try(t.Context(), http.MethodPost, "/api/put", bytes.NewReader(bomb.Bytes()),
				"Content-Encoding", "gzip")
		},
		"gzip bomb query": func() (answer, error) {
			return b.Try(t.Context(), http.MethodPost, "/api/query", bytes.NewReader(bomb.Bytes()),
				"Content-Encoding", "gzip")
		},
		"gzip bomb suggest": func() (answer, error) {
			return b.Try(t.Context(), http.MethodPost, "/api/suggest", bytes.NewReader(bomb.Bytes()),
				"Content-Encoding", "gzip")
		},
	} {
		before := allocated()
		a, err := try()
		if err == nil { // else the server cut us off while we were still writing
			b.Refused(a, 413, "ore than")
		}
		if grown := allocated() - before; grown > 256<<20 {
			t.Errorf("%s: %d MiB were allocated, want 256 at most", name, grown>>20)
		}
		if a := b.Post("/api/put", gatewaytest.GoodPoint); a.Status != 204 {
			t.Errorf("after %s: %d %s", name, a.Status, a.Body)
		}
	}
}

// allocated counts every byte ever allocated: an upper bound of what is held.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
