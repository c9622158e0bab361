package live

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding"
	"downpour/pushdown/process/memory"
)

// many returns an answer of one group with so many points.
func many(points int) Answer {
	var r Result
	for i := range int64(points) {
		r.Points.Append(1000*i, encoding.IntValue(i))
	}
	return Answer{Results: []Result{r}}
}

// fillPool reserves all memory of a pool, until free is called.
func fillPool(p *memory.Pool) (free func()) {
	var all []*memory.Account
	for range 3 { // one account may not have all of it
		a := p.Open(memory.Live)
		for a.Try(128 << 10) {
		}
		all = append(all, a)
	}
	return func() {
		for _, a := range all {
			a.Close()
		}
	}
}

// lent returns the bytes that live queries have reserved.
func lent(p *memory.Pool) int64 { return p.Stats().Held[memory.Live] }

// entering gives each ask an account of a pool, as gateways do.
func entering(p *memory.Pool) func(context.Context) (context.Context, func()) {
	return func(ctx context.Context) (context.Context, func()) {
		account := p.Open(memory.Live)
		return memory.With(ctx, account), account.Close
	}
}

// The answer of a query with an end is counted as held until its last subscriber has left.
func TestRoom_held(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{
			Log: quiet,
			Ask: func(context.Context, Question, time.Time) (Answer, error) { return many(100_000), nil },
		})
		defer h.Close()
		c, _ := subscribe(t, h, `{"start":"1h-ago","end":"now"}`)
		synctest.Wait()
		if n := h.Held().Answer; n < 100_000*pointBytes {
			t.Errorf("%d bytes are held, want at least %d", n, 100_000*pointBytes)
		}
		if u := c.sub.Next(); u == nil || u.Kind != KindSnapshot {
			t.Errorf("got %+v, want a snapshot", u)
		}
		c.sub.Close()
		if n := h.Held(); n != (Held{}) {
			t.Errorf("%+v is held at the end, want nothing", n)
		}
	})
}

func TestRoom_tooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := memory.New(64 << 20)
		h := New(Config{
			Log:    quiet,
			Memory: pool,
			Enter:  entering(pool),
			Ask:    func(context.Context, Question, time.Time) (Answer, error) { return many(2_000_000), nil },
		})
		defer h.Close()
		c, _ := subscribe(t, h, `{"start":"1h-ago"}`)
		synctest.Wait()
		if u := c.sub.Next(); u == nil || u.Err == nil || u.Err.Code != 413 || u.Err.Temporary {
			t.Errorf("got %+v, want error 413", u)
		}
		if n := lent(pool); n != 0 {
			t.Errorf("%d bytes are reserved, want none", n)
		}
	})
}

// onlyNews is a source that gives its answer once and after that says that nothing has changed.
type onlyNews struct {
	asked *int
	fresh bool
}

func (s *onlyNews) Next(context.Context, time.Time) (Answer, error) {
	*s.asked++
	if s.fresh {
		s.fresh = false
		return many(100_000), nil
	}
	return Answer{Kept: map[int]bool{0: true}}, nil
}
func (*onlyNews) Changed() <-chan struct{} { return nil }
func (*onlyNews) Close()                   {}

// An answer for which there is no memory is lost. Clients get an error, and a new source is opened,
// because the old one's next answer would be based on the lost one.
func TestRoom_later(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := memory.New(64 << 20)
		free := fillPool(pool)
		asked, opened := 0, 0
		h := New(Config{Log: quiet, Memory: pool, Enter: entering(pool), OpenSource: func(Question) Source {
			opened++
			return &onlyNews{asked: &asked, fresh: true}
		}})
		defer h.Close()
		c, _ := subscribe(t, h, `{"start":"1h-ago"}`)
		time.Sleep(memory.Patience + time.Second)
		synctest.Wait()
		if u := c.sub.Next(); u == nil || u.Err == nil || u.Err.Code != 503 || !u.Err.Temporary {
			t.Fatalf("got %+v, want a temporary error 503", u)
		}
		free()
		time.Sleep(time.Minute)
		synctest.Wait()
		if u := c.sub.Next(); u == nil || u.Kind != KindSnapshot || len(u.groups) != 1 || opened < 2 {
			t.Errorf("got %+v from source %d, want a snapshot from another", u, opened)
		}
	})
}

// A message's memory is reserved while anybody holds the message.
func TestRoom_messages(t *testing.T) {
	pool := memory.New(64 << 20)
	account := pool.Open(memory.Live)
	defer account.Close()
	g := newGroup(&many(20_000).Results[0], true)
	u := &Update{Kind: KindSnapshot, account: account, groups: []*group{g}}
	for range 2 { // the second call returns the first one's bytes
		if b, err := u.JSON(); err != nil || int64(len(b)) > account.Held() || account.Held() > 3*int64(len(b)) {
			t.Errorf("%d bytes of JSON, %v, %d are reserved", len(b), err, account.Held())
		}
	}
	json := account.Held()
	if _, frame, err := u.Arrow(); err != nil || int64(len(frame)) > account.Held()-json {
		t.Errorf("%d bytes of Arrow, %v, %d are reserved", len(frame), err, account.Held()-json)
	}
	runtime.KeepAlive(u)
	u = nil
	for account.Held() != 0 {
		runtime.GC() // the memory of what it collects is given back soon afterwards
	}
	free := fillPool(pool)
	u = &Update{Kind: KindSnapshot, account: account, groups: []*group{g}}
	if _, err := u.JSON(); err != ErrNoMemory {
		t.Errorf("got %v, want %v", err, ErrNoMemory)
	}
	if _, _, err := u.Arrow(); err != ErrNoMemory {
		t.Errorf("got %v, want %v", err, ErrNoMemory)
	}
	free()
	if _, err := u.JSON(); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
