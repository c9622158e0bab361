package live

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
)

// While nobody writes, finalBefore moves on with the clock. It is sent with the next change, not in
// messages of its own.
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
			t.Fatalf("got %+v, want a snapshot of 3 rows with finalBefore now", u)
		}
		time.Sleep(5 * time.Second) // simulated by synctest: some ticks pass without a change
		synctest.Wait()
		if u := c.sub.Next(); u != nil {
			t.Errorf("got %s, want no message without a change", text(u))
		}
		value.Add(1)
		time.Sleep(time.Second)
		synctest.Wait()
		if u := c.sub.Next(); u == nil || u.Kind != KindDelta || u.delta.finalBefore != time.Now().Unix() {
			t.Errorf("got %+v, want a delta with finalBefore now", u)
		}
	})
}
