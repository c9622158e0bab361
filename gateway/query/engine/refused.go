package engine

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"downpour/encoding/scanplan"
)

// refusedPlans are plans that partial aggregation did not answer lately, so that the
// next plan like one of them, of other times, is not executed twice. It only affects
// speed, so an entry may be lost or stand for another plan: plans may be long, and
// only their hashes are kept.
type refusedPlans struct {
	mu      sync.Mutex
	entries map[uint64]time.Time // when refused, by planHash
}

var planSeed = maphash.MakeSeed()

// Bounds of refusedPlans.
const (
	refusedFor = 5 * time.Minute
	maxRefused = 1000
)

// planHash hashes what plans of other times have in common.
func planHash(p *scanplan.Plan) uint64 {
	var h maphash.Hash
	h.SetSeed(planSeed)
	fmt.Fprint(&h, p.Table, p.Metric, p.Aggregator, p.GroupBy, p.Downsample, p.Tags)
	return h.Sum64()
}

// add records that a plan was refused.
func (r *refusedPlans) add(p *scanplan.Plan, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()

	// When it is full all go: what is lost costs no more than one execution.
	if r.entries == nil || len(r.entries) >= maxRefused {
		r.entries = map[uint64]time.Time{}
	}
	r.entries[planHash(p)] = now
}

// contains reports whether a plan like p was refused lately.
func (r *refusedPlans) contains(p *scanplan.Plan, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	refused, ok := r.entries[planHash(p)]
	return ok && now.Sub(refused) < refusedFor
}
