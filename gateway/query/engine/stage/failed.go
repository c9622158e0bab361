package stage

import (
	"hash/maphash"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// failedTries are plans with which something failed lately, such as partial
// aggregation, so that it is not tried with the next plan that differs only in its
// times. It only affects speed, so an entry may be lost or match another plan: plans
// may be long, and only their hashes are kept.
type failedTries struct {
	lasts time.Duration // how long a try counts; 0 is failuresLast

	mu      sync.Mutex
	entries map[uint64]tries // by planHash
}

// tries is how often something has failed, and when it was last noted.
type tries struct {
	times int
	last  time.Time
}

var planSeed = maphash.MakeSeed()

// Bounds of failedTries.
const (
	failuresLast = 5 * time.Minute
	maxFailures  = 1000
)

// planHash hashes the fields that plans of other times have in common. Every query calls it several
// times, so nothing is formatted.
func planHash(p *scanplan.Plan) uint64 {
	var h maphash.Hash
	h.SetSeed(planSeed)
	maphash.WriteComparable(&h, p.Table)
	maphash.WriteComparable(&h, p.Aggregator)
	maphash.WriteComparable(&h, p.Exact)
	hashUIDs(&h, []encoding.UID{p.Metric})
	hashUIDs(&h, p.GroupBy)
	hashUIDs(&h, p.TSUIDs)
	maphash.WriteComparable(&h, len(p.Tags))
	for _, t := range p.Tags {
		hashUIDs(&h, []encoding.UID{t.TagK})
		maphash.WriteComparable(&h, t.Op)
		hashUIDs(&h, t.Values)
	}
	if p.Downsample != nil {
		maphash.WriteComparable(&h, *p.Downsample)
	}
	if p.Rate != nil {
		maphash.WriteComparable(&h, *p.Rate)
	}
	return h.Sum64()
}

func hashUIDs(h *maphash.Hash, uids []encoding.UID) {
	maphash.WriteComparable(h, len(uids))
	for _, u := range uids {
		maphash.WriteComparable(h, len(u))
		h.Write(u)
	}
}

func (t *failedTries) duration() time.Duration {
	if t.lasts > 0 {
		return t.lasts
	}
	return failuresLast
}

// add notes a try that began, and has failed now. Tries that run side by side count
// as one.
func (t *failedTries) add(p *scanplan.Plan, began, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()

	// When it is full all are dropped: a lost entry costs no more than another try.
	if t.entries == nil || len(t.entries) >= maxFailures {
		t.entries = map[uint64]tries{}
	}

	key := planHash(p)
	e := t.entries[key]
	switch {
	case now.Sub(e.last) >= t.duration():
		e.times = 1
	case !began.Before(e.last):
		e.times++
	}
	e.last = now
	t.entries[key] = e
}

// remove forgets the tries with plans like p.
func (t *failedTries) remove(p *scanplan.Plan) {
	t.mu.Lock()
	defer t.mu.Unlock()

	delete(t.entries, planHash(p))
}

// count returns how often something has failed with plans like p lately.
func (t *failedTries) count(p *scanplan.Plan, now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()

	if len(t.entries) == 0 {
		return 0
	}
	e := t.entries[planHash(p)]
	if now.Sub(e.last) >= t.duration() {
		return 0
	}
	return e.times
}
