package live

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
)

// What is final moves on with the clock where nobody writes, and is sent with
// the next change, not by a message a second.
func TestFinalBefore_comesWithChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var value atomic.Int64
		h := New(Config{Log: quiet, Ask: func(_ context.Context, _ Question, now time.Time) (Answer, error) {
			a := one(1000, encoding.IntValue(value.Load()))
			a.FinalBefore, a.Rows = now.UnixMilli(), 3
			return a, nil
		}})
		defer h.Close()
		c, _ := subscribe(t, h, `{"start":"1h-ago","queries":[]}`)
		synctest.Wait()
		u := c.sub.Next()
		if u == nil || u.Kind != KindSnapshot || u.finalBefore != time.Now().Unix() || u.rows != 3 {
			t.Fatalf("%+v, want a snapshot that is final before now, of 3 rows", u)
		}
		time.Sleep(5 * time.Second) // of the bubble's clock
		synctest.Wait()
		if u := c.sub.Next(); u != nil {
			t.Errorf("%s, want nothing: nothing has changed", text(u))
		}
		value.Add(1)
		time.Sleep(time.Second)
		synctest.Wait()
		if u := c.sub.Next(); u == nil || u.Kind != KindDelta || u.delta.finalBefore != time.Now().Unix() {
			t.Errorf("%+v, want a delta with what is final now", u)
		}
	})
}
