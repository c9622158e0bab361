package engine

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"downpour/encoding/scanplan"
)

// refusedPartial remembers which plans were not answered by states of groups, so
// that the next one like it, of another time, is not executed twice. It is a
// guess about speed and may be lost, or be another plan's: it keeps hashes, as
// plans may be long.
type refusedPartial struct {
	mu      sync.Mutex
	entries map[uint64]time.Time
}

var planSeed = maphash.MakeSeed()

// Bounds of the book.
const (
	strictFor  = 5 * time.Minute
	strictMost = 1000
)

func planHash(p *scanplan.Plan) uint64 {
	var h maphash.Hash
	h.SetSeed(planSeed)
	fmt.Fprint(&h, p.Table, p.Metric, p.Aggregator, p.GroupBy, p.Downsample, p.Tags)
	return h.Sum64()
}

// note remembers a plan.
func (b *refusedPartial) note(p *scanplan.Plan, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries == nil || len(b.entries) >= strictMost {
		b.entries = map[uint64]time.Time{}
	}
	b.entries[planHash(p)] = now
}

// has tells whether a plan like p was noted lately.
func (b *refusedPartial) has(p *scanplan.Plan, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	noted, ok := b.entries[planHash(p)]
	return ok && now.Sub(noted) < strictFor
}
