package memory

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Account is what one request holds. All methods may be called from many
// goroutines; those of a nil account do nothing, for work that nobody bounds.
type Account struct {
	pool  *Pool
	class Class
	born  uint64 // ascending by the time of Open

	// heavy is asked once the account holds more than heavyAt bytes, before it
	// gets more; see Heavy.
	heavyAt int64
	heavy   func(context.Context) error

	mu     sync.Mutex
	used   int64 // reserved by the request
	spare  int64 // taken from the pool and not used yet
	closed bool

	// Of the pool's lock: what was taken, by share.
	own, common int64
}

// Open begins an account. Close gives back what it holds.
func (p *Pool) Open(class Class) *Account {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()

	p.opened++
	return &Account{pool: p, class: class, born: p.opened}
}

// Heavy has wait called whenever the account asks for more while it holds more
// than at bytes: it may wait for other requests to end, and its error is the
// reservation's. It is set before the account is used.
func (a *Account) Heavy(at int64, wait func(context.Context) error) {
	if a != nil {
		a.heavyAt, a.heavy = at, wait
	}
}

// Reserve takes n more bytes, before they are allocated. It waits for others to
// give memory back, at most Patience and not after ctx has ended. Errors are a
// *LimitError, a *BusyError, or the cause of ctx's end.
func (a *Account) Reserve(ctx context.Context, n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	a.mu.Lock()
	missing := n - a.spare
	if missing <= 0 {
		a.spare -= n
		a.used += n
		a.mu.Unlock()
		return nil
	}
	spared := a.spare
	a.spare = 0
	heavy := a.heavy != nil && a.used+n > a.heavyAt
	a.mu.Unlock()

	// The lock is not held while the reservation waits: other goroutines of the
	// request go on, and one of them may be the one that gives memory back.
	taken := (missing + step - 1) / step * step
	err := error(nil)
	if heavy {
		err = a.heavy(ctx)
	}
	if err == nil {
		err = a.pool.reserve(ctx, a, taken)
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err != nil:
		a.spare += spared
		a.trim()
		return err
	case a.closed: // the request ended while it waited
		a.pool.give(a, taken+spared)
		return context.Canceled
	}
	a.used += n
	a.spare += taken - missing
	return nil
}

// Try takes n more bytes if they are free, and tells whether they were: for memory
// that its holder can do without.
func (a *Account) Try(n int64) bool {
	if a == nil || n <= 0 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.closed {
		return false
	}
	if missing := n - a.spare; missing > 0 {
		taken := (missing + step - 1) / step * step
		if !a.pool.try(a, taken) {
			return false
		}
		a.spare += taken
	}
	a.spare -= n
	a.used += n
	return true
}

// Release gives n bytes back that were reserved.
func (a *Account) Release(n int64) {
	if a == nil || n <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.closed { // Close gave it back
		return
	}
	a.used -= n
	a.spare += n
	a.trim()
}

// trim hands what is spare back to the pool, but for a little that the next
// reservation can have without asking. The account's lock is held.
func (a *Account) trim() {
	keep := int64(step)
	if a.closed {
		keep = 0
	}
	if surplus := a.spare - keep; surplus > 0 && (a.closed || surplus >= step) {
		a.spare -= surplus
		a.pool.give(a, surplus)
	}
}

// Held is what is reserved, in bytes.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Close gives everything back. What is released later counts for nothing.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.closed {
		return
	}
	a.closed = true
	a.spare += a.used
	a.used = 0
	a.trim()
}

// reserve takes n bytes from the pool for an account, or waits for them.
func (p *Pool) reserve(ctx context.Context, a *Account, n int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	if err := p.refuseLocked(a, n); err != nil {
		p.mu.Unlock()
		return err
	}
	// Those who wait come first, but nobody waits for what is in a class's own
	// share.
	if p.takeOwnLocked(a, n) || len(p.queue) == 0 && p.takeCommonLocked(a, n) {
		p.mu.Unlock()
		return nil
	}
	w := &waiter{account: a, bytes: n, done: make(chan error, 1)}
	p.queue = append(p.queue, w)
	p.untangleLocked()
	p.mu.Unlock()

	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return p.leave(w, context.Cause(ctx))
	case <-timer.C:
		return p.leave(w, &BusyError{Need: n, Total: p.total})
	}
}

// try takes n bytes if they are free and nobody waits for them.
func (p *Pool) try(a *Account, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.takeOwnLocked(a, n) || len(p.queue) == 0 && a.common+n <= p.most && p.takeCommonLocked(a, n)
}

// refuseLocked refuses what could not be had with all others gone.
func (p *Pool) refuseLocked(a *Account, n int64) error {
	if held := a.common + n; held > p.most && !p.fitsOwnLocked(a, n) {
		p.refused[a.class]++
		return &LimitError{Need: held + a.own, Limit: p.most}
	}
	return nil
}

// fitsOwnLocked tells whether the share of the account's class has n bytes for it.
// A query that is not small has none, and large writes leave half of theirs to small
// ones.
func (p *Pool) fitsOwnLocked(a *Account, n int64) bool {
	s := &p.own[a.class]
	small := a.common == 0 && a.own+n <= p.light
	return s.fits(n) && (small || a.class == Write && s.used+n <= s.size/2)
}

func (p *Pool) takeOwnLocked(a *Account, n int64) bool {
	if !p.fitsOwnLocked(a, n) {
		return false
	}
	p.own[a.class].used += n
	a.own += n
	p.holds[a.class] += n
	return true
}

// takeCommonLocked takes from the common share. A query that grows into it leaves
// the light one if all of it fits: what waits there holds no light query up.
func (p *Pool) takeCommonLocked(a *Account, n int64) bool {
	if !p.common.fits(n) {
		return false
	}
	p.common.used += n
	a.common += n
	p.holds[a.class] += n

	if a.class == Query && a.own > 0 && p.common.fits(a.own) {
		p.common.used += a.own
		p.own[Query].used -= a.own
		a.common += a.own
		a.own = 0
	}
	return true
}

// give takes n bytes back, those of the common share first, and serves who waits.
func (p *Pool) give(a *Account, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.holds[a.class] -= n
	common := min(n, a.common)
	a.common -= common
	p.common.used -= common
	a.own -= n - common
	p.own[a.class].used -= n - common
	p.serveLocked()
	p.untangleLocked()
}

// serveLocked gives memory to those who wait, in order: nobody overtakes one whose
// turn it is, but by its own share.
func (p *Pool) serveLocked() {
	for again := true; again; {
		blocked, light := false, p.own[Query].used
		p.queue = slices.DeleteFunc(p.queue, func(w *waiter) bool {
			if p.takeOwnLocked(w.account, w.bytes) || !blocked && p.takeCommonLocked(w.account, w.bytes) {
				w.done <- nil
				return true
			}
			blocked = true
			return false
		})
		again = p.own[Query].used < light // somebody left the light share: others may fit
	}
}

// leave ends a wait with an error, unless the bytes have come in the same moment.
func (p *Pool) leave(w *waiter, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()

	i := slices.Index(p.queue, w)
	if i < 0 {
		return <-w.done
	}
	p.queue = slices.Delete(p.queue, i, i+1)
	p.refused[w.account.class]++
	p.serveLocked() // those behind it may fit
	return err
}

// refusedFirst tells whether a is to be refused before b: a large request before a
// small one, whose end would free little, and of two such the younger one.
func (p *Pool) refusedFirst(a, b *Account) bool {
	if largeA, largeB := a.common > p.light, b.common > p.light; largeA != largeB {
		return largeA
	}
	return a.born > b.born
}

// untangleLocked ends a deadlock: where everything that requests hold of the
// common share is held by requests that wait for more, none of them would ever
// end. The youngest of those is refused, so that the oldest goes on. Who holds
// little of it waits on as long as there is another: its end would help nobody.
func (p *Pool) untangleLocked() {
	if len(p.queue) < 2 {
		return
	}
	waiting := map[*Account]bool{}
	held := int64(0)
	var youngest *waiter // of the large ones; of all that hold something if none is large
	for _, w := range p.queue {
		if !waiting[w.account] {
			waiting[w.account] = true
			held += w.account.common
		}
		if w.account.common > 0 && (youngest == nil || p.refusedFirst(w.account, youngest.account)) {
			youngest = w
		}
	}

	if len(waiting) < 2 || held < p.common.used || youngest == nil {
		return
	}
	p.queue = slices.DeleteFunc(p.queue, func(w *waiter) bool { return w == youngest })
	p.refused[youngest.account.class]++
	youngest.done <- &BusyError{Need: youngest.bytes, Total: p.total}
}
