// Package pacer slows down background work: it keeps a rate, waits while queries run, and slows
// down while the store's calls take longer than before.
package pacer

import (
	"context"
	"sync"
	"time"

	"downpour/pushdown/process/wait"
)

const (
	// YieldMost is how long a page waits at most while queries run: if they always do, the work
	// continues slowly.
	YieldMost = 5 * time.Second
	// YieldLook is the time between two looks whether queries still run.
	YieldLook = 50 * time.Millisecond
	// Slowest is the part of the rate that remains while calls are slow.
	Slowest = 1.0 / 16
)

// Pacer decides when the next page of work may begin. Its methods may be called from
// many goroutines; pages come one after another.
type Pacer struct {
	most float64    // cost a second
	busy func() int // queries, or parts of them, that run

	mu          sync.Mutex
	rate        float64 // cost a second now
	reads       callTime
	changes     callTime
	began, next time.Time     // of the page before; when the next one may begin
	yielded     time.Duration // in all
}

// New returns a pacer of a rate, in the unit of Done. busy returns how many queries run; nil for
// none.
func New(most float64, busy func() int) *Pacer {
	if busy == nil {
		busy = func() int { return 0 }
	}
	return &Pacer{most: most, rate: most, busy: busy}
}

// Wait waits until a page may begin: queries run first, and the rate is kept. Time that was
// not used is not made up for.
func (p *Pacer) Wait(ctx context.Context) error {
	began := time.Now()
	for p.busy() > 0 && time.Since(began) < YieldMost {
		if wait.For(ctx, YieldLook) != nil {
			return context.Cause(ctx)
		}
	}
	p.mu.Lock()
	p.yielded += time.Since(began)
	early := time.Until(p.next)
	p.mu.Unlock()

	if wait.For(ctx, early) != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = time.Now()
	p.next = p.began
	return ctx.Err()
}

// Done reports the cost of a page after its end.
func (p *Pacer) Done(cost float64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	// Calls of loaded servers take longer, no matter who causes the load.
	if p.reads.slow() || p.changes.slow() {
		p.rate = max(p.rate*0.7, p.most*Slowest)
	} else {
		p.rate = min(p.rate*1.1, p.most)
	}
	p.next = p.began.Add(time.Duration(cost / p.rate * float64(time.Second)))
}

// State returns the rate of now and how long pages have waited for queries.
func (p *Pacer) State() (rate float64, yielded time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rate, p.yielded
}

// Read reports a call that has read, and its units of work.
func (p *Pacer) Read(took time.Duration, units float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads.add(took, units)
}

// Changed reports a call that has written.
func (p *Pacer) Changed(took time.Duration, units float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes.add(took, units)
}

// callTime is how long calls of one kind take for a unit of work: lately, and at their best.
type callTime struct {
	lately, best float64 // seconds; 0 before the first call
}

const (
	latelyShare = 0.2    // of a call in lately
	forget      = 1.002  // by which best grows with each call, so that it follows lasting changes
	slowFactor  = 2      // lately is slow if it is so many times best
	slowLeast   = 200e-6 // and so much longer, in seconds: shorter ones are noise
)

func (c *callTime) add(took time.Duration, units float64) {
	each := took.Seconds() / units
	if c.best == 0 {
		c.lately, c.best = each, each
		return
	}
	c.lately += latelyShare * (each - c.lately)
	c.best = min(c.best*forget, each)
}

func (c *callTime) slow() bool { return c.lately > slowFactor*c.best+slowLeast }
