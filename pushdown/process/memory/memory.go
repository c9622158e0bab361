// Package memory is the process's budget of bytes. Whoever is about to hold
// bytes for a client (a query's columns, a body being read, a live query's
// state) reserves them first, in an account of the request, and the account
// gives everything back when the request ends. What does not fit waits in the
// order of arrival, or is refused: with a *LimitError when the request alone is
// too large, with a *BusyError when others hold the memory.
//
// The budget has three shares, so that no kind of work can starve another:
//
//	light   queries as long as they are small, which pass beside large ones
//	writes  bodies and batches of puts, half of it of small ones
//	common  everything else, and what does not fit its own share
//
// Caches take their bytes from the budget once, at start (Pool.Cache).
//
// Reservations are estimates of what Go will allocate; they come in steps of
// some KiB, never point by point. The pool keeps a quarter of the process's
// memory free for what nobody counts: garbage, stacks, buffers of connections.
package memory

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Class is the kind of work that an account is for.
type Class uint8

// The classes of accounts.
const (
	Query Class = iota
	Write
	Live // a live query's work; it has no share of its own
	classes
)

// String names the class as metrics do.
func (c Class) String() string {
	return [classes]string{"query", "write", "live"}[c]
}

const (
	// Patience is how long a reservation waits for others to give memory back.
	Patience = 10 * time.Second
	// Least is the smallest budget that a process can work with.
	Least = 64 << 20
	// step is what accounts take from the pool at once, at least.
	step = 64 << 10
)

// Pool is a process's budget. It is for many goroutines; nil is no bound.
type Pool struct {
	total int64

	mu      sync.Mutex
	caches  int64
	own     [classes]share // light and writes; Live has none
	common  share
	most    int64 // of the common share that one account may hold
	light   int64 // what a small request holds at most
	holds   [classes]int64
	queue   []*waiter // in order of arrival
	opened  uint64
	refused [classes]int64
}

// share is a part of the budget, in bytes.
type share struct{ size, used int64 }

// fits tells whether n more bytes are left.
func (s *share) fits(n int64) bool { return s.used+n <= s.size }

// waiter is a reservation that waits.
type waiter struct {
	account *Account
	bytes   int64
	done    chan error // buffered; nil once the bytes are the account's
}

// Of the process's memory, reservations may hold three quarters; of these, an
// eighth each is for light queries and for writes. A request is small up to a
// thirty-second of such a share, within bounds, so that many are served at once.
const (
	reservable = 3.0 / 4
	ownShare   = 1.0 / 8
	lightLeast = 256 << 10
	lightMost  = 4 << 20
)

// New returns a pool for a process that may hold total bytes.
func New(total int64) *Pool {
	p := &Pool{total: total}
	usable := int64(float64(total) * reservable)
	own := int64(float64(usable) * ownShare)
	p.own[Query].size, p.own[Write].size = own, own
	p.common.size = usable - 2*own
	p.most = p.common.size / 2
	p.light = min(max(own/32, lightLeast), lightMost)
	return p
}

// Total is the process's budget in bytes, 0 for no bound.
func (p *Pool) Total() int64 {
	if p == nil {
		return 0
	}
	return p.total
}

// CacheShare is the most that one cache may hold of a budget: a twentieth, so that
// several of them leave most of it to requests.
func CacheShare(total int64) int64 { return total / 20 }

// Cache takes up to want bytes from the budget for good and returns how many a
// cache may hold: at most CacheShare.
func (p *Pool) Cache(want int64) int64 {
	if p == nil {
		return want
	}
	p.mu.Lock()
	defer p.mu.Unlock()

	got := max(0, min(want, CacheShare(p.total), p.common.size/2))
	p.caches += got
	p.common.size -= got
	p.most = p.common.size / 2
	return got
}

// Stats is who holds how much at a moment, in bytes.
type Stats struct {
	Total, Caches int64
	Held          [classes]int64 // by class
	Waiting       int            // reservations
	Refused       [classes]int64 // reservations since the start, by class
}

// Stats tells who holds how much.
func (p *Pool) Stats() Stats {
	if p == nil {
		return Stats{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{Total: p.total, Caches: p.caches, Held: p.holds, Waiting: len(p.queue), Refused: p.refused}
}

// LimitError is returned to a request that alone is too large.
type LimitError struct {
	Need, Limit int64 // bytes of the request
}

// Error tells both figures.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the request needs %d bytes of memory or more, one request may have %d", e.Need, e.Limit)
}

// Refused tells whether an error is one of this package's refusals.
func Refused(err error) bool {
	var large *LimitError
	var busy *BusyError
	return errors.As(err, &large) || errors.As(err, &busy)
}

// BusyError is returned to a request that fits, but not beside the others there
// are: it may be sent again.
type BusyError struct {
	Need  int64 // bytes that were asked for
	Total int64 // the process's budget
}

// Error tells both figures.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%d bytes of memory are not free: other requests hold the budget of %d", e.Need, e.Total)
}
