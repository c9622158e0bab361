package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/pushdown/process/heap/heaptest"
)

// Spellings of a put with very many blanks, and names that are too long, are not kept in memory.
func TestPut_longSpellings(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { cfg.LimitName = 1024 })
	const blanks, names = 10, 200
	b.Put("m 1356998400 1 k=v")
	before := inUse()
	for i := range blanks {
		body := `{"metric":"m","timestamp":1356998400,"value":1,"tags":{"k":` +
			strings.Repeat(" ", 8_000_000-i) + `"v"}}`
		if a := b.Post("/api/put", body); a.Status != http.StatusNoContent {
			t.Fatalf("put: got %d %.200s, want 204", a.Status, a.Body)
		}
	}
	for i := range names {
		long := fmt.Sprintf("%s%d", strings.Repeat("n", 30_000), i)
		a := b.Post("/api/put?details",
			fmt.Sprintf(`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"k":%q}}`, long))
		if a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "DOWNPOUR_LIMIT_NAME") {
			t.Fatalf("put of a long name: got %d %.200s, want 400 that names DOWNPOUR_LIMIT_NAME", a.Status, a.Body)
		}
	}
	grown := inUse() - before
	t.Logf("%d KiB are held", grown>>10)
	if grown > 16<<20 {
		t.Errorf("%d MiB are held, want 16 at most", grown>>20)
	}
	tooLong := strings.Repeat("n", 1025)
	a := b.Post("/api/uid/assign", fmt.Sprintf(`{"metric":[%q]}`, tooLong))
	if a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "at most 1024") {
		t.Errorf("assigned: %d %.200s", a.Status, a.Body)
	}
	b.Refused(b.Post("/api/uid/rename", `{"metric":"m","tagk":"a","name":"n"}`), http.StatusBadRequest,
		"got those of a metric and a tagk")
	b.Refused(b.Get("/api/uid/rename?tagv=b&metric=m&name=n"), http.StatusBadRequest,
		"got those of a metric and a tagv")
	a = b.Post("/api/uid/rename", fmt.Sprintf(`{"metric":"m","name":%q}`, tooLong))
	if a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "at most 1024") {
		t.Errorf("renamed: %d %.200s", a.Status, a.Body)
	}
	if a := b.Get("/api/query?start=1356998400&end=1356998401&m=sum:m"); !strings.Contains(a.Body, `"1356998400":1`) {
		t.Errorf("got %d %s, want the point", a.Status, a.Body)
	}
}

// inUse returns the bytes in use on the heap, without those of idle connections.
func inUse() int64 {
	http.DefaultClient.CloseIdleConnections()
	return heaptest.InUse()
}

// A request to /api/query/last may have as many sub-queries as a query: 64 by default.
func TestQueryLast_subQueries(t *testing.T) {
	b := open(t, nil)
	b.Put(fmt.Sprintf("m %d 1 k=v", time.Now().Unix()))
	body := func(n int) string {
		return `{"queries":[` + strings.TrimSuffix(strings.Repeat(`{"metric":"m"},`, n), ",") + `]}`
	}
	a := b.Post("/api/query/last", body(64))
	if a.Status != http.StatusOK || strings.Count(a.Body, `"value":"1"`) != 64 {
		t.Errorf("64: %d %.300s", a.Status, a.Body)
	}
	b.Refused(b.Post("/api/query/last", body(65)), http.StatusRequestEntityTooLarge,
		"Too many sub queries: 65, at most 64")
	b.Refused(b.Get("/api/query/last?timeseries=m"+strings.Repeat("&tsuids=000001000001000001", 64)),
		http.StatusRequestEntityTooLarge, "Too many sub queries: 65, at most 64")
}
