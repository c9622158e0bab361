package extra_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"downpour/gateway"
	"downpour/gateway/extra/opspage/opsroutes"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store/faultstore"
)

// report is what /api/ops answers.
func report(b *bench, header ...string) (r opsroutes.Report) {
	b.Helper()
	a := b.Get("/api/ops", header...)
	if err := json.Unmarshal([]byte(a.Body), &r); err != nil || a.Status != http.StatusOK {
		b.Fatalf("%d, %v: %s", a.Status, err, a.Body)
	}
	return r
}

// hanging asks a query whose scan hangs after its first rows, and returns its answer, once it has
// one, and the query as it is listed.
func hanging(b *bench, path string, header ...string) (<-chan answer, opsroutes.Running) {
	b.Helper()
	b.Store.Set(faultstore.Rule{Op: faultstore.Next, Table: "tsdb", Delay: time.Hour})
	got := make(chan answer, 1)
	go func() {
		a, err := b.Try(b.Context(), "GET", path, nil, header...)
		a.Err = err
		got <- a
	}()
	var all []opsroutes.Running
	eventually(b.T, "the query is listed", func() bool {
		all = report(b, header...).Queries.Running
		return len(all) == 1
	})
	return got, all[0]
}

// A running query is listed with who sent it and what it has cost, and an operator can end it: its
// client learns who ended it, and is not at fault. This holds for routes that answer in other forms, too.
func TestOps_ending(t *testing.T) {
	tokens := gatewaytest.WriteTokens(t,
		"admin operator-0123456789 alice\nread reader-0123456789 bob\nwrite writer-0123456789\n")
	b := open(t, func(c *gateway.Config) { c.TokenFile = tokens })
	admin := []string{"Authorization", "Bearer operator-0123456789"}
	reader := []string{"Authorization", "Bearer reader-0123456789"}
	if a := b.Post("/api/put", `{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"}}`,
		"Authorization", "Bearer writer-0123456789"); a.Status != http.StatusNoContent {
		t.Fatalf("put: %d %s", a.Status, a.Body)
	}
	b.Refused(b.Get("/api/ops", reader...), http.StatusForbidden, "Forbidden")
	const inJSON, expression = `"message":"The query was ended by alice"`, "&exp=scale(sum:m,2)"
	for path, want := range map[string]string{
		gatewaytest.PastQuery:                                          inJSON,
		"/q?start=1356998400&end=1357002000&m=sum:m&json":              "The query was ended by alice",
		"/api/query/gexp?start=1356998400&end=1357002000" + expression: inJSON,
	} {
		b.Store.Set(faultstore.Rule{Op: faultstore.Next, Table: "tsdb", Delay: time.Hour})
		got := make(chan answer, 1)
		go func() {
			a, err := b.Try(t.Context(), "GET", path, nil, reader...)
			a.Err = err
			got <- a
		}()
		var all []opsroutes.Running
		eventually(t, "the query is listed", func() bool {
			all = report(b, admin...).Queries.Running
			return len(all) == 1
		})
		q := all[0]
		if q.Token != "bob" || !strings.HasPrefix(q.Client, "127.0.0.1:") ||
			!strings.Contains(q.Query, `"metric":"m"`) || !strings.HasPrefix(path, q.Route) || q.EndedBy != "" ||
			q.Start == 0 {
			t.Errorf("%s: listed as %+v", path, q)
		}
		b.Refused(b.Do("DELETE", "/api/ops/queries/"+q.ID, nil, reader...), http.StatusForbidden, "Forbidden")
		if a := b.Do("DELETE", "/api/ops/queries/"+strings.ToUpper(q.ID), nil,
			append(admin, "X-Request-Id", "ending")...); a.Status != http.StatusOK ||
			a.Body != `{"id":"`+q.ID+`","state":"ending"}` {
			t.Errorf("%s: ended with %d %s", path, a.Status, a.Body)
		}
		if a := <-got; a.Status != http.StatusConflict || !strings.Contains(a.Body, want) {
			t.Errorf("%s: got %d %s, %v; want 409 and %s", path, a.Status, a.Body, a.Err, want)
		}
		eventually(t, "the query is gone", func() bool { return len(report(b, admin...).Queries.Running) == 0 })
		b.Refused(b.Do("DELETE", "/api/ops/queries/"+q.ID, nil, admin...), http.StatusGone,
			"is over: it has been answered, or was ended before")
		b.LogLine(`an administrative request method=DELETE path=/api/ops/queries/`, admin...)
	}
	b.Store.Set()
	if a := b.Get(gatewaytest.PastQuery, reader...); a.Status != http.StatusOK {
		t.Errorf("afterwards: %d %s, want an answer", a.Status, a.Body)
	}
	eventually(t, "scans closed", func() bool { return b.Store.Scans.Load() == 0 })

	instance, _, _ := strings.Cut(endedID(b, admin...), "-")
	for _, id := range []string{"x", "x-1", instance + "-999", instance + "-0", instance + "-", instance + "--1"} {
		b.Refused(b.Do("DELETE", "/api/ops/queries/"+id, nil, admin...), http.StatusNotFound,
			"This gateway has no query "+id)
	}
	for _, path := range []string{"/api/ops/queries/", "/api/ops/x", "/api/ops/queries/a/b"} {
		b.Refused(b.Do("DELETE", path, nil, admin...), http.StatusNotFound, "Endpoint not found")
	}
	b.Refused(b.Do("DELETE", "/api/ops", nil, admin...), http.StatusMethodNotAllowed, "Method not allowed")
	b.Refused(b.Get("/api/ops/queries/x-1", admin...), http.StatusMethodNotAllowed, "Method not allowed")
}

// endedID returns the id of a query that has hung and was ended.
func endedID(b *bench, admin ...string) string {
	b.Helper()
	got, q := hanging(b, gatewaytest.PastQuery, admin...)
	b.Do("DELETE", "/api/ops/queries/"+q.ID, nil, admin...)
	<-got
	b.Store.Set()
	return q.ID
}

// Other queries that wait for the same plan get their answers when one is ended.
func TestOps_endingOneOfEqual(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a")
	var hung atomic.Bool
	first := func(ctx context.Context) error { // the first scan hangs after its rows, the others do not
		if !hung.CompareAndSwap(false, true) {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	b.Store.After.Store(&first)
	ask := func() <-chan answer {
		got := make(chan answer, 1)
		go func() {
			a, err := b.Try(t.Context(), "GET", gatewaytest.PastQuery, nil)
			a.Err = err
			got <- a
		}()
		return got
	}
	ended := ask()
	eventually(t, "the scan hangs", hung.Load)
	others := []<-chan answer{ask(), ask()}
	id := report(b).Queries.Running[0].ID // the oldest is the first
	if a := b.Do("DELETE", "/api/ops/queries/"+id, nil); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	b.Refused(<-ended, http.StatusConflict, "The query was ended by an operator")
	for _, other := range others {
		if a := <-other; a.Status != http.StatusOK {
			t.Errorf("an equal query: %d %s, %v; want its answer", a.Status, a.Body, a.Err)
		}
	}
}

// The report has what was asked and put: by door, with reasons, of live queries, memory, caches,
// places and UIDs.
func TestOps_report(t *testing.T) {
	b := open(t, func(c *gateway.Config) { c.ResultCache = "16MiB" })
	b.Put("m 1356998400 1 host=a", "m 1356998401 2 host=b")
	if a := b.Post("/api/put?details", `[{"metric":"m","timestamp":1356998402,"value":3,"tags":{"host":"a"}},`+
		`{"metric":"m","timestamp":1356998402,"value":"x","tags":{"host":"a"}}]`); a.Status != http.StatusBadRequest {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	b.Get(gatewaytest.PastQuery)
	b.Get(strings.Replace(gatewaytest.PastQuery, "sum:m", "sum:unknown", 1))

	r := report(b)
	if len(r.Queries.Slowest) != 2 || len(r.Queries.Heaviest) != 2 || r.Queries.Heaviest[0].Points != 3 ||
		r.Queries.Heaviest[0].Status != 200 || r.Queries.Heaviest[1].Status != 400 ||
		!strings.Contains(r.Queries.Heaviest[1].Failure, "No such name") {
		t.Errorf("queries: %+v", r.Queries)
	}
	c := b.Dial()
	fmt.Fprint(c, "put nosuch.metric 1356998400 1\nstats\n")
	for line := range strings.Lines(c.Rest()) {
		for _, word := range strings.Fields(line)[1:] {
			if strings.HasPrefix(line, "downpour.") && strings.Count(word, "=") != 1 &&
				strings.ContainsAny(word, "abcdefghijklmnopqrstuvwxyz") {
				t.Errorf("the tag %q of the line %q of stats is none", word, line)
			}
		}
	}
	if p := r.Puts.Reasons; len(p) != 1 || p[0].Via != "/api/put" || p[0].Reason != "value" || p[0].Points != 1 {
		t.Errorf("refusals: %+v", p)
	}
	sum := func(list []int64) (n int64) {
		for _, v := range list {
			n += v
		}
		return n
	}
	// A second is shown once it is over.
	eventually(t, "the points by second", func() bool {
		p := report(b).Puts
		return sum(p.Telnet) == 2 && sum(p.HTTP) == 1 && sum(p.Refused) == 2
	})
	if len(r.UIDs) != 3 || r.UIDs[0].Kind != "metrics" || r.UIDs[0].Used != 1 || r.UIDs[2].Used != 2 ||
		r.UIDs[0].Most != 1<<24-1 {
		t.Errorf("UIDs: %+v, %s", r.UIDs, r.UIDsFailed)
	}
	if l := r.Places.List; len(l) != 1 || l[0].Address != "in-process" || l[0].Parts == 0 || l[0].Bytes == 0 {
		t.Errorf("places: %+v", l)
	}
	if r.Memory.Limit == 0 || len(r.Memory.Held) != 4 || r.Memory.Held[0].Bytes == 0 || r.ResultCache.Limit == 0 ||
		r.ResultCache.New == 0 {
		t.Errorf("memory %+v, result cache %+v", r.Memory, r.ResultCache)
	}
}

// An operator ends a live query: each of its subscribers learns who ended it and that it is final, and the log has it.
// Others go on, and a client that sends the same query again gets a new one.
func TestOps_endingLive(t *testing.T) {
	tokens := gatewaytest.WriteTokens(t, "admin operator-0123456789 alice\n")
	b := open(t, func(c *gateway.Config) { c.TokenFile = tokens })
	admin := []string{"Authorization", "Bearer operator-0123456789"}
	dial := func(metric string) *websocket.Conn {
		t.Helper()
		c, _, err := (&websocket.Dialer{Subprotocols: []string{"downpour.v1", "bearer.operator-0123456789"}}).Dial(
			"ws://"+b.Address()+"/api/ws", nil,
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ask := fmt.Sprintf(`{"type":"subscribe","id":"l","query":{"start":"1h-ago",`+
			`"queries":[{"aggregator":"sum","metric":%q}]}}`, metric)
		if err := c.WriteMessage(websocket.TextMessage, []byte(ask)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	until := func(c *websocket.Conn, text string) {
		t.Helper()
		c.SetReadDeadline(time.Now().Add(gatewaytest.Patience))
		for {
			_, data, err := c.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), text) {
				return
			}
		}
	}
	for _, m := range []string{"ended", "kept"} {
		point := fmt.Sprintf(`{"metric":%q,"timestamp":%d,"value":1,"tags":{"host":"a"}}`, m, time.Now().Unix())
		if a := b.Post("/api/put", point, admin...); a.Status != http.StatusNoContent {
			t.Fatalf("put: %d %s", a.Status, a.Body)
		}
	}
	two, other := []*websocket.Conn{dial("ended"), dial("ended")}, dial("kept")
	for _, c := range append(two, other) {
		until(c, `"snapshot"`)
	}
	id := ""
	for _, q := range report(b, admin...).Live.Listed {
		if strings.Contains(q.Query, `"ended"`) && q.Subscribers == 2 {
			id = q.ID
		}
	}
	if a := b.Do("DELETE", "/api/ops/live/"+id, nil, admin...); a.Status != http.StatusOK ||
		a.Body != `{"id":"`+id+`","state":"ended"}` {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for _, c := range two {
		until(c, `"error":{"code":409,"message":"The live query was ended by alice","temporary":false}`)
	}
	b.LogLine("an administrative request method=DELETE path=/api/ops/live/"+id+" parameters= token=alice", admin...)
	b.Refused(b.Do("DELETE", "/api/ops/live/"+id, nil, admin...), http.StatusNotFound,
		"This gateway has no live query "+id)
	b.Refused(b.Do("DELETE", "/api/ops/live/"+id, nil), http.StatusUnauthorized, "Unauthorized")
	b.Refused(b.Get("/api/ops/live/"+id, admin...), http.StatusMethodNotAllowed, "Method not allowed")
	if l := report(b, admin...).Live; l.Queries != 1 || !strings.Contains(l.Listed[0].Query, `"kept"`) {
		t.Errorf("live queries afterwards: %+v, want the other one", l)
	}
	until(dial("ended"), `"snapshot"`)
}

// Series are counted by metric and tag key, on demand.
func TestOps_series(t *testing.T) {
	t.Parallel()
	tokens := gatewaytest.WriteTokens(t, "admin operator-0123456789 alice\nread reader-0123456789\n")
	b := open(t, func(c *gateway.Config) { c.TokenFile = tokens })
	admin := []string{"Authorization", "Bearer operator-0123456789"}
	reader := []string{"Authorization", "Bearer reader-0123456789"}
	for i, point := range []string{
		`"cpu","tags":{"host":"a"}`, `"cpu","tags":{"host":"b"}`, `"mem","tags":{"host":"a","dc":"x"}`,
	} {
		body := fmt.Sprintf(`{"timestamp":%d,"value":1,"metric":%s}`, 1356998400+i, point)
		if a := b.Post("/api/put", body, admin...); a.Status != http.StatusNoContent {
			t.Fatalf("put: %d %s", a.Status, a.Body)
		}
	}
	const want = `{"series":3,"complete":true,` +
		`"metrics":[{"name":"cpu","count":2,"new":2},{"name":"mem","count":1,"new":1}],` +
		`"tagKeys":[{"name":"host","count":2,"new":2},{"name":"dc","count":1,"new":1}],"allMetrics":2,"allTagKeys":2,` +
		`"uids":[{"kind":"metrics","used":2,"most":16777215,"grown":2,"within":86400000},` +
		`{"kind":"tagk","used":2,"most":16777215,"grown":2,"within":86400000},` +
		`{"kind":"tagv","used":3,"most":16777215,"grown":3,"within":86400000}]}`
	eventually(t, "the series are recorded", func() bool {
		return strings.HasPrefix(b.Get("/api/ops/series", admin...).Body, `{"series":3,`)
	})
	if a := b.Get("/api/ops/series", admin...); a.Body != want {
		t.Errorf("%d %s, want %s", a.Status, a.Body, want)
	}
	if a := b.Get("/api/series/top", admin...); a.Body != want {
		t.Errorf("by its other path: %d %s, want %s", a.Status, a.Body, want)
	}
	first := `"metrics":[{"name":"cpu","count":2,"new":2}],"tagKeys":[{"name":"host","count":2,"new":2}],"allMetrics":2`
	if a := b.Get("/api/ops/series?top=1", admin...); !strings.Contains(a.Body, first) {
		t.Errorf("the first of each: %d %s", a.Status, a.Body)
	}
	for _, top := range []string{"0", "-1", "x", "1001"} {
		b.Refused(b.Get("/api/ops/series?top="+top, admin...), http.StatusBadRequest,
			`top: got "`+top+`", want 1 to 1000`)
	}
	b.Refused(b.Get("/api/ops/series", reader...), http.StatusForbidden, "Forbidden")
	b.Refused(b.Do("DELETE", "/api/ops/series", nil, admin...), http.StatusMethodNotAllowed, "Method not allowed")
}

// The answers to the first requests of a page say whether its token is an operator's.
func TestOps_pagesAreTold(t *testing.T) {
	tokens := gatewaytest.WriteTokens(t, "admin operator-0123456789\nread reader-0123456789\n")
	closed, open := open(t, func(c *gateway.Config) { c.TokenFile = tokens }), open(t, nil)
	for _, path := range []string{"/api/aggregators", "/api/dashboards", "/api/dashboards/system"} {
		for want, a := range map[string]answer{
			"true":  closed.Get(path, "Authorization", "Bearer operator-0123456789"),
			"":      closed.Get(path, "Authorization", "Bearer reader-0123456789"),
			"true ": open.Get(path),
		} {
			if got := a.Header.Get("Downpour-Operator"); got != strings.TrimSpace(want) {
				t.Errorf("%s: Downpour-Operator %q, want %q", path, got, strings.TrimSpace(want))
			}
		}
	}
}

// An operator's socket gets the report repeatedly; one without the scope is refused, and one whose
// token is taken back is notified.
func TestOps_socket(t *testing.T) {
	t.Parallel()
	tokens := gatewaytest.WriteTokens(t, "admin operator-0123456789\nread reader-0123456789\n")
	b := open(t, func(c *gateway.Config) { c.TokenFile = tokens })
	dial := func(token string) *websocket.Conn {
		c, _, err := (&websocket.Dialer{Subprotocols: []string{"downpour.v1", "bearer." + token}}).Dial(
			"ws://"+b.Address()+"/api/ws", nil,
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.WriteMessage(websocket.TextMessage,
			[]byte(`{"type":"subscribe","id":"o","ops":true}`)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	type message struct {
		Type, ID string
		Ops      *opsroutes.Report
		Error    struct {
			Code      int
			Message   string
			Temporary bool
		}
	}
	next := func(c *websocket.Conn) (m message) {
		c.SetReadDeadline(time.Now().Add(gatewaytest.Patience))
		for m.Type == "" || m.Type == "heartbeat" {
			if err := c.ReadJSON(&m); err != nil {
				t.Fatal(err)
			}
		}
		return m
	}
	if m := next(dial("reader-0123456789")); m.Type != "error" || m.Error.Code != 403 || m.Error.Temporary {
		t.Errorf("a reader: %+v, want 403", m)
	}
	operator := dial("operator-0123456789")
	first, second := next(operator), next(operator)
	if first.Type != "ops" || first.ID != "o" || first.Ops == nil || first.Ops.Live.Sockets != 2 || second.Ops == nil ||
		second.Ops.Time <= first.Ops.Time {
		t.Errorf("an operator: %+v, then %+v; want two reports", first, second)
	}
	rewriteTokens(t, tokens, "admin another-0123456789\nread operator-0123456789\n")
	m := next(operator)
	for m.Type == "ops" {
		m = next(operator)
	}
	if m.Type != "error" || m.Error.Code != 403 || m.Error.Temporary {
		t.Errorf("without the scope: %+v, want 403", m)
	}
}

// rewriteTokens writes other tokens into it.
func rewriteTokens(t *testing.T, name, text string) {
	t.Helper()
	later := time.Now().Add(time.Hour)
	err := os.WriteFile(name, []byte(text), 0o600)
	if err = errors.Join(err, os.Chtimes(name, later, later)); err != nil {
		t.Fatal(err)
	}
}
