package memory

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding/seedtest"
)

const mib = 1 << 20

// check fails unless what the pool counts is what the accounts have taken.
func check(t *testing.T, p *Pool, accounts ...*Account) {
	t.Helper()
	for _, a := range accounts { // before the pool's lock, as everywhere
		a.mu.Lock()
		defer a.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var own [classes]int64
	var common int64
	for _, a := range accounts {
		// A waiting reservation has taken the spare bytes.
		waiting := int64(0)
		for _, w := range p.queue {
			if w.account == a {
				waiting += 2 * step
			}
		}
		if got := a.own + a.common - a.used - a.spare; got < 0 || got > waiting {
			t.Errorf("an account has taken %d bytes, uses %d and has %d spare", a.own+a.common, a.used, a.spare)
		}
		own[a.class] += a.own
		common += a.common
	}
	for c := range own {
		if p.own[c].used != own[c] {
			t.Errorf("%s: %d bytes of its share are taken, accounts have %d", Class(c), p.own[c].used, own[c])
		}
		if p.own[c].used > p.own[c].size {
			t.Errorf("%s: %d bytes of its share of %d are taken, want no more than it has", Class(c), p.own[c].used,
				p.own[c].size)
		}
	}
	if p.common.used != common || common > p.common.size {
		t.Errorf("%d bytes are taken of %d in common, accounts have %d", p.common.used, p.common.size, common)
	}
}

func reserve(t *testing.T, a *Account, n int64) {
	t.Helper()
	if err := a.Reserve(context.Background(), n); err != nil {
		t.Fatal(err)
	}
}

func TestAccount_nil(t *testing.T) {
	var p *Pool
	a := p.Open(Query)
	a.Heavy(1, nil)
	reserve(t, a, 1<<60)
	a.Release(1)
	a.Close()
	if a.Held() != 0 || p.Cache(7) != 7 || p.Total() != 0 || p.Stats() != (Stats{}) {
		t.Error("a nil pool or account holds something or has a bound")
	}
	if err := Reserve(context.Background(), 1<<60); err != nil {
		t.Error(err)
	}
}

// One request may have half of the common share and no more, even if it is alone.
func TestAccount_tooLarge(t *testing.T) {
	p := New(128 * mib)
	a := p.Open(Query)
	reserve(t, a, 3*mib)
	var limit *LimitError
	if err := a.Reserve(context.Background(), p.accountLimit+maxSmall+1); !errors.As(err, &limit) ||
		limit.Limit != p.accountLimit {
		t.Fatalf("got %v, want a LimitError", err)
	}
	check(t, p, a)
	reserve(t, a, p.accountLimit-4*mib)
	if err := a.Reserve(context.Background(), 8*mib); !errors.As(err, &limit) {
		t.Fatalf("got %v, want a LimitError", err)
	}
	a.Close()
	a.Release(5)
	check(t, p, a)
	if p.common.used != 0 {
		t.Errorf("%d bytes are still taken", p.common.used)
	}
}

// However much large queries hold, small ones and writes pass.
func TestPool_ownShares(t *testing.T) {
	p := New(128 * mib)
	var all []*Account
	for range 2 { // each half of what is common
		a := p.Open(Query)
		reserve(t, a, p.smallLimit)
		reserve(t, a, p.accountLimit-p.smallLimit-step)
		all = append(all, a)
	}
	for range 31 { // the queries' own share has place for 32
		small := p.Open(Query)
		reserve(t, small, p.smallLimit)
		all = append(all, small)
	}
	write := p.Open(Write)
	reserve(t, write, p.own[Write].size/2)
	all = append(all, write)
	for range 16 { // the other half of the writes' share
		small := p.Open(Write)
		reserve(t, small, p.smallLimit)
		all = append(all, small)
	}
	check(t, p, all...)
}

// A query that has grown gives back what it had of the small queries' share.
func TestPool_grown(t *testing.T) {
	p := New(128 * mib)
	var all []*Account
	for range 40 { // more than the share has places
		a := p.Open(Query)
		reserve(t, a, p.smallLimit/2)
		reserve(t, a, p.smallLimit)
		all = append(all, a)
	}
	if p.own[Query].used != 0 {
		t.Errorf("large queries have %d bytes of the small queries' share, want none", p.own[Query].used)
	}
	check(t, p, all...)
}

// A small query that waits while large ones wait for each other is not the one that
// is refused, though it is the youngest: its end would free nothing.
func TestPool_deadlockOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(128 * mib)
		for p.own[Query].fits(p.smallLimit) {
			reserve(t, p.Open(Query), p.smallLimit)
		}
		var group sync.WaitGroup
		errs := make([]error, 5)
		wait := func(i int, a *Account) {
			group.Go(func() {
				errs[i] = a.Reserve(t.Context(), mib)
				a.Close()
			})
			synctest.Wait()
		}
		var large []*Account
		for range 4 {
			a := p.Open(Query)
			reserve(t, a, p.common.size/4)
			large = append(large, a)
		}
		wait(4, p.Open(Query)) // the small one
		for i, a := range large {
			wait(i, a)
		}
		group.Wait()

		var busy *BusyError
		if !errors.As(errs[3], &busy) {
			t.Errorf("the youngest large query: %v, want that it is refused", errs[3])
		}
		for _, i := range []int{0, 1, 2, 4} {
			if errs[i] != nil {
				t.Errorf("%d: %v, want it served", i, errs[i])
			}
		}
	})
}

// Concurrent reservations of one account get no more together than the account may have, even if
// more is free: the one that exceeds it is refused.
//
//fault:waiters-pass-the-limit w.bytes => 0
func TestAccount_waitersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(128 * mib)
		holder, other := p.Open(Live), p.Open(Live)
		reserve(t, holder, p.accountLimit)
		reserve(t, other, p.accountLimit)

		a := p.Open(Live)
		errs := make(chan error, 3)
		for range 3 {
			go func() { errs <- a.Reserve(t.Context(), p.accountLimit/2) }()
		}
		synctest.Wait()
		holder.Close()
		other.Close()
		synctest.Wait()

		served, refused := 0, 0
		for range 3 {
			var large *LimitError
			switch err := <-errs; {
			case err == nil:
				served++
			case errors.As(err, &large):
				refused++
			default:
				t.Error(err)
			}
		}
		if served != 2 || refused != 1 {
			t.Errorf("%d served, %d refused, want 2 and 1", served, refused)
		}
		check(t, p, a)
	})
}

func TestAccount_waitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(128 * mib)
		holder, other := p.Open(Live), p.Open(Live) // they have no share of their own
		reserve(t, holder, p.accountLimit)
		reserve(t, other, p.accountLimit)
		order := make(chan int, 3)
		var accounts []*Account
		for i := range 3 {
			a := p.Open(Live)
			accounts = append(accounts, a)
			go func() {
				if err := a.Reserve(t.Context(), 10*mib); err != nil {
					t.Error(err)
				}
				order <- i
			}()
			synctest.Wait()
		}
		if len(order) != 0 {
			t.Fatal("a reservation was served, want all to wait")
		}
		for i := range 3 {
			holder.Release(10*mib + step) // the account keeps a step as spare
			synctest.Wait()
			if len(order) != 1 || <-order != i {
				t.Fatalf("release %d does not serve the reservation %d", i, i)
			}
		}
		check(t, p, append(accounts, holder, other)...)
	})
}

// A reservation stops waiting when its request ends, and after Patience. It then leaves the queue.
func TestAccount_waitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(128 * mib)
		holder := p.Open(Live)
		reserve(t, holder, p.accountLimit)
		began := time.Now()
		gone, leave := context.WithCancelCause(t.Context())
		first, second, third := p.Open(Live), p.Open(Live), p.Open(Live)
		reason := errors.New("the client has left")
		results := make(chan error, 3)
		go func() { results <- first.Reserve(gone, p.accountLimit) }()
		synctest.Wait()
		if err := <-results; err != nil { // fits
			t.Fatal(err)
		}
		go func() { results <- second.Reserve(gone, p.accountLimit) }()
		synctest.Wait()
		leave(reason)
		if err := <-results; !errors.Is(err, reason) {
			t.Errorf("got %v, want the reason why the request ended", err)
		}
		var busy *BusyError
		if err := third.Reserve(t.Context(), p.accountLimit); !errors.As(err, &busy) {
			t.Errorf("got %v, want a BusyError", err)
		}
		if waited := time.Since(began); waited != Patience {
			t.Errorf("waited %s, want %s", waited, Patience)
		}
		if len(p.queue) != 0 {
			t.Errorf("%d wait, want none", len(p.queue))
		}
		check(t, p, holder, first, second, third)
	})
}

// Requests that hold all the memory and each wait for more would wait for ever: the
// youngest is refused immediately, and the others end.
func TestPool_deadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(128 * mib)
		const requests = 4
		var group sync.WaitGroup
		began, served, refused := time.Now(), 0, 0
		var mu sync.Mutex
		var accounts []*Account
		for range requests {
			a := p.Open(Query)
			reserve(t, a, p.common.size/requests)
			accounts = append(accounts, a)
		}
		for i, a := range accounts {
			group.Go(func() {
				defer a.Close()
				time.Sleep(time.Duration(i) * time.Millisecond)
				err := a.Reserve(t.Context(), 2*maxSmall)
				mu.Lock()
				defer mu.Unlock()
				var busy *BusyError
				switch {
				case err == nil:
					served++
				case errors.As(err, &busy):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		if served == 0 || refused == 0 || time.Since(began) >= Patience {
			t.Errorf("%d served, %d refused after %s, want some of both before the patience ends", served, refused,
				time.Since(began))
		}
		if p.common.used != 0 || p.own[Query].used != 0 || len(p.queue) != 0 {
			t.Errorf("%d bytes in common and %d of the queries' share are taken, %d wait, want none", p.common.used,
				p.own[Query].used, len(p.queue))
		}
	})
}

// Try never waits: it reserves what is free, at most half of what is common, or nothing.
func TestAccount_Try(t *testing.T) {
	p := New(128 * mib)
	a, b := p.Open(Live), p.Open(Live)
	if !a.Try(p.accountLimit) || a.Try(step) {
		t.Error("one account may have half of the common share, no more")
	}
	if !b.Try(p.accountLimit-step) || b.Try(2*step) || !b.Try(step) {
		t.Error("want the free bytes, no more")
	}
	check(t, p, a, b)
	b.Close()
	if b.Try(1) {
		t.Error("a closed account has memory")
	}
	check(t, p, a, b)
}

func TestAccount_heavy(t *testing.T) {
	p := New(128 * mib)
	a := p.Open(Query)
	refusal, calls := errors.New("too many"), 0
	a.Heavy(2*mib, func(context.Context) error { calls++; return refusal })
	reserve(t, a, 2*mib)
	if err := a.Reserve(context.Background(), mib); !errors.Is(err, refusal) || calls != 1 {
		t.Errorf("got %v after %d calls, want the refusal", err, calls)
	}
	if a.Held() != 2*mib {
		t.Errorf("%d bytes are held", a.Held())
	}
	check(t, p, a)
}

func TestPool_Cache(t *testing.T) {
	p := New(128 * mib)
	common := p.common.size
	share := p.Cache(1 << 40)
	if share != 128*mib/20 {
		t.Errorf("got %d bytes, want a twentieth", share)
	}
	if got := p.Cache(mib); got != mib || p.common.size != common-share-mib || p.Stats().Caches != share+mib {
		t.Errorf("got %d bytes, %d are left in common, %d are the caches', want 1 MiB and both shares counted", got,
			p.common.size, p.Stats().Caches)
	}
	for budget, want := range map[int64]int64{1024 * mib: 128 * mib, 128 * mib: 128 * mib / 20} {
		if got := New(budget).LargeCache(1 << 40); got != want {
			t.Errorf("of a budget of %d a large cache got %d bytes, want %d", budget, got, want)
		}
	}
}

func TestLease(t *testing.T) {
	p := New(128 * mib)
	a := p.Open(Query)
	ctx, cancel := context.WithCancelCause(With(context.Background(), a))
	l := NewLease(ctx)
	for _, n := range []int64{10, 7, 30} { // it never shrinks
		if err := l.Grow(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Check(); err != nil || a.Held() != 30 {
		t.Errorf("got %v with %d bytes held, want 30", err, a.Held())
	}
	l.Release(100)
	if a.Held() != 0 {
		t.Errorf("%d bytes are held", a.Held())
	}
	reason := errors.New("gone")
	cancel(reason)
	if l.Check() != reason {
		t.Errorf("got %v, want the cause of the cancellation", l.Check())
	}
	if err := l.Reserve(10 * mib); err != reason {
		t.Errorf("got %v, want %v", err, reason)
	}
}

// TestPool_conserves: requests never hold more than there is, and nothing at the end.
func TestPool_conserves(t *testing.T) {
	seed := seedtest.Of(t)
	synctest.Test(t, func(t *testing.T) {
		p := New(128 * mib)
		p.Cache(8 * mib)
		var accounts []*Account
		var group sync.WaitGroup
		for i := range 40 {
			draw := rand.New(rand.NewPCG(seed, uint64(i)))
			a := p.Open(Class(draw.IntN(int(classes))))
			accounts = append(accounts, a)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(draw.IntN(30))*time.Second)
			var workers sync.WaitGroup
			for w := range 2 {
				draw := rand.New(rand.NewPCG(seed, uint64(1000+2*i+w)))
				workers.Go(func() {
					l := NewLease(With(ctx, a))
					for range 20 {
						if l.Reserve(draw.Int64N(16*mib)) != nil {
							break
						}
						time.Sleep(time.Duration(draw.IntN(1000)) * time.Millisecond)
						l.Release(draw.Int64N(16 * mib))
					}
					if draw.IntN(2) == 0 {
						l.Close()
					}
				})
			}
			group.Go(func() {
				defer cancel()
				if i%3 == 0 { // the request ends, even if its goroutines still run
					<-ctx.Done()
					a.Close()
				}
				workers.Wait()
				a.Close()
			})
		}
		for range 100 {
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			check(t, p, accounts...)
		}
		group.Wait()
		check(t, p, accounts...)
		if p.common.used != 0 || p.holds != [classes]int64{} || len(p.queue) != 0 {
			t.Errorf("%d bytes are held in common, %v by class, %d wait, want none", p.common.used, p.holds,
				len(p.queue))
		}
	})
}
