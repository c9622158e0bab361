package query

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"downpour/integration/conformance"
)

// Every recorded query is parsed, or refused with the status and message that OpenTSDB gave. A
// query that OpenTSDB refused only when it ran it is parsed, and RunError has the error where the
// parser knows it.
func TestConformance_parse(t *testing.T) {
	atRun := map[string]bool{"Got Infinity: Infinity": true, "No such name for 'metrics': 'x.none'": true}
	refused := 0
	for _, name := range conformance.Queries() {
		r, err := conformance.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		queries := r.Queries
		if len(queries) < 249 {
			t.Errorf("%s has %d queries, want at least 249", name, len(queries))
		}
		for _, c := range queries {
			wantStatus, want := 200, ""
			if c.Status != 200 {
				var r struct{ Error struct{ Message string } }
				if err := json.Unmarshal(c.Response, &r); err != nil {
					t.Fatal(err)
				}
				if wantStatus, want = c.Status, r.Error.Message; atRun[want] {
					wantStatus, want = 200, ""
				}
			}
			status, got := outcome(c.Request)
			if status != wantStatus || got != want {
				t.Errorf("%s: %s\n%d %s, want %d %s", name, c.Request, status, got, wantStatus, want)
			}
			if status != 200 {
				refused++
			}
		}
	}
	if refused != 69 { // the queries of the recordings that are refused, so that none is missed
		t.Errorf("%d queries refused, want 69", refused)
	}
}

// outcome parses a query and returns its error, or that of a sub-query when it is run, or 200.
func outcome(body []byte) (status int, message string) {
	q, err := Parser{Now: time.Unix(1.7e9, 0)}.JSON(body)
	var e *Error
	if errors.As(err, &e) {
		return e.Status, e.Message
	}
	for i := range q.Queries {
		if e := q.Queries[i].RunError; e != nil {
			return e.Status, e.Message
		}
	}
	return 200, ""
}
