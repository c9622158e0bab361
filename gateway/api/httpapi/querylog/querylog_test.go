package querylog

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"downpour/gateway/query"
	"downpour/gateway/query/engine"
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
		q, err := parser.JSON(fmt.Appendf(nil, `{"start":1,"queries":[{"aggregator":"sum","metric":%q,"tags":{"k":%q}}]}`, metric, strings.Repeat("v", 200<<10)))
		if err != nil {
			t.Fatal(err)
		}
		e := l.Begin(httptest.NewRequest("POST", "/api/query", nil), q, now)
		e.Stats.Trace = &engine.Node{Name: strings.Repeat("t", 1<<20)}
		l.Finish(e, 400, fmt.Errorf("no such name %s", metric), now)
		if l.bytes > maxCompletedBytes || len(l.completed) == 0 || l.completed[len(l.completed)-1] != e {
			t.Fatalf("the log has %d queries of %d bytes after query %d, want the newest, within its limit", len(l.completed), l.bytes, i)
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
