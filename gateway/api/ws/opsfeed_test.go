package ws

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/gateway/live"
)

// told is the next update of a subscription, "" for none.
func told(t *testing.T, s *opsSubscription) string {
	t.Helper()
	u := s.Next()
	if u == nil {
		return ""
	}
	text, err := u.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(u.Kind) + string(text)
}

// What operators see is made once for all, only while one of them looks, and each gets the newest.
func TestOpsFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		operators := map[string]bool{"a": true, "b": true}
		cfg := Config{
			Log:          quiet,
			AuthorizeOps: func(token string) bool { return operators[token] },
			Ops: func(context.Context) ([]byte, error) {
				switch n := asked.Add(1); n {
				case 3:
					return nil, errors.New("broken")
				case 4:
					panic("broken")
				default:
					return fmt.Appendf(nil, `{"n":%d}`, n), nil
				}
			},
		}
		cfg.setDefaults()
		f := newOpsFeed(&cfg)
		if _, refusal := f.subscribe("c", func() {}); refusal == nil || refusal.Code != 403 {
			t.Errorf("without the scope: %v, want 403", refusal)
		}
		check := func(s *opsSubscription, want string) {
			t.Helper()
			if got := told(t, s); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}

		var wakes atomic.Int64
		a, _ := f.subscribe("a", func() { wakes.Add(1) })
		synctest.Wait()
		check(a, `ops,"ops":{"n":1}}`)
		check(a, "")
		b, _ := f.subscribe("b", func() {})
		check(b, `ops,"ops":{"n":1}}`) // what is there, at once
		time.Sleep(2 * time.Second)
		synctest.Wait()
		check(b, `ops,"ops":{"n":2}}`)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		check(a, `error,"error":{"code":500,"message":"broken","temporary":true}}`) // it has missed one
		time.Sleep(2 * time.Second)
		synctest.Wait()
		check(a, `error,"error":{"code":500,"message":"Internal error","temporary":true}}`)
		if asked.Load() != 4 || wakes.Load() != 4 {
			t.Errorf("asked %d times, woken %d times, want 4 of each", asked.Load(), wakes.Load())
		}

		operators["a"] = false
		time.Sleep(2 * time.Second)
		synctest.Wait()
		u := a.Next()
		if u == nil || !u.Ends() || u.Err.Code != 403 || a.Next() != nil {
			t.Errorf("a token without the scope: %+v, want a 403 that ends it", u)
		}
		check(b, `ops,"ops":{"n":5}}`)

		a.Close()
		a.Close()
		b.Close()
		time.Sleep(time.Minute)
		allLeft(t, f)
		if asked.Load() != 5 || b.Next() != nil {
			t.Errorf("asked %d times, want none after the last has left", asked.Load())
		}
		// A subscription that comes back gets the present state, not an old one.
		c, _ := f.subscribe("b", func() {})
		if got := told(t, c); got != "" && got != `ops,"ops":{"n":6}}` {
			t.Errorf("got %q, want what is now", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		check(c, `ops,"ops":{"n":7}}`)
		c.Close()
		allLeft(t, f)
	})
}

// allLeft wants that the loop has ended with the last subscriber. One that goes on would keep a test
// for ever, so it is ended.
func allLeft(t *testing.T, f *opsFeed) {
	t.Helper()
	f.mu.Lock()
	stop := f.mu.stop
	f.mu.Unlock()
	if stop != nil {
		t.Error("the loop goes on after the last has left")
		stop()
	}
	f.work.Wait()
}

// A socket subscribes to the operators' view in addition to live queries, and may leave it.
func TestOps_socket(t *testing.T) {
	b := start(t, func(c *Config) {
		c.Ops = func(context.Context) ([]byte, error) { return []byte(`{"n":1}`), nil }
		c.OpsEvery = time.Millisecond
	})
	c := b.dial()
	c.send(`{"type":"subscribe","id":"both","ops":true,"query":{"start":1}}`)
	if m := c.read(); m.Type != "error" || m.Error.Code != 400 {
		t.Errorf("ops and a query: %s, want 400", m.raw)
	}
	c.send(`{"type":"subscribe","id":"o","ops":true}`)
	for range 3 {
		if m := c.read(); m.raw != `{"type":"ops","id":"o","ops":{"n":1}}` {
			t.Fatalf("got %s, want what operators see", m.raw)
		}
	}
	c.send(`{"type":"unsubscribe","id":"o"}`)
	c.send(`{"type":"subscribe","id":"q","query":{"start":1}}`)
	m := c.read()
	for m.Type == "ops" {
		m = c.read()
	}
	if m.Type != "snapshot" || *m.ID != "q" {
		t.Errorf("got %s, want the snapshot of a live query", m.raw)
	}

	none := start(t, nil).dial()
	none.send(`{"type":"subscribe","id":"o","ops":true}`)
	if m := none.read(); m.Type != "error" || m.Error.Code != 400 {
		t.Errorf("where there is nothing to see: %s, want 400", m.raw)
	}
}

var _ source = (*live.Subscription)(nil)
