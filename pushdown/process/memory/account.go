package memory

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Account is the memory that one request holds. Its methods may be called from many
// goroutines. Those of a nil account do nothing: it is the account of work without a
// bound.
type Account struct {
	pool   *Pool
	class  Class
	number uint64 // accounts are numbered in the order of Open

	// heavy is called before the account gets more, once it holds more than heavyAt
	// bytes; see Heavy.
	heavyAt int64
	heavy   func(context.Context) error

	mu     sync.Mutex
	used   int64 // reserved by the request
	spare  int64 // taken from the pool and not reserved by the request
	closed bool

	// Bytes taken from the pool, by share. The pool's lock guards these.
	own, common int64
}

// Open returns an account. Close gives back what it holds.
func (p *Pool) Open(class Class) *Account {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()

	p.opened++
	return &Account{pool: p, class: class, number: p.opened}
}

// Heavy makes the account call wait whenever more is reserved while it holds more than
// at bytes. wait may wait for other requests to end; the reservation returns its error.
// Heavy must be called before the account is used.
func (a *Account) Heavy(at int64, wait func(context.Context) error) {
	if a != nil {
		a.heavyAt, a.heavy = at, wait
	}
}

// Reserve reserves n more bytes, which must not be allocated before. It waits for other
// requests to give memory back, at most for Patience and not after ctx has ended. It
// returns a *LimitError, a *BusyError, or the cause of ctx's end.
func (a *Account) Reserve(ctx context.Context, n int64) error {
	// A lease that already holds enough reserves nothing, or a negative number.
	if a == nil || n <= 0 {
		return nil
	}

	a.mu.Lock()
	missing := n - a.spare
	if missing <= 0 { // most reservations end here, without the pool's lock
		a.spare -= n
		a.used += n
		a.mu.Unlock()
		return nil
	}
	// Spare bytes are now part of this reservation: other goroutines of the request must not use
	// them.
	spared := a.spare
	a.spare = 0
	heavy := a.heavy != nil && a.used+n > a.heavyAt
	a.mu.Unlock()

	// The lock is not held while the reservation waits: other goroutines of the request continue,
	// and one of them may be the one that releases memory. Whole steps are taken, so that most
	// reservations find enough spare bytes.
	taken := (missing + step - 1) / step * step
	err := error(nil)
	if heavy { // it waits for its turn before it takes more
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
		a.returnSpare()
		return err
	case a.closed: // the request has ended
		a.pool.giveBack(a, taken+spared)
		return context.Canceled
	}
	a.used += n
	a.spare += taken - missing
	return nil
}

// Try reserves n more bytes if they are free, and reports whether they were. It is for
// memory that the request can do without.
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
		if !a.pool.tryReserve(a, taken) {
			return false
		}
		a.spare += taken
	}
	a.spare -= n
	a.used += n
	return true
}

// Release gives back n bytes that were reserved.
func (a *Account) Release(n int64) {
	if a == nil || n <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.closed { // Close has given it back
		return
	}
	a.used -= n
	a.spare += n
	a.returnSpare()
}

// returnSpare returns spare bytes to the pool except one step, which the next reservation can take
// without the pool's lock. The caller holds the account's lock.
func (a *Account) returnSpare() {
	keep := int64(step)
	if a.closed {
		keep = 0
	}
	// Less than a step is not worth the pool's lock, except at the end.
	if surplus := a.spare - keep; surplus > 0 && (a.closed || surplus >= step) {
		a.spare -= surplus
		a.pool.giveBack(a, surplus)
	}
}

// Held returns the number of bytes that are reserved.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Close releases everything. A Release after it does nothing.
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
	a.returnSpare()
}

// reserve takes n bytes from the pool for an account, or waits for them.
func (p *Pool) reserve(ctx context.Context, a *Account, n int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	if err := p.checkLimitLocked(a, n); err != nil {
		p.mu.Unlock()
		return err
	}
	// Earlier waiters come first in the common share. Free bytes in the share of a class have no
	// waiters.
	if p.takeOwnLocked(a, n) || len(p.queue) == 0 && p.takeCommonLocked(a, n) {
		p.mu.Unlock()
		return nil
	}

	w := &waiter{account: a, bytes: n, done: make(chan error, 1)}
	p.queue = append(p.queue, w)
	// With this reservation all holders of memory may be waiting.
	p.breakDeadlockLocked()
	p.mu.Unlock()

	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return p.stopWaiting(&p.queue, w, context.Cause(ctx))
	case <-timer.C:
		return p.stopWaiting(&p.queue, w, &BusyError{Need: n, Total: p.total})
	}
}

// tryReserve takes n bytes if they are free and have no waiters.
func (p *Pool) tryReserve(a *Account, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.takeOwnLocked(a, n) || len(p.queue) == 0 && a.common+n <= p.accountLimit && p.takeCommonLocked(a, n)
}

// checkLimitLocked returns a *LimitError for a reservation that would not fit if the
// request were alone.
func (p *Pool) checkLimitLocked(a *Account, n int64) error {
	if held := a.common + n; held > p.accountLimit && !p.fitsOwnLocked(a, n) {
		p.refused[a.class]++
		return &LimitError{Need: held + a.own, Limit: p.accountLimit}
	}
	return nil
}

// fitsOwnLocked reports whether the share of the account's class has n bytes for it. Only small
// queries have a share; large writes may use half of theirs.
func (p *Pool) fitsOwnLocked(a *Account, n int64) bool {
	s := &p.own[a.class]
	small := a.common == 0 && a.own+n <= p.smallLimit
	return s.fits(n) && (small || a.class == Write && s.used+n <= s.size/2)
}

// takeOwnLocked takes n bytes from the share of the account's class, if they fit.
func (p *Pool) takeOwnLocked(a *Account, n int64) bool {
	if !p.fitsOwnLocked(a, n) {
		return false
	}
	p.own[a.class].used += n
	a.own += n
	p.holds[a.class] += n
	return true
}

// takeCommonLocked takes n bytes from the common share, if they fit.
func (p *Pool) takeCommonLocked(a *Account, n int64) bool {
	if !p.common.fits(n) {
		return false
	}
	p.common.used += n
	a.common += n
	p.holds[a.class] += n

	// A query that is no longer small leaves the share of queries, if all of it fits into the
	// common share: otherwise large queries, which may wait long, would hold up small ones.
	if a.class == Query && a.own > 0 && p.common.fits(a.own) {
		p.common.used += a.own
		p.own[Query].used -= a.own
		a.common += a.own
		a.own = 0
	}
	return true
}

// giveBack returns n bytes, those of the common share first, and serves waiters.
func (p *Pool) giveBack(a *Account, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.holds[a.class] -= n
	common := min(n, a.common)
	a.common -= common
	p.common.used -= common
	a.own -= n - common
	p.own[a.class].used -= n - common
	p.serveWaitersLocked()
	// Each waiter that was not served may hold what another one waits for.
	p.breakDeadlockLocked()
}

// serveWaitersLocked gives memory to those that wait, in order. While the first one
// does not fit, others are served from the share of their class only.
func (p *Pool) serveWaitersLocked() {
	for again := true; again; {
		blocked, before := false, p.own[Query].used
		p.queue = slices.DeleteFunc(p.queue, func(w *waiter) bool {
			// Others of the account that waited with it may have got all that it may have.
			err := p.checkLimitLocked(w.account, w.bytes) //fault:waiters-pass-the-limit TestAccount_waitersTogether
			if err != nil {
				w.done <- err
				return true
			}
			if p.takeOwnLocked(w.account, w.bytes) || !blocked && p.takeCommonLocked(w.account, w.bytes) {
				w.done <- nil
				return true
			}
			blocked = true
			return false
		})
		// A query that has left the share of queries makes room there for others.
		again = p.own[Query].used < before
	}
}

// stopWaiting removes a waiter from its queue, p.queue or p.turns, and returns err. If the waiter
// was served at the same moment, it returns that result.
func (p *Pool) stopWaiting(queue *[]*waiter, w *waiter, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()

	i := slices.Index(*queue, w)
	if i < 0 {
		return <-w.done
	}
	*queue = slices.Delete(*queue, i, i+1)
	p.refused[w.account.class]++
	p.serveWaitersLocked() // it may have blocked later ones
	return err
}

// refusedFirst reports whether a is refused before b: a large request before a small one, whose end
// would free little; of two large or two small ones the one without the turn, or the younger.
func (p *Pool) refusedFirst(a, b *Account) bool {
	if largeA, largeB := a.common > p.smallLimit, b.common > p.smallLimit; largeA != largeB {
		return largeA
	}
	if (a == p.turn) != (b == p.turn) {
		return b == p.turn
	}
	return a.number > b.number
}

// breakDeadlockLocked ends a deadlock. If the whole common share is held by requests
// that wait for more, or for the turn, none of them would ever end. The youngest of
// them is refused, so that the oldest continues. A request that holds little is refused
// only if all of them do, because its end would free too little.
func (p *Pool) breakDeadlockLocked() {
	// A request that waits only for the turn gets it when its holder has ended.
	if len(p.queue) == 0 {
		return
	}

	waiting := map[*Account]bool{}
	held := int64(0)
	var youngest *waiter // of the large ones; of all that hold something if none is large
	for _, w := range slices.Concat(p.queue, p.turns) {
		if !waiting[w.account] {
			waiting[w.account] = true
			held += w.account.common
		}
		if w.account.common > 0 && (youngest == nil || p.refusedFirst(w.account, youngest.account)) {
			youngest = w
		}
	}

	// A request that waits alone has what it needs once the others have ended, because one may
	// not have more than half of the common share. While less is held by those that wait
	// than is used, somebody else holds some, and will give it back.
	if len(waiting) < 2 || held < p.common.used || youngest == nil {
		return
	}
	found := func(w *waiter) bool { return w == youngest }
	p.queue, p.turns = slices.DeleteFunc(p.queue, found), slices.DeleteFunc(p.turns, found)
	p.refused[youngest.account.class]++
	youngest.done <- &BusyError{Need: youngest.bytes, Total: p.total}
}
