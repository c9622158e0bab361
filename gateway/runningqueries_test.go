package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/store/faultstore"
)

// statsQuery is what /api/stats/query answers.
type statsQuery struct {
	Running []struct {
		Query struct {
			Start   string
			Queries []struct{ Aggregator, Metric string }
		}
		Remote     string
		User       *string
		Headers    map[string]string
		QueryStart int64
		Elapsed    float64
	}
	Completed []struct {
		Query        struct{ Queries []struct{ Metric string } }
		Exception    string
		Executed     int
		HTTPResponse struct {
			Code         int
			ReasonPhrase string
		}
		RequestHeaders                               map[string]string
		QueryStartTimestamp, QueryCompletedTimestamp int64
		NumRunningQueries                            int
		SentToClient                                 bool
		Stats                                        map[string]float64
	}
}

func (b *bench) statsQuery() (s statsQuery) {
	b.Helper()
	a := b.get("/api/stats/query")
	if err := json.Unmarshal([]byte(a.body), &s); err != nil || s.Running == nil || s.Completed == nil {
		b.Fatalf("%v: %s", err, a.body)
	}
	return s
}

// A query is listed while it runs and after it has ended, with success or not. Repeated queries are
// counted, tokens are hidden, and the newest 256 queries are kept.
func TestRunningQueries(t *testing.T) {
	b := open(t, nil)
	b.statsQuery() // two empty lists
	b.put("m 1356998400 1 host=a", "m 1356998401 1 host=a")
	b.store.set(faultstore.Rule{Op: faultstore.Next, Table: "tsdb", Delay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := b.try(ctx, "GET", pastQuery, nil, "Authorization", "Bearer secret-0123456789", "X-Mine", "1")
		gone <- err
	}()
	var s statsQuery
	eventually(t, "the query is listed", func() bool { s = b.statsQuery(); return len(s.Running) == 1 })
	r := s.Running[0]
	if r.Query.Start != "1356998400" || len(r.Query.Queries) != 1 || r.Query.Queries[0].Metric != "m" || !strings.HasPrefix(r.Remote, "127.0.0.1:") ||
		r.Headers["X-Mine"] != "1" || r.Headers["Authorization"] != "***" || r.QueryStart == 0 || r.Elapsed <= 0 {
		t.Errorf("running: %+v", r)
	}
	cancel()
	<-gone
	eventually(t, "the query has ended", func() bool { s = b.statsQuery(); return len(s.Running) == 0 && len(s.Completed) == 1 })
	if c := s.Completed[0]; c.SentToClient || c.Exception == "null" || c.HTTPResponse.Code == 200 {
		t.Errorf("a client that left: got %+v, want an exception and nothing sent", c)
	}

	b.store.set()
	b.get(pastQuery)
	b.get(pastQuery)
	b.get(strings.Replace(pastQuery, "sum:m", "sum:unknown", 1))
	s = b.statsQuery()
	var good, bad int
	for _, c := range s.Completed[1:] {
		switch c.HTTPResponse.Code {
		case 200:
			good += c.Executed
			if c.Exception != "null" || !c.SentToClient || c.HTTPResponse.ReasonPhrase != "OK" || c.Stats["emittedDPs"] != 2 || c.Stats["dpsPreFilter"] != 2 ||
				c.Stats["rowsFromStorage"] != 1 || c.Stats["bytesFromStorage"] == 0 || c.Stats["totalTime"] <= 0 || c.QueryCompletedTimestamp < c.QueryStartTimestamp {
				t.Errorf("completed: %+v", c)
			}
		case 400:
			bad++
			if !strings.Contains(c.Exception, "No such name") || c.SentToClient {
				t.Errorf("failed: %+v", c)
			}
		}
	}
	if good != 2 || bad != 1 {
		t.Errorf("%d good and %d bad, want 2 and 1: %+v", good, bad, s.Completed)
	}
	for i := range 300 {
		b.get(fmt.Sprintf("%s&x=%d", pastQuery, i))
	}
	if n := len(b.statsQuery().Completed); n != 256 {
		t.Errorf("%d completed queries are kept, want 256", n)
	}
}
