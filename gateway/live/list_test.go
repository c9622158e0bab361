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
		if len(got) != 2 || more != 1 || got[0].Subscribers != 2 || got[0].Query != large[:maxListed]+"…" || got[0].Held.Total() < 3000 || got[0].Error != "" {
			t.Errorf("got %+v and %d more, want the two largest of three", got, more)
		}
		all, more := h.List(10)
		broken := all[len(all)-1]
		if len(all) != 3 || more != 0 || broken.Query != `{"broken":1}` || broken.Error != "no store" {
			t.Errorf("got %+v and %d more, want all three, the broken one last", all, more)
		}
	})
}
