package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// one returns an answer of one group with one point.
func one(ms int64, v encoding.Value) Answer {
	r := Result{Metric: "m", Tags: map[string]string{"host": "a"}}
	r.Points.Append(ms, v)
	return Answer{Results: []Result{r}}
}

// counting returns a function that answers each ask with its number.
func counting(n *atomic.Int64) func(context.Context, Question, time.Time) (Answer, error) {
	return func(context.Context, Question, time.Time) (Answer, error) {
		return one(1000, encoding.IntValue(n.Add(1))), nil
	}
}

func subscribe(t *testing.T, h *Hub, q string) (*client, *atomic.Int64) {
	t.Helper()
	var wakes atomic.Int64
	s, err := h.Subscribe(Request{Query: json.RawMessage(q)}, func() { wakes.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	return &client{sub: s}, &wakes
}

func drain(t *testing.T, c *client) {
	t.Helper()
	if err := c.drain(); err != nil {
		t.Fatal(err)
	}
}

func TestOneEvaluatorServesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asks atomic.Int64
		h := New(Config{Ask: counting(&asks), Log: quiet})
		defer h.Close()
		a, wakes := subscribe(t, h, `{"start":"1h-ago","queries":[]}`)
		b, _ := subscribe(t, h,
			`{ "queries": [], "end": null, "start": "1h-ago" }`) // the same query, written in another way
		time.Sleep(10*time.Second + time.Millisecond) // the bubble's clock: no real wait
		drain(t, a)
		drain(t, b)
		if asks.Load() != 11 || h.Stats().Queries != 1 {
			t.Errorf("%d asks and %d evaluators in 10 s, want 11 and 1", asks.Load(), h.Stats().Queries)
		}
		if want := "0 m map[host:a] [] 1=11"; a.picture() != want || b.picture() != want {
			t.Errorf("subscribers see %q and %q, want %q", a.picture(), b.picture(), want)
		}
		if wakes.Load() != 12 { // on joining and at each answer
			t.Errorf("woken %d times, want 12", wakes.Load())
		}
		a.sub.Close()
		b.sub.Close()
		b.sub.Close() // again does no harm
		time.Sleep(time.Minute)
		if asks.Load() != 11 || h.Stats() != (Stats{Asks: 11, Merged: 0}) {
			t.Errorf("after the last subscriber: %d asks, %+v; want 11 and nothing held", asks.Load(), h.Stats())
		}
		if u := a.sub.Next(); u != nil {
			t.Errorf("a closed subscription gets %v, want nothing", u)
		}
	})
}

func TestDifferentQueriesHaveTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asks atomic.Int64
		h := New(Config{Ask: counting(&asks), Log: quiet, Queries: 3})
		defer h.Close()
		subscribe(t, h, `{"start":1}`)
		subscribe(t, h, `{"start":1,"msResolution":true}`)
		// 2^53 + 1 and 2^53, which are equal as doubles.
		subscribe(t, h, `{"start":9007199254740993}`)
		_, err := h.Subscribe(Request{Query: json.RawMessage(`{"start":9007199254740992}`)}, func() {})
		if e := new(Error); !errors.As(err, &e) || e.Code != 429 {
			t.Errorf("a fourth query gets %v, want error 429", err)
		}
	})
}

// Requests for expressions share an evaluator if their answers are the same, but not with a query
// of the same body. Their times are in ms.
func TestExpressionsShareAnEvaluator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asks atomic.Int64
		h := New(Config{Ask: func(_ context.Context, q Question, _ time.Time) (Answer, error) {
			asks.Add(1)
			if !q.Exp {
				return Answer{}, &Error{Code: 400, Message: "not asked as expressions"}
			}
			return one(1500, encoding.IntValue(1)), nil
		}, Log: quiet})
		defer h.Close()
		join := func(body string) *client {
			t.Helper()
			s, err := h.Subscribe(Request{Query: json.RawMessage(body), Exp: true}, func() {})
			if err != nil {
				t.Fatal(err)
			}
			return &client{sub: s}
		}
		a := join(`{"time":{"start":"1h-ago"},"metrics":[]}`)
		join(`{"metrics":[],"name":"x","time":{"end":null,"start":"1h-ago"}}`)
		join(`{"metrics":[],"time":{"start":"1h-ago","end":""}}`)
		time.Sleep(1500 * time.Millisecond) // two ticks by the bubble's clock: no real wait
		drain(t, a)
		if want := "0 m map[host:a] [] 1500=1"; a.picture() != want || asks.Load() != 2 || h.Stats().Queries != 1 {
			t.Errorf("%q after %d asks of %d evaluators, want %q after 2 of 1", a.picture(), asks.Load(),
				h.Stats().Queries, want)
		}

		ended := join(`{"time":{"start":"1h-ago","end":"1m-ago"},"metrics":[]}`)
		synctest.Wait()
		if drain(t, ended); ended.last != KindComplete {
			t.Errorf("with an end: the last message is %s", ended.last)
		}
		plain, err := h.Subscribe(Request{
			Query:  json.RawMessage(`{"time":{"start":"1h-ago"},"metrics":[]}`),
			Millis: true,
		}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if u := plain.Next(); u == nil || u.Kind != KindError {
			t.Errorf("a query of the same body gets %+v, want the error", u)
		}
	})
}

func TestSlowQueryIsAskedLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asks atomic.Int64
		h := New(Config{Log: quiet, Ask: func(ctx context.Context, _ Question, _ time.Time) (Answer, error) {
			asks.Add(1)
			time.Sleep(5 * time.Second)
			return Answer{}, nil
		}})
		defer h.Close()
		subscribe(t, h, `{"start":"1h-ago"}`)
		time.Sleep(101 * time.Second)
		if asks.Load() != 11 {
			t.Errorf("%d asks of 5 s in 101 s, want 11: busy half of the time", asks.Load())
		}
	})
}

func TestEndGivenCompletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asks atomic.Int64
		h := New(Config{Ask: counting(&asks), Log: quiet})
		defer h.Close()
		c, _ := subscribe(t, h, `{"start":1,"end":2}`)
		synctest.Wait()
		var kinds []string
		for u := c.sub.Next(); u != nil; u = c.sub.Next() {
			kinds = append(kinds, string(u.Kind))
		}
		time.Sleep(time.Minute)
		if got := strings.Join(kinds, " "); got != "snapshot complete" || asks.Load() != 1 || h.Stats().Queries != 0 {
			t.Errorf("got %s after %d asks, %+v; want snapshot complete, one ask, nothing left", got, asks.Load(),
				h.Stats())
		}
	})
}

func TestUnknownNameIsRetriedWhileLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ask := func(_ context.Context, _ Question, now time.Time) (Answer, error) {
			if now.Sub(start) < 5*time.Second {
				return Answer{},
					fmt.Errorf("ask: %w",
						&Error{Code: 400, Message: "No such name for 'metrics': 'm'", Temporary: true})
			}
			return one(1000, encoding.FloatValue(1)), nil
		}
		h := New(Config{Ask: ask, Log: quiet})
		defer h.Close()
		live, _ := subscribe(t, h, `{"start":"1h-ago"}`)
		ended, _ := subscribe(t, h, `{"start":"1h-ago","end":"1m-ago"}`)
		synctest.Wait()
		u := live.sub.Next()
		if got, want := text(u),
			`,"error":{"code":400,"message":"No such name for 'metrics': 'm'","temporary":true}}`; got != want {
			t.Errorf("first message %s, want %s", got, want)
		}
		if u := ended.sub.Next(); u == nil || u.Err == nil || u.Err.Temporary || !u.Ends() {
			t.Errorf("a query that ends gets %+v, want a final error", u)
		}
		time.Sleep(3 * time.Second)
		if u := live.sub.Next(); u != nil {
			t.Errorf("the same error is sent again: %s", text(u))
		}
		time.Sleep(3 * time.Second)
		drain(t, live)
		if live.picture() != "0 m map[host:a] [] 1=1.0" {
			t.Errorf("once the name exists: %q", live.picture())
		}
	})
}

// An error after the snapshot is followed by a delta even if the data is the same, so that a client
// can stop showing the error.
func TestRecoveryIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fail atomic.Bool
		h := New(Config{Log: quiet, Ask: func(context.Context, Question, time.Time) (Answer, error) {
			if fail.Load() {
				return Answer{}, errors.New("region server is away")
			}
			return one(0, encoding.IntValue(1)), nil
		}})
		defer h.Close()
		c, _ := subscribe(t, h, `{"start":"1h-ago"}`)
		synctest.Wait()
		drain(t, c)
		fail.Store(true)
		time.Sleep(2 * time.Second)
		drain(t, c)
		if c.err == nil || !c.err.Temporary || c.err.Code != 500 {
			t.Fatalf("got %s %+v, want a temporary error 500", c.last, c.err)
		}
		fail.Store(false)
		time.Sleep(2 * time.Second)
		drain(t, c)
		if c.last != KindDelta {
			t.Errorf("last message is %s, want delta", c.last)
		}
	})
}

// Who comes back after all had left because of an error gets the answer of now. The error of then would make a client
// that leaves with each error come and go for ever.
//
//fault:old-error-to-a-newcomer !e.mu.errIsOld && =>
func TestErrorIsNotOfTheLastLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fail atomic.Bool
		h := New(Config{Log: quiet, Ask: func(context.Context, Question, time.Time) (Answer, error) {
			time.Sleep(100 * time.Millisecond)
			if fail.Load() {
				return Answer{}, errors.New("region server is away")
			}
			return one(0, encoding.IntValue(1)), nil
		}})
		defer h.Close()
		for _, away := range []bool{false, true, true, false, false} {
			fail.Store(away)
			c, _ := subscribe(t, h, `{"start":"1h-ago"}`)
			synctest.Wait()
			if u := c.sub.Next(); u != nil {
				t.Errorf("before the first answer: %s, want nothing", text(u))
			}
			time.Sleep(200 * time.Millisecond)
			if drain(t, c); (c.err != nil) != away || !away && c.last != KindSnapshot {
				t.Errorf("the store is away: %t; got %s, %v", away, c.last, c.err)
			}
			fail.Store(true)
			time.Sleep(5 * time.Second)
			drain(t, c)
			c.sub.Close()
		}
	})
}

func TestFinalErrorEndsTheQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := 0
		h := New(Config{Log: quiet, Ask: func(context.Context, Question, time.Time) (Answer, error) {
			asks++
			if asks == 1 {
				panic("planted")
			}
			return Answer{}, &Error{Code: 413, Message: "too much"}
		}})
		defer h.Close()
		for _, code := range []int{500, 413} {
			c, _ := subscribe(t, h, `{"start":"1h-ago"}`)
			time.Sleep(time.Minute)
			if u := c.sub.Next(); u == nil || u.Err == nil || u.Err.Code != code || !u.Ends() {
				t.Errorf("got %+v, want a final error %d", u, code)
			}
			if u := c.sub.Next(); u != nil {
				t.Errorf("after the end: %+v", u)
			}
			c.sub.Close()
		}
		if asks != 2 || h.Stats().Queries != 0 {
			t.Errorf("%d asks, %+v; want 2 and nothing left", asks, h.Stats())
		}
	})
}

// A client that resumes within the linger time gets one delta; later, or after a restart, it gets a
// snapshot.
func TestResumeAfterABreak(t *testing.T) {
	for _, tc := range []struct {
		away time.Duration
		want Kind
	}{{5 * time.Second, KindDelta}, {20 * time.Second, KindSnapshot}} {
		synctest.Test(t, func(t *testing.T) {
			var asks atomic.Int64
			h := New(Config{Ask: counting(&asks), Log: quiet})
			defer h.Close()
			c, _ := subscribe(t, h, `{"start":"1h-ago"}`)
			synctest.Wait()
			drain(t, c)
			c.sub.Close()
			time.Sleep(tc.away)
			s, err := h.Subscribe(Request{Query: json.RawMessage(`{"start":"1h-ago"}`), Resume: &c.resume}, func() {})
			if err != nil {
				t.Fatal(err)
			}
			c.sub = s
			synctest.Wait()
			drain(t, c)
			if c.last != tc.want || c.picture() != "0 m map[host:a] [] 1=2" {
				t.Errorf("after %v: %s, %q; want %s", tc.away, c.last, c.picture(), tc.want)
			}
		})
	}
}

func TestAnswersTooLargeAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Log: quiet, MaxBytes: 1000, Ask: func(context.Context, Question, time.Time) (Answer, error) {
			var r Result
			for i := range int64(100) {
				r.Points.Append(1000*i, encoding.IntValue(i))
			}
			return Answer{Results: []Result{r}}, nil
		}})
		defer h.Close()
		c, _ := subscribe(t, h, `{"start":"1h-ago"}`)
		synctest.Wait()
		if u := c.sub.Next(); u == nil || u.Err == nil || u.Err.Code != 413 {
			t.Errorf("got %+v, want error 413", u)
		}
		if got := h.Stats().Bytes; got != 0 {
			t.Errorf("%d bytes held, want 0", got)
		}
	})
}

func TestBadQueriesAreRefused(t *testing.T) {
	h := New(Config{Log: quiet})
	defer h.Close()
	for _, q := range []string{``, `[]`, `null`, `{`, `"sum"`} {
		_, err := h.Subscribe(Request{Query: json.RawMessage(q)}, func() {})
		if e := new(Error); !errors.As(err, &e) || e.Code != 400 {
			t.Errorf("query %q: %v, want error 400", q, err)
		}
	}
	h.Close()
	_, err := h.Subscribe(Request{Query: json.RawMessage(`{}`)}, func() {})
	if e := new(Error); !errors.As(err, &e) || e.Code != 503 {
		t.Errorf("after Close: %v, want error 503", err)
	}
}

// A message that stands for several changes is marked as merged, and no other.
func TestSlowReaderIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asks atomic.Int64
		h := New(Config{Ask: counting(&asks), Log: quiet})
		defer h.Close()
		c, _ := subscribe(t, h, `{"start":"1h-ago"}`)
		for _, step := range []struct {
			away   time.Duration
			kind   Kind
			merged bool
		}{{time.Millisecond, KindSnapshot, false}, {time.Second, KindDelta, false}, {5 * time.Second, KindDelta, true},
			{time.Second, KindDelta, false},
			{2 * historyTicks * time.Second, KindSnapshot, true}} {
			time.Sleep(step.away)
			u := c.sub.Next()
			if merged := strings.Contains(text(u), `"merged":true`); u.Kind != step.kind || merged != step.merged {
				t.Errorf("after %v: %s, merged %t; want %s, %t", step.away, u.Kind, merged, step.kind, step.merged)
			}
			if u := c.sub.Next(); u != nil {
				t.Errorf("after %v there is more: %s", step.away, text(u))
			}
		}
	})
}
