package gateway_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway"
	"downpour/pushdown/store"
)

// earlyStore gives version tokens before they are proven, as HBase does. Once it is
// stale it gives the old tokens, whose proofs fail.
type earlyStore struct {
	gateway.Store
	tokens sync.Map // by table, family and start of the range
	stale  atomic.Bool
	failed atomic.Int64 // proofs that failed
	early  atomic.Int64 // proofs that succeeded
}

func (s *earlyStore) Features() store.Features { return store.Features{Versioner: s} }

func (s *earlyStore) Version(
	ctx context.Context, table, family string, r store.KeyRange,
) (string, func() error, error) {
	key := table + family + string(r.Start)
	if s.stale.Load() {
		token, _ := s.tokens.LoadOrStore(key, "")
		return token.(string), func() error { s.failed.Add(1); return errors.New("the region was opened again") }, nil
	}
	token, _, err := s.Store.Features().Versioner.Version(ctx, table, family, r)
	s.tokens.Store(key, token)
	return token, func() error { s.early.Add(1); return nil }, err
}

// An answer from the result cache whose version token cannot be proven is not sent: the rows are
// read instead. That holds for an answer with an ETag, which is held back, and for one without.
//
//fault:sent-before-proven proofs.Wait() => error(nil)
func TestQuery_unproven(t *testing.T) {
	for _, end := range []string{"1357000000", "4000000000"} {
		cfg := config(0)
		cfg.ResultCache = "1048576"
		st := &earlyStore{Store: memoryStore(t, cfg)}
		b := serve(t, cfg, st)
		b.Put("m 1356998400 1 host=a")
		query := "/api/query?start=1356998400&m=sum:5m-sum:m&end=" + end
		for range 4 {
			if a := b.Get(query); !strings.Contains(a.Body, `"1356998400":1`) {
				t.Fatalf("%d %s, want the value 1", a.Status, a.Body)
			}
		}

		b.Put("m 1356998401 2 host=a")
		st.stale.Store(true)
		if a := b.Get(query); a.Err != nil || a.Status != 200 || !strings.Contains(a.Body, `"1356998400":3`) ||
			strings.Count(a.Body, "[{") != 1 {
			t.Errorf("until %s: %d %s, error %v, want the value 3 alone", end, a.Status, a.Body, a.Err)
		}
		// One proof of the whole answer, one before the parts are requested, one of each part.
		if n := st.failed.Load(); n < 3 {
			t.Errorf("until %s: %d proofs failed, want 3 or more: the answer was not in the result cache", end, n)
		}
	}
}

// A small answer from the result cache is compressed while its version token is proven. Its header
// and body are those of an answer that is compressed as it is sent. A client that accepts no
// compression gets it plain.
func TestQuery_compressedAhead(t *testing.T) {
	cfg := config(0)
	cfg.ResultCache = "1048576"
	st := &earlyStore{Store: memoryStore(t, cfg)}
	b := serve(t, cfg, st)
	for i := range 200 {
		b.Put(fmt.Sprintf("m %d %d host=a", 1356998400+i, i*i))
	}
	query := "/api/query?start=1356998400&m=sum:1s-sum:m&end=1357000000"
	header := func(a answer) http.Header {
		h := a.Header.Clone()
		h.Del("Date")
		h.Del("Content-Length")
		h.Del("X-Request-Id")
		return h
	}

	first, plain := b.Get(query, "Accept-Encoding", "gzip"), b.Get(query, "Accept-Encoding", "identity")
	if len(plain.Body) < 2000 || len(first.Body) > len(plain.Body)/2 {
		t.Fatalf("%d bytes, compressed %d: want 2000 or more, and half of them compressed",
			len(plain.Body), len(first.Body))
	}
	for range 4 {
		a := b.Get(query, "Accept-Encoding", "gzip")
		if diff := cmp.Diff(header(first), header(a)); diff != "" {
			t.Errorf("header (-at first +from the result cache):\n%s", diff)
		}
		r, err := gzip.NewReader(strings.NewReader(a.Body))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(r); err != nil || string(body) != plain.Body {
			t.Errorf("%v, body %.100s, want %.100s", err, body, plain.Body)
		}
		p := b.Get(query, "Accept-Encoding", "identity")
		if p.Body != plain.Body || p.Header.Get("Content-Encoding") != "" {
			t.Errorf("plain: %v %.100s", p.Header, p.Body)
		}
		n := b.Get(query, "Accept-Encoding", "gzip", "If-None-Match", first.Header.Get("ETag"))
		if n.Status != http.StatusNotModified || n.Body != "" || n.Header.Get("Content-Encoding") != "" {
			t.Errorf("known to the client: %d %v, %d bytes, want 304", n.Status, n.Header, len(n.Body))
		}
	}
	if st.early.Load() == 0 {
		t.Error("no answer came from the result cache before its proof")
	}
}

// If an answer was compressed and its proof then fails, neither its body nor its header is sent.
func TestQuery_unprovenCompressed(t *testing.T) {
	cfg := config(0)
	cfg.ResultCache = "1048576"
	st := &earlyStore{Store: memoryStore(t, cfg)}
	b := serve(t, cfg, st)
	for i := range 200 {
		b.Put(fmt.Sprintf("m %d %d host=a", 1356998400+i, i*i))
	}
	query := "/api/query?start=1356998400&m=sum:1s-sum:m&end=1357000000"
	old := b.Get(query, "Accept-Encoding", "gzip").Header.Get("ETag")
	for range 3 {
		b.Get(query, "Accept-Encoding", "gzip")
	}

	b.Put("m 1356998400 77777 host=b")
	st.stale.Store(true)
	a := b.Get(query, "Accept-Encoding", "gzip")
	r, err := gzip.NewReader(strings.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(body), `"1356998400":77777`) || strings.Count(string(body), "[{") != 1 {
		t.Errorf("%v, %.200s, want the value 77777", err, body)
	}
	tag, encodings := a.Header.Get("ETag"), a.Header.Values("Content-Encoding")
	if tag == old || len(encodings) != 1 || st.failed.Load() == 0 {
		t.Errorf("tag %s, as before: %t, want another; encodings %q, want one; %d proofs failed, want some",
			tag, tag == old, encodings, st.failed.Load())
	}
}

// A cached answer that exceeds a limit is not refused before its version token is proven: if rows
// have changed, they are read, and the new answer counts.
func TestQuery_unprovenError(t *testing.T) {
	cfg := config(0)
	cfg.ResultCache, cfg.LimitJSON, cfg.AllowDelete = "1048576", 3, true
	st := &earlyStore{Store: memoryStore(t, cfg)}
	b := serve(t, cfg, st)
	query := "/api/query?start=1356998400&end=1356998500"
	for _, m := range []string{"one", "other"} { // each has fewer points than an answer may have
		b.Put(m + " 1356998400 1 host=a")
		b.Put(m + " 1356998401 1 host=a")
		for range 4 {
			if a := b.Get(query + "&m=sum:" + m); a.Status != 200 {
				t.Fatalf("got %d %s, want 200", a.Status, a.Body)
			}
		}
	}
	both := query + "&m=sum:one&m=sum:other"
	if a := b.Get(both); a.Status != http.StatusRequestEntityTooLarge {
		t.Fatalf("four points: %d %s, want 413", a.Status, a.Body)
	}

	if a := b.Get(query + "&m=sum:other&method_override=delete"); a.Status != 200 {
		t.Fatalf("delete: %d %s", a.Status, a.Body)
	}
	st.stale.Store(true)
	if a := b.Get(both); a.Status != 200 || !strings.Contains(a.Body, `"1356998401":1`) ||
		strings.Contains(a.Body, "other") {
		t.Errorf("two points are left: %d %s", a.Status, a.Body)
	}
}
