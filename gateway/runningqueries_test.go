package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"downpour/gateway/gatewaytest"
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

func queriesOf(b *bench) (s statsQuery) {
	b.Helper()
	a := b.Get("/api/stats/query")
	if err := json.Unmarshal([]byte(a.Body), &s); err != nil || s.Running == nil || s.Completed == nil {
		b.Fatalf("%v: %s", err, a.Body)
	}
	return s
}

// A query is listed while it runs and after it has ended, with success or not. Repeated queries are
// counted, tokens are hidden, and the newest 256 queries are kept.
func TestRunningQueries(t *testing.T) {
	b := open(t, nil)
	queriesOf(b) // two empty lists
	b.Put("m 1356998400 1 host=a", "m 1356998401 1 host=a")
	b.Store.Set(faultstore.Rule{Op: faultstore.Next, Table: "tsdb", Delay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := b.Try(ctx, "GET", gatewaytest.PastQuery, nil,
			"Authorization", "Bearer secret-0123456789", "X-Mine", "1")
		gone <- err
	}()
	var s statsQuery
	eventually(t, "the query is listed", func() bool { s = queriesOf(b); return len(s.Running) == 1 })
	r := s.Running[0]
	if r.Query.Start != "1356998400" || len(r.Query.Queries) != 1 || r.Query.Queries[0].Metric != "m" ||
		!strings.HasPrefix(r.Remote, "127.0.0.1:") || r.Headers["X-Mine"] != "1" ||
		r.Headers["Authorization"] != "***" || r.QueryStart == 0 || r.Elapsed <= 0 {
		t.Errorf("running: %+v", r)
	}
	cancel()
	<-gone
	eventually(t, "the query has ended", func() bool {
		s = queriesOf(b)
		return len(s.Running) == 0 && len(s.Completed) == 1
	})
	if c := s.Completed[0]; c.SentToClient || c.Exception == "null" || c.HTTPResponse.Code == 200 {
		t.Errorf("a client that left: got %+v, want an exception and nothing sent", c)
	}

	b.Store.Set()
	b.Get(gatewaytest.PastQuery)
	b.Get(gatewaytest.PastQuery)
	b.Get(strings.Replace(gatewaytest.PastQuery, "sum:m", "sum:unknown", 1))
	s = queriesOf(b)
	var good, bad int
	for _, c := range s.Completed[1:] {
		switch c.HTTPResponse.Code {
		case 200:
			good += c.Executed
			if c.Exception != "null" || !c.SentToClient || c.HTTPResponse.ReasonPhrase != "OK" ||
				c.Stats["emittedDPs"] != 2 || c.Stats["dpsPreFilter"] != 2 || c.Stats["rowsFromStorage"] != 1 ||
				c.Stats["bytesFromStorage"] == 0 || c.Stats["totalTime"] <= 0 ||
				c.QueryCompletedTimestamp < c.QueryStartTimestamp {
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
		b.Get(fmt.Sprintf("%s&x=%d", gatewaytest.PastQuery, i))
	}
	if n := len(queriesOf(b).Completed); n != 256 {
		t.Errorf("%d completed queries are kept, want 256", n)
	}
}
