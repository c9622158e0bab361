package hbase

import (
	"sync"
	"time"

	"downpour/pushdown/store/hbase/regions"
)

// How many row mutations a region gets in one call. Refused mutations must be sent again, so a
// region gets no more than it has lately accepted.
const (
	initialWindow = 256        // of a region that was not written to before
	maxWindow     = maxActions // of a region that accepts everything
	minThreshold  = 64         // a window always grows fast up to this size
	windowStep    = 64         // what a window grows by above its threshold
)

// window is how many row mutations a region gets in one call. It grows and shrinks like
// TCP's congestion window. A refusal shrinks it to one: the next call checks whether
// the region accepts writes again, and little is wasted. From there it grows fourfold
// with each accepted call up to the threshold, half of the size that was refused, and
// by windowStep from there on.
type window struct {
	size      int
	threshold int
}

func newWindow() window { return window{size: initialWindow, threshold: maxWindow} }

// shrinkRefused shrinks the window after a region has refused writes.
func (w *window) shrinkRefused() {
	// Further refusals of single mutations do not change the threshold.
	if w.size > 1 {
		w.threshold = max(minThreshold, w.size/2)
	}
	w.size = 1
}

// shrinkLost shrinks the window after a call was lost, which may have been executed
// or not.
func (w *window) shrinkLost() {
	w.size = max(1, w.size/2)
	w.threshold = max(minThreshold, w.size)
}

// grow enlarges the window after a region has accepted n row mutations: fast up to the
// threshold, and step by step from there.
func (w *window) grow(n int) {
	switch {
	case 2*n < w.size:
		// The call did not fill half of the window, so it is no evidence for a larger one.
	case w.size < w.threshold:
		w.size = min(4*w.size, w.threshold)
	default:
		w.size = min(w.size+windowStep, maxWindow)
	}
}

// bytes returns how many bytes of cells fit into a call, in proportion to the size.
func (w *window) bytes() int { return maxOutBytes / maxWindow * w.size }

// maxPaces bounds the regions whose pace is kept.
const maxPaces = 10_000

// pacer decides when each region is sent writes, and how many.
//
// A region that has refused writes gets one call at a time, after longer and longer
// delays. A region that has not answered a write whose caller has left gets no other
// write until it answers or can no longer execute the first one: that may still be
// waiting at the server, and would overwrite later acknowledged writes.
type pacer struct {
	mu      sync.Mutex
	regions map[string]*pace // by region name
}

// pace is the pacer's state of one region.
type pace struct {
	window
	shrunk      time.Time     // when the window last shrank; calls sent before report the same fault
	delay       time.Duration // between attempts while the region refuses writes; 0 while it accepts them
	nextAttempt time.Time     // end of the delay
	inFlight    int           // calls under way
	abandoned   int           // calls of unknown outcome whose callers have left
}

// allowed returns how much may be sent at a time, or errWritePending or
// regions.ErrRegionBusy.
func (p *pace) allowed(now time.Time) (window, error) {
	switch {
	case p.abandoned > 0:
		// That call could overwrite what is sent, and acknowledged, now.
		return window{}, errWritePending
	case p.delay > 0 && (p.inFlight > 0 || now.Before(p.nextAttempt)):
		// A region that refuses writes gets one call at a time.
		return window{}, regions.ErrRegionBusy
	}
	return p.window, nil
}

// paceLocked returns the pace of a region, a new one if there is none. p.mu is
// held.
func (p *pacer) paceLocked(region []byte) *pace {
	if known := p.regions[string(region)]; known != nil {
		return known
	}

	if p.regions == nil {
		p.regions = map[string]*pace{}
	}
	// Regions come and go with splits. A pace with calls under way must be kept, because their end
	// is counted in it.
	if len(p.regions) >= maxPaces {
		for name, old := range p.regions {
			if old.abandoned == 0 && old.inFlight == 0 {
				delete(p.regions, name)
			}
		}
	}

	fresh := &pace{window: newWindow()}
	p.regions[string(region)] = fresh
	return fresh
}

// window returns how much a region may be sent now, or errWritePending or
// regions.ErrRegionBusy.
func (p *pacer) window(region []byte) (window, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.paceLocked(region).allowed(time.Now())
}

// callStarted counts a call to the regions of batches as under way, callEnded as
// ended.
func (p *pacer) callStarted(batches []*regionBatch) { p.addInFlight(batches, 1) }
func (p *pacer) callEnded(batches []*regionBatch)   { p.addInFlight(batches, -1) }

func (p *pacer) addInFlight(batches []*regionBatch, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, b := range batches {
		p.paceLocked(b.loc.Name).inFlight += n
	}
}

// accepted reports that a region has executed n row mutations.
func (p *pacer) accepted(region []byte, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()

	at := p.paceLocked(region)
	at.grow(n)
	at.delay = 0
}

// lost reports that a call, sent at the given time, was lost. Of several calls that
// met the same fault, only the first counts.
func (p *pacer) lost(region []byte, sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if at := p.paceLocked(region); !sent.Before(at.shrunk) {
		at.shrinkLost()
		at.shrunk = time.Now()
	}
}

// refused reports that a region has refused a call sent at the given time. Of
// several calls that met the same fault, only the first counts.
func (p *pacer) refused(region []byte, sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()

	at, now := p.paceLocked(region), time.Now()
	if sent.Before(at.shrunk) {
		return
	}

	at.shrinkRefused()
	at.shrunk = now
	at.delay = max(regions.FirstBusyDelay, min(2*at.delay, regions.LastBusyDelay))
	at.nextAttempt = now.Add(regions.Jitter(at.delay))
}

// abandoned reports that the caller of a write has left before its reply. The
// regions of the write get no other one until resolved is called.
func (p *pacer) abandoned(batches []*regionBatch) (resolved func()) {
	p.mu.Lock()
	defer p.mu.Unlock()

	var paces []*pace
	for _, b := range batches {
		at := p.paceLocked(b.loc.Name)
		at.abandoned++
		paces = append(paces, at)
	}

	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()

		for _, at := range paces {
			at.abandoned--
		}
	}
}
