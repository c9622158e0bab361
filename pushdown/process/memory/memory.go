// Package memory is the process's budget of bytes. Code that is about to hold bytes for
// a client (a query's columns, a body being read, a live query's state) reserves them
// first, in an account of the request, and the account releases everything when the
// request ends. A reservation that does not fit waits, in the order of arrival, or is
// refused: with a *LimitError when the request alone is too large, with a *BusyError
// when others hold the memory.
//
// The budget has three shares, so that no kind of work can starve another:
//
//	query   queries as long as they are small, which therefore overtake large ones
//	write   bodies and batches of puts; half of it only for small ones
//	common  everything else, and reservations that do not fit their own share
//
// Caches take their bytes from the budget once, at start (Pool.Cache).
//
// Reservations are estimates of what Go will allocate; each is of some KiB, never of one point. The
// pool keeps a quarter of the process's memory free for uncounted memory: garbage, stacks, buffers
// of connections.
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
	Live // the work of a live query, which has no share of its own
	classes
)

// String returns the name of the class in metrics.
func (c Class) String() string {
	return [classes]string{"query", "write", "live"}[c]
}

const (
	// Patience is how long a reservation waits for other requests to give memory back.
	Patience = 10 * time.Second
	// Least is the smallest budget that a process can work with.
	Least = 64 << 20
	// step is the least that an account takes from the pool in one call.
	step = 64 << 10
)

// Pool is a process's budget. Many goroutines may use it; nil is a pool without bound.
type Pool struct {
	total int64

	mu           sync.Mutex
	caches       int64          // taken by caches
	own          [classes]share // by class; that of Live is empty
	common       share
	accountLimit int64 // of the common share, what one account may hold
	smallLimit   int64 // what a small request holds at most
	holds        [classes]int64
	queue        []*waiter // in the order of arrival
	turns        []*waiter // for the turn, likewise; see Account.Turn
	turn         *Account  // has the turn; nil if none has
	opened       uint64    // accounts so far
	refused      [classes]int64
}

// share is a part of the budget, in bytes.
type share struct{ size, used int64 }

// fits reports whether n more bytes are free.
func (s *share) fits(n int64) bool { return s.used+n <= s.size }

// waiter is a reservation that waits for memory.
type waiter struct {
	account *Account
	bytes   int64
	done    chan error // buffered; gets nil once the account has the bytes
}

// Reservations may hold three quarters of the process's memory. An eighth of these is
// the share of queries, and an eighth that of writes. A request is small up to 1/32 of
// such a share, within bounds, so that many are served concurrently.
const (
	reservable = 3.0 / 4
	ownShare   = 1.0 / 8
	minSmall   = 256 << 10
	maxSmall   = 4 << 20
)

// New returns a pool for a process that may hold total bytes. One account may have half of
// the common share.
func New(total int64) *Pool {
	p := &Pool{total: total}
	all := int64(float64(total) * reservable)
	own := int64(float64(all) * ownShare)
	p.own[Query].size, p.own[Write].size = own, own
	p.common.size = all - 2*own
	p.accountLimit = p.common.size / 2
	p.smallLimit = min(max(own/32, minSmall), maxSmall)
	return p
}

// Total returns the process's budget in bytes, 0 for no bound.
func (p *Pool) Total() int64 {
	if p == nil {
		return 0
	}
	return p.total
}

// CacheShare returns the most that one cache may hold of a budget: a twentieth, so
// that several caches leave most of it to requests.
func CacheShare(total int64) int64 { return total / 20 }

// Cache takes bytes from the budget for as long as the process runs, and returns how
// many a cache may hold: want, or CacheShare if that is less.
func (p *Pool) Cache(want int64) int64 { return p.cache(want, CacheShare) }

// LargeCache is Cache for the one without which a process cannot do its work at its pace:
// of a budget of 512 MiB and more it may hold an eighth. A smaller one is needed for requests.
func (p *Pool) LargeCache(want int64) int64 {
	return p.cache(want, func(total int64) int64 {
		if total < 512<<20 {
			return CacheShare(total)
		}
		return total / 8
	})
}

func (p *Pool) cache(want int64, share func(total int64) int64) int64 {
	if p == nil {
		return want
	}
	p.mu.Lock()
	defer p.mu.Unlock()

	// Each cache leaves at least half of what the common share still has.
	got := max(0, min(want, share(p.total), p.common.size/2))
	p.caches += got
	p.common.size -= got
	p.accountLimit = p.common.size / 2
	return got
}

// Stats is the state of a pool at one moment.
type Stats struct {
	Total, Caches int64          // bytes
	Held          [classes]int64 // bytes by class
	Waiting       int            // reservations, and refused requests, that wait
	Refused       [classes]int64 // reservations refused since the start, by class
}

// Stats returns the state of the pool.
func (p *Pool) Stats() Stats {
	if p == nil {
		return Stats{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{
		Total:   p.total,
		Caches:  p.caches,
		Held:    p.holds,
		Waiting: len(p.queue) + len(p.turns),
		Refused: p.refused,
	}
}

// LimitError is returned when a request is too large by itself.
type LimitError struct {
	Need, Limit int64 // bytes of the request
}

// Error contains both numbers.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the request needs %d bytes of memory or more, one request may have %d", e.Need, e.Limit)
}

// Refused reports whether an error is one of this package's refusals.
func Refused(err error) bool {
	var large *LimitError
	var busy *BusyError
	return errors.As(err, &large) || errors.As(err, &busy)
}

// BusyError is returned when a request would fit, but not together with the requests
// that hold memory now: it may be sent again.
type BusyError struct {
	Need  int64 // bytes of the reservation
	Total int64 // the process's budget
}

// Error contains both numbers.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%d bytes of memory are not free: other requests hold the budget of %d", e.Need, e.Total)
}
