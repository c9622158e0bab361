package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"downpour/gateway"
)

// A max that is not positive is ignored, as in OpenTSDB.
func TestSuggest_max(t *testing.T) {
	b := open(t, nil)
	var lines []string
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("m%02d 1356998400 1 host=a", i))
	}
	b.put(lines...)

	for max, want := range map[string]int{"0": 25, "-1": 25, "28": 28, "2147483647": 30} {
		var names []string
		a := b.get("/api/suggest?type=metrics&q=m&max=" + max)
		if err := json.Unmarshal([]byte(a.body), &names); err != nil || a.status != 200 || len(names) != want {
			t.Errorf("max=%s: %d, %d names, want 200 and %d", max, a.status, len(names), want)
		}
	}
	b.refused(b.get("/api/suggest?type=metrics&max=2147483648"), 400, "Unable to parse 'max' as a number")
}

// A bulk deletion with an empty UID fails with the same text as message and as details, as OpenTSDB
// answers errors of deletions.
func TestBulkDelete_emptyUID(t *testing.T) {
	b := open(t, nil)
	a := b.do("DELETE", "/api/annotation/bulk?start_time=1356998400&tsuids=", nil)
	b.refused(a, 400, "UID was empty")
	var body struct{ Error struct{ Details string } }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || body.Error.Details != "UID was empty" {
		t.Errorf("details: %s", a.body)
	}
}

// /logs returns what the gateway has logged, as text and as a list, and refuses to set a level.
func TestLogs(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.AllowDelete = true })
	b.put("m 1356998400 1 host=a")
	if a := b.do("DELETE", "/api/query?start=1356998400&end=1356998401&m=sum:m", nil); a.status != 200 {
		t.Fatalf("deletion: got %d %s, want 200", a.status, a.body)
	}
	a := b.get("/logs")
	if a.status != 200 || !strings.Contains(a.body, "\tINFO\tmain\tdownpour\ta query deleted what it read rows=1") {
		t.Errorf("/logs: got %d %s, want the log line of the deletion", a.status, a.body)
	}
	var lines []string
	if err := json.Unmarshal([]byte(b.get("/logs?json").body), &lines); err != nil || strings.Join(lines, "\n")+"\n" != a.body {
		t.Errorf("%v: as a list %q, as text %q", err, lines, a.body)
	}
	b.refused(b.get("/logs?level=DEBUG"), 400, "not set by a request")
	if a := b.get("/s/"); a.status != 404 {
		t.Errorf("/s/: %d, want 404", a.status)
	}
}
