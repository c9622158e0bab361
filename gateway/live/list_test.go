package live

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The list has the queries that hold most, with their subscribers and the error of the last tick.
func TestHub_List(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Log: quiet, Ask: func(_ context.Context, q Question, _ time.Time) (Answer, error) {
			if strings.Contains(string(q.Body), "broken") {
				return Answer{}, &Error{Code: 503, Message: "no store", Temporary: true}
			}
			a := Answer{}
			a.Held = int64(len(q.Body))
			return a, nil
		}})
		defer h.Close()
		large := `{"start":"1h-ago","large":"` + strings.Repeat("x", 3000) + `"}`
		for _, q := range []string{`{"start":"1h-ago"}`, large, large, `{"broken":1}`} {
			subscribe(t, h, q)
		}
		synctest.Wait()
		got, more := h.List(2)
		if len(got) != 2 || more != 1 || got[0].Subscribers != 2 || got[0].Query != large[:maxListed]+"…" ||
			got[0].Held.Total() < 3000 || got[0].Error != "" {
			t.Errorf("got %+v and %d more, want the two largest of three", got, more)
		}
		all, more := h.List(10)
		broken := all[len(all)-1]
		if len(all) != 3 || more != 0 || broken.Query != `{"broken":1}` || broken.Error != "no store" {
			t.Errorf("got %+v and %d more, want all three, the broken one last", all, more)
		}
	})
}

// The live query that is named ends for all of its subscribers, with the name of who has ended it;
// another one continues, and the same query can be started again.
func TestHub_End(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{
			Log: quiet,
			Ask: func(context.Context, Question, time.Time) (Answer, error) { return Answer{}, nil },
		})
		defer h.Close()
		one, woken := subscribe(t, h, `{"a":1}`)
		two, _ := subscribe(t, h, `{"a":1}`)
		other, _ := subscribe(t, h, `{"b":1}`)
		synctest.Wait()
		before := woken.Load()
		ids := map[string]string{}
		all, _ := h.List(10)
		for _, l := range all {
			ids[l.Query] = l.ID
		}
		if len(ids) != 2 || ids[`{"a":1}`] == ids[`{"b":1}`] {
			t.Fatalf("ids %v, want one for each query", ids)
		}
		if h.End("x", "alice") || !h.End(ids[`{"a":1}`], "alice") || h.End(ids[`{"a":1}`], "alice") {
			t.Error("ended: want the one that is there, once")
		}
		if woken.Load() == before {
			t.Error("a subscriber is not woken to hear of the end")
		}
		for _, s := range []*Subscription{one.sub, two.sub} {
			u := s.Next()
			if u == nil || u.Kind != KindError || !u.Ends() || u.Err.Code != 409 ||
				u.Err.Message != "The live query was ended by alice" {
				t.Errorf("a subscriber gets %+v, want to be told that it has ended", u)
			}
			s.Close()
		}
		if u := other.sub.Next(); u == nil || u.Kind != KindSnapshot {
			t.Errorf("the other query: %+v, want its snapshot", u)
		}
		again, _ := subscribe(t, h, `{"a":1}`)
		synctest.Wait()
		if u := again.sub.Next(); u == nil || u.Kind != KindSnapshot {
			t.Errorf("asked again: %+v, want a snapshot", u)
		}
	})
}
