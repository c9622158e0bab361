package dispatch

import (
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// paceSamples is how many parts of a server say how fast it is, leastSamples how many there must be.
	paceSamples, leastSamples = 64, 8
	// partOverhead is added to the bytes of a part: one that reads little takes time, too.
	partOverhead = 64 << 10
	// leastLate is the least time after which a part is late: below it a second attempt gains nothing that is seen.
	leastLate = 50 * time.Millisecond
	// secondShare is the share of parts that may be started twice.
	secondShare = 0.05
	// slowFor is how long a region server counts as slow.
	slowFor = time.Minute
)

// paces know how long parts take at the pushdown servers, which region servers are slow, and how many parts may be
// started twice. They are shared by all runs.
type paces struct {
	perServer int // parts that a server executes of a run at a time

	mu     sync.Mutex           // also guards place.pace
	tokens float64              // one for each part that may be started twice now
	slow   map[string]time.Time // region servers, and when they were found to be slow
	// median is of p95 of the servers that are known, 0 if none is, good for so many parts more.
	median  float64
	goodFor int
}

// pace is what the last parts of a server took, in seconds per byte.
type pace struct {
	ring [paceSamples]float64
	n    int     // that were ever added
	p95  float64 // their 95th percentile
}

// newPaces returns the paces of some servers that execute perServer parts of a run at a time each. As many parts may
// be started twice at once as one server executes, and secondShare of the parts of a run.
func newPaces(servers, perServer int) *paces {
	p := &paces{perServer: perServer, slow: map[string]time.Time{}}
	p.tokens = p.most(servers)
	return p
}

// most returns how many tokens there are at most with so many servers.
func (p *paces) most(servers int) float64 {
	return float64(p.perServer) + secondShare*float64(servers*p.perServer*partsPerSlot)
}

// add counts a part that a server, one of so many, has executed.
func (p *paces) add(server *place, servers int, took time.Duration, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	s := &server.pace
	s.ring[s.n%paceSamples] = took.Seconds() / float64(bytes+partOverhead)
	s.n++
	last := slices.Sorted(slices.Values(s.ring[:min(s.n, paceSamples)]))
	s.p95 = last[len(last)*95/100]
	p.tokens = min(p.tokens+secondShare, p.most(servers))
	p.goodFor--
}

// late returns after what time a part of about so many bytes is late: at the 95th percentile of the median server. So
// a slow server changes neither what is expected of the others nor of itself. ok is false while that is not known.
func (p *paces) late(servers []*place, bytes int64) (after time.Duration, ok bool) {
	if bytes <= 0 {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()

	// A few parts of many servers hardly change it.
	if p.goodFor < 0 {
		p.median, p.goodFor = medianPace(servers), len(servers)/8
	}
	if p.median == 0 {
		return 0, false
	}
	seconds := p.median * float64(bytes+partOverhead)
	if seconds > math.MaxInt32 { // no time.Duration is longer than 292 years
		return 0, false
	}
	return max(leastLate, time.Duration(seconds*float64(time.Second))), true
}

// medianPace returns the median of p95 of the servers that are known, 0 if none is.
func medianPace(servers []*place) float64 {
	var rates []float64
	for _, s := range servers {
		if s.pace.n >= leastSamples {
			rates = append(rates, s.pace.p95)
		}
	}
	if len(rates) == 0 {
		return 0
	}
	slices.Sort(rates)
	return rates[(len(rates)-1)/2]
}

// takeSecond reports whether one more part may be started twice now.
func (p *paces) takeSecond() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tokens < 1 {
		return false
	}
	p.tokens--
	return true
}

// setSlow notes that a region server is slow: to ask it twice would make it slower.
func (p *paces) setSlow(regionServer string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow[regionServer] = now
}

// isSlow reports whether a region server was found to be slow lately.
func (p *paces) isSlow(regionServer string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.slow[regionServer]) < slowFor
}
