package querylog

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"downpour/gateway/query"
	"downpour/gateway/query/trace"
	"downpour/pushdown/process/heap/heaptest"
)

// The log keeps the newest completed queries, within maxCompletedBytes, however long they are.
func TestLog_bytes(t *testing.T) {
	var l Log
	now := time.Unix(1356998400, 0)
	before := heaptest.InUse()
	for i := range 60 {
		metric := strings.Repeat("m", 200<<10) + fmt.Sprint(i)
		parser := query.Parser{Now: now}
		q, err := parser.JSON(fmt.Appendf(nil,
			`{"start":1,"queries":[{"aggregator":"sum","metric":%q,"tags":{"k":%q}}]}`, metric,
			strings.Repeat("v", 200<<10)))
		if err != nil {
			t.Fatal(err)
		}
		e := l.Begin(httptest.NewRequest("POST", "/api/query", nil), q, nil, now)
		e.Stats.Trace = &trace.Node{Name: strings.Repeat("t", 1<<20)}
		l.Finish(e, 400, fmt.Errorf("no such name %s", metric), now)
		if l.bytes > maxCompletedBytes || len(l.completed) == 0 || l.completed[len(l.completed)-1] != e {
			t.Fatalf("the log has %d queries of %d bytes after query %d, want the newest, within its limit",
				len(l.completed), l.bytes, i)
		}
	}
	if grown := heaptest.InUse() - before; grown > maxCompletedBytes*3/2 {
		t.Errorf("%d bytes are held, want %d at most", grown, maxCompletedBytes)
	}
	for len(l.completed) > 0 { // the log's sum is that of its queries
		l.bytes -= l.completed[0].bytes
		l.completed = l.completed[1:]
	}
	if l.bytes != 0 {
		t.Errorf("%d bytes are left without queries, want 0", l.bytes)
	}
}

// The time of a slow query is text that people read, in either form of the log.
func TestSlow_took(t *testing.T) {
	for _, form := range []struct {
		handler func(io.Writer) slog.Handler
		want    string
	}{
		{func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) }, ` took=1.53s `},
		{func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) }, `"took":"1.53s"`},
	} {
		var out bytes.Buffer
		l := Log{Slow: Slow{From: time.Second, Log: slog.New(form.handler(&out))}}
		now := time.Unix(1356998400, 0)
		q, err := (&query.Parser{Now: now}).JSON([]byte(`{"start":1,"queries":[{"aggregator":"sum","metric":"m"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		l.Finish(l.Begin(httptest.NewRequest("GET", "/api/query", nil), q, nil, now), 200, nil,
			now.Add(1530*time.Millisecond))
		if !strings.Contains(out.String(), form.want) {
			t.Errorf("got %s, want%s", out.String(), form.want)
		}
	}
}

// A query that is repeated counts at the first one that ended with the same status, and at no other.
func TestLog_repetitions(t *testing.T) {
	var l Log
	now := time.Unix(1356998400, 0)
	q, err := (&query.Parser{Now: now}).JSON([]byte(`{"start":1,"queries":[{"aggregator":"sum","metric":"m"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{200, 504, 200} {
		l.Finish(l.Begin(httptest.NewRequest("GET", "/api/query", nil), q, nil, now), status, nil, now)
	}
	if n := len(l.completed); n != 2 || l.completed[0].executed != 2 || l.completed[1].executed != 1 {
		t.Errorf("200, 504 and 200: %d entries, want the first twice and the second once", n)
	}
}
