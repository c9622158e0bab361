package resultcache

import (
	"context"
	"encoding/binary"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/store"
)

// PlanLookup is one ask for what was made of all parts of a plan. A nil one has
// nothing and keeps nothing.
type PlanLookup struct {
	cache   *Cache
	id      ID
	version string
	found   Answer
}

// LookupPlan asks for what was made of a plan in one of several ways, see PlanKey.
// It must be called before anything of the plan is read: what is read afterwards
// may be kept under the mark that is taken here.
//
// A plan that nobody has asked for before is noted, and no mark is taken: what
// comes once costs nothing.
func LookupPlan(ctx context.Context, c *Cache, from store.Reader, plan *scanplan.Plan, way string) *PlanLookup {
	marker, ok := from.(store.Versioner)
	if c == nil || !ok {
		return nil
	}
	id, ok := PlanKey(plan, way)
	if !ok || !c.seenBefore(id) {
		return nil
	}
	mark, err := planVersion(ctx, marker, plan)
	if err != nil && ctx.Err() == nil {
		c.logOnce(err.Error())
	}
	found, ok := c.lookupPlan(id, mark)
	if !ok {
		return nil
	}
	return &PlanLookup{cache: c, id: id, version: mark, found: found}
}

// Found is what was kept, nil if nothing is.
func (w *PlanLookup) Found() Answer {
	if w == nil {
		return nil
	}
	return w.found
}

// Wanted tells that nothing is kept and something should be.
func (w *PlanLookup) Wanted() bool { return w != nil && w.found == nil }

// Store keeps what was made of the plan since the ask. All its parts must have
// been answered from memory or kept in this process: then nothing speaks against
// keeping what was made of them, see package resultcache.
func (w *PlanLookup) Store(a Answer) {
	if w.Wanted() {
		w.cache.store(w.id, w.version, a)
	}
}

// HoldsPlan tells whether something that was made of a plan is kept.
func (c *Cache) HoldsPlan(plan *scanplan.Plan, way string) bool {
	if c == nil {
		return false
	}
	id, ok := PlanKey(plan, way)
	return ok && c.holds(id)
}

// versionsAtOnce bounds the marks of one plan that are taken at a time.
const versionsAtOnce = 8

// planVersion is the marks of all ranges of a plan, "" if one has none.
func planVersion(ctx context.Context, marker store.Versioner, plan *scanplan.Plan) (string, error) {
	marks := make([]string, len(plan.Ranges))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(versionsAtOnce)
	for i, r := range plan.Ranges {
		work.Go(func() (err error) {
			marks[i], err = marker.Version(ctx, plan.Table, encoding.FamilyData, store.KeyRange{Start: r.Start, Stop: r.Stop})
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return "", err
	}
	var whole []byte
	for _, m := range marks {
		if m == "" {
			return "", nil
		}
		whole = append(binary.AppendUvarint(whole, uint64(len(m))), m...)
	}
	return string(whole), nil
}

// seenBefore tells whether a plan was asked for before, and notes it.
func (c *Cache) seenBefore(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.entries[id]; el != nil {
		c.order.MoveToFront(el)
		return true
	}
	c.addEntry(id, "")
	return false
}

// lookupPlan looks for the answer to a plan over rows whose state is mark, and takes
// the mark down. False is a plan of which nothing can be proven.
func (c *Cache) lookupPlan(id ID, mark string) (Answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if mark == "" {
		c.counts.Unproven++
		return nil, false
	}
	el := c.entries[id]
	if el == nil { // given up meanwhile
		return nil, false
	}
	e := el.Value.(*entry)
	if e.version != mark {
		if e.answer != nil {
			c.counts.Changed++
		}
		c.resetEntry(e, mark)
	}
	if e.answer != nil {
		c.counts.Hits++
		c.counts.PlanHits++
	}
	return e.answer, true
}
