package engine

import (
	"hash/maphash"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// refusedPlans are plans with which something was tried in vain lately, as partial
// aggregation, so that it is not tried with the next plan like one of them, of other times.
// It only affects speed, so an entry may be lost or stand for another plan: plans may be
// long, and only their hashes are kept.
type refusedPlans struct {
	lasts time.Duration // how long a try counts; 0 is refusedFor

	mu      sync.Mutex
	entries map[uint64]refusal // by planHash
}

// refusal says how often something was tried in vain, and when it was last noted.
type refusal struct {
	times int
	last  time.Time
}

var planSeed = maphash.MakeSeed()

// Bounds of refusedPlans.
const (
	refusedFor = 5 * time.Minute
	maxRefused = 1000
)

// planHash hashes what plans of other times have in common. Every query asks for it several
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

func (r *refusedPlans) duration() time.Duration {
	if r.lasts > 0 {
		return r.lasts
	}
	return refusedFor
}

// add notes a try in vain that began and has ended now. Tries that run side by side count
// as one.
func (r *refusedPlans) add(p *scanplan.Plan, began, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()

	// When it is full all go: what is lost costs no more than another try.
	if r.entries == nil || len(r.entries) >= maxRefused {
		r.entries = map[uint64]refusal{}
	}

	key := planHash(p)
	e := r.entries[key]
	switch {
	case now.Sub(e.last) >= r.duration():
		e.times = 1
	case !began.Before(e.last):
		e.times++
	}
	e.last = now
	r.entries[key] = e
}

// remove forgets the tries with plans like p.
func (r *refusedPlans) remove(p *scanplan.Plan) {
	r.mu.Lock()
	defer r.mu.Unlock()

	delete(r.entries, planHash(p))
}

// count returns how often something was tried in vain with plans like p lately.
func (r *refusedPlans) count(p *scanplan.Plan, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()

	if len(r.entries) == 0 {
		return 0
	}
	e := r.entries[planHash(p)]
	if now.Sub(e.last) >= r.duration() {
		return 0
	}
	return e.times
}
