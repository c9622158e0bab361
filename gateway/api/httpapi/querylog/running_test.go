package querylog

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/query"
	"downpour/gateway/query/limit"
)

// A query is ended once; the second time, and once it is over, there are other words. What Done
// gets has the cost of a query that failed.
func TestLog_End(t *testing.T) {
	var l Log
	var told *Done
	l.Done = func(d *Done) { told = d }
	now := time.Unix(1356998400, 0)
	begin := func(metric string) (*Entry, context.Context) {
		q, err := (&query.Parser{Now: now}).JSON([]byte(`{"start":1,"queries":[{"aggregator":"sum","metric":"` +
			metric + `"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancelCause(t.Context())
		t.Cleanup(func() { end(nil) })
		r := httptest.NewRequest("POST", "/api/query", nil).WithContext(WithOrigin(ctx,
			Origin{Token: "grafana", End: end}))
		return l.Begin(r, q, func() limit.Cost { return limit.Cost{Points: 7, Bytes: 70, Memory: 700} }, now), ctx
	}
	first, ctx := begin("one")
	second, other := begin("two")
	all := l.Running()
	if len(all) != 2 || l.Count() != 2 || all[0].Token != "grafana" ||
		all[0].Cost != (limit.Cost{Points: 7, Bytes: 70, Memory: 700}) || !strings.Contains(all[0].Query, `"one"`) ||
		all[0].EndedBy != "" {
		t.Fatalf("got %+v, want the two, the oldest first", all)
	}
	refused := func(code int, text string) {
		t.Helper()
		var e *httpio.Error
		if err := l.End(all[0].ID, "bob"); !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Message, text) {
			t.Errorf("got %v, want %d, %s", err, code, text)
		}
	}
	if err := l.End(all[0].ID, "alice"); err != nil || !errors.Is(ctx.Err(), context.Canceled) || other.Err() != nil {
		t.Errorf("%v; the contexts of both: %v, %v; want the first ended", err, ctx.Err(), other.Err())
	}
	refused(409, "The query has been ended already, by alice")
	if by := l.Running()[0].EndedBy; by != "alice" {
		t.Errorf("shown as ended by %q, want alice", by)
	}
	if err := first.Ended(); err == nil || err.Error() != "The query was ended by alice" || second.Ended() != nil {
		t.Errorf("answers %v and %v, want the first ended by alice", err, second.Ended())
	}
	l.Finish(first, 409, first.Ended(), now.Add(time.Second))
	if told == nil || told.Took != time.Second || told.Points != 7 || told.Bytes != 70 ||
		told.Failure != "The query was ended by alice" || told.Token != "grafana" ||
		!strings.Contains(told.Query(), `"one"`) {
		t.Errorf("told of %+v, want its cost", told)
	}
	refused(410, "is over")
	if len(l.Running()) != 1 {
		t.Error("a query that is over is listed")
	}
	l.Finish(second, 200, nil, now)
	if told.Failure != "" || told.Points != 0 {
		t.Errorf("told of %+v, want what the engine has counted", told)
	}
}
