package background

import (
	"context"
	"sync"
	"time"

	"downpour/pushdown/compaction"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

const (
	// yieldMost is how long a page waits at most while queries run: where they always do,
	// the work goes on slowly.
	yieldMost = 5 * time.Second
	// yieldLook is the time between two looks whether queries still run.
	yieldLook = 50 * time.Millisecond
	// What a page of rows costs, and each of its rows that is only looked at, where one that is
	// compacted costs 1. A page may have no rows: then a metric was looked up.
	pageCost = 1
	lookCost = 0.1
	// slowest is the part of the rate that is left where calls stay slow.
	slowest = 1.0 / 16
)

// pacer says when the next page of rows may be read.
type pacer struct {
	most float64    // rows a second
	busy func() int // parts of queries that run

	mu          sync.Mutex
	rate        float64 // rows a second now
	reads       callTime
	changes     callTime
	began, next time.Time     // of the page before; when the next one may begin
	yielded     time.Duration // in all
}

func newPacer(most float64, busy func() int) *pacer {
	if busy == nil {
		busy = func() int { return 0 }
	}
	return &pacer{most: most, rate: most, busy: busy}
}

// page is the number of rows of a page: a page lasts a quarter of a second or less, so that
// little work comes at once.
func (p *pacer) page() int { return int(max(1, min(64, p.most/4))) }

// wait waits until a page may begin: queries run first, and the rate is kept. Time that was
// not used is not made up for.
func (p *pacer) wait(ctx context.Context) error {
	began := time.Now()
	for p.busy() > 0 && time.Since(began) < yieldMost {
		if wait.For(ctx, yieldLook) != nil {
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

// done tells of the page that has ended.
func (p *pacer) done(c compaction.Counts) {
	p.mu.Lock()
	defer p.mu.Unlock()

	// Where the store's servers have much to do their calls take longer, whoever it is for.
	if p.reads.slow() || p.changes.slow() {
		p.rate = max(p.rate*0.7, p.most*slowest)
	} else {
		p.rate = min(p.rate*1.1, p.most)
	}
	cost := pageCost + float64(c.Compacted) + lookCost*float64(c.Rows-c.Compacted)
	p.next = p.began.Add(time.Duration(cost / p.rate * float64(time.Second)))
}

// state returns the rate of now and how long pages have waited for queries.
func (p *pacer) state() (rate float64, yielded time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rate, p.yielded
}

// read and changed tell of calls to the store.
func (p *pacer) read(took time.Duration, versions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads.add(took, 1+float64(versions)/64)
}

func (p *pacer) changed(took time.Duration, rows int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes.add(took, float64(1+rows))
}

// callTime is how long calls of one kind take for a unit of work: lately, and at their best.
type callTime struct {
	lately, best float64 // seconds; 0 before the first call
}

const (
	latelyShare = 0.2    // of a call in lately
	forget      = 1.002  // by which best grows with each call, so that it follows what stays
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

// timed is a store that tells a pacer how long its calls take.
type timed struct {
	store.Versioned
	pace *pacer
}

// Versions implements store.Versioned.
func (t timed) Versions(ctx context.Context, table, family string, keys store.KeyRange, maxRows int) ([]store.VersionRow, []byte, error) {
	began := time.Now()
	rows, next, err := t.Versioned.Versions(ctx, table, family, keys, maxRows)
	versions := 0
	for _, row := range rows {
		versions += len(row.Versions)
	}
	t.pace.read(time.Since(began), versions)
	return rows, next, err
}

// ChangeIf implements store.Versioned.
func (t timed) ChangeIf(ctx context.Context, table, family string, changes []store.ConditionalChange) ([]bool, error) {
	began := time.Now()
	held, err := t.Versioned.ChangeIf(ctx, table, family, changes)
	t.pace.changed(time.Since(began), len(changes))
	return held, err
}
