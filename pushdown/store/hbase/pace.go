package hbase

import (
	"errors"
	"sync"
	"time"
)

// Row mutations in one call to one region. What a region refuses has to be sent
// again, so no more is staked on one than it has lately taken.
const (
	firstWindow = 256        // of a region not written to before
	fullWindow  = maxActions // what a region gets that takes everything
	leastSoft   = 64         // up to there a window always grows fast
	windowStep  = 64         // what it grows by then
)

// window is how many row mutations a region gets in one call. A refusal brings
// it down to one: the next call asks whether the region takes writes again, and
// little is sent in vain. From there it grows fourfold with each call that was
// taken, up to half of where the refusal met it, and by steps then.
type window struct {
	size int
	soft int // where fast growth ends
}

func newWindow() window { return window{size: firstWindow, soft: fullWindow} }

// refuse notes that a region took no writes.
func (w *window) refuse() {
	if w.size > 1 {
		w.soft = max(leastSoft, w.size/2)
	}
	w.size = 1
}

// lose notes that a call was lost, which may have been done or not.
func (w *window) lose() {
	w.size = max(1, w.size/2)
	w.soft = max(leastSoft, w.size)
}

// acquire notes that a region took n row mutations. Calls that did not fill the
// window tell nothing of a larger one.
func (w *window) acquire(n int) {
	switch {
	case 2*n < w.size:
	case w.size < w.soft:
		w.size = min(4*w.size, w.soft)
	default:
		w.size = min(w.size+windowStep, fullWindow)
	}
}

// bytes is what goes into one call beside the count.
func (w *window) bytes() int { return maxOutBytes / fullWindow * w.size }

// mostPaces bounds the regions whose pace is remembered.
const mostPaces = 10_000

// paces say when and how much each region is sent next, by name.
//
// One that has refused writes is asked again by one call at a time, and after
// ever longer. One that has not answered a call whose caller has left gets no
// other write until it answers, or cannot do the first any more: that may still
// be waiting at the server, and overwrite what was sent behind it and
// acknowledged.
type paces struct {
	mu      sync.Mutex
	regions map[string]*pace
}

type pace struct {
	window
	shrunk  time.Time     // when the window was made smaller; what was sent before says nothing new
	delay   time.Duration // between attempts while it refuses writes; 0 while it takes them
	until   time.Time     // of the next attempt
	out     int           // calls under way
	pending int           // calls of unknown fate, whose callers have left
}

// Errors of regions that are not sent anything now.
var (
	errPending = errors.New("an earlier write is not answered yet")
	errBusy    = errors.New("the region has lately refused writes")
)

// now returns how much may be sent now.
func (p *pace) now(now time.Time) (window, error) {
	switch {
	case p.pending > 0:
		return window{}, errPending
	case p.delay > 0 && (p.out > 0 || now.Before(p.until)):
		return window{}, errBusy
	}
	return p.window, nil
}

// of returns a region's pace; the lock is held.
func (p *paces) of(region []byte) *pace {
	if at := p.regions[string(region)]; at != nil {
		return at
	}
	if p.regions == nil {
		p.regions = map[string]*pace{}
	}
	if len(p.regions) >= mostPaces {
		for name, at := range p.regions {
			if at.pending == 0 && at.out == 0 {
				delete(p.regions, name)
			}
		}
	}
	at := &pace{window: newWindow()}
	p.regions[string(region)] = at
	return at
}

// window returns how much a region gets now, or why nothing.
func (p *paces) window(region []byte) (window, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(region).now(time.Now())
}

// begin notes a call to some regions, and end its end.
func (p *paces) begin(call []*share) { p.add(call, 1) }
func (p *paces) end(call []*share)   { p.add(call, -1) }

func (p *paces) add(call []*share, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range call {
		p.of(s.loc.name).out += n
	}
}

// taken notes that a region took n row mutations.
func (p *paces) taken(region []byte, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.of(region)
	at.acquire(n)
	at.delay = 0
}

// lost notes that a call sent at a time was lost with its connection.
func (p *paces) lost(region []byte, sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.of(region); !sent.Before(at.shrunk) {
		at.lose()
		at.shrunk = time.Now()
	}
}

// refused notes that a region refused a call sent at a time, of which several
// may have met the same fault.
func (p *paces) refused(region []byte, sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, now := p.of(region), time.Now()
	if sent.Before(at.shrunk) {
		return
	}
	at.refuse()
	at.shrunk = now
	at.delay = max(firstBusy, min(2*at.delay, lastBusy))
	at.until = now.Add(jitter(at.delay))
}

// leave notes a call of unknown fate, and returns what is to be called once its
// fate is known.
func (p *paces) leave(call []*share) (settled func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []*pace
	for _, s := range call {
		at := p.of(s.loc.name)
		at.pending++
		left = append(left, at)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, at := range left {
			at.pending--
		}
	}
}
