package resultcache

import (
	"context"
	"encoding/binary"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/store"
)

// Whole is one ask for what was made of all parts of a plan. A nil one has
// nothing and keeps nothing.
type Whole struct {
	cache *Cache
	id    ID
	mark  string
	found Answer
}

// AskWhole asks for what was made of a plan in one of several ways, see WholeKey.
// It must be called before anything of the plan is read: what is read afterwards
// may be kept under the mark that is taken here.
//
// A plan that nobody has asked for before is noted, and no mark is taken: what
// comes once costs nothing.
func AskWhole(ctx context.Context, c *Cache, from store.Reader, plan *scanplan.Plan, way string) *Whole {
	marker, ok := from.(store.Marker)
	if c == nil || !ok {
		return nil
	}
	id, ok := WholeKey(plan, way)
	if !ok || !c.again(id) {
		return nil
	}
	mark, err := wholeMark(ctx, marker, plan)
	if err != nil && ctx.Err() == nil {
		c.tell(err.Error())
	}
	found, ok := c.askWhole(id, mark)
	if !ok {
		return nil
	}
	return &Whole{cache: c, id: id, mark: mark, found: found}
}

// Found is what was kept, nil if nothing is.
func (w *Whole) Found() Answer {
	if w == nil {
		return nil
	}
	return w.found
}

// Wanted tells that nothing is kept and something should be.
func (w *Whole) Wanted() bool { return w != nil && w.found == nil }

// Keep keeps what was made of the plan since the ask. All its parts must have
// been answered from memory or kept in this process: then nothing speaks against
// keeping what was made of them, see package summary.
func (w *Whole) Keep(a Answer) {
	if w.Wanted() {
		w.cache.put(w.id, w.mark, a)
	}
}

// HoldsWhole tells whether something that was made of a plan is kept.
func (c *Cache) HoldsWhole(plan *scanplan.Plan, way string) bool {
	if c == nil {
		return false
	}
	id, ok := WholeKey(plan, way)
	return ok && c.holds(id)
}

// marksAtOnce bounds the marks of one plan that are taken at a time.
const marksAtOnce = 8

// wholeMark is the marks of all ranges of a plan, "" if one has none.
func wholeMark(ctx context.Context, marker store.Marker, plan *scanplan.Plan) (string, error) {
	marks := make([]string, len(plan.Ranges))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(marksAtOnce)
	for i, r := range plan.Ranges {
		work.Go(func() (err error) {
			marks[i], err = marker.Mark(ctx, plan.Table, encoding.FamilyData, store.KeyRange{Start: r.Start, Stop: r.Stop})
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

// again tells whether a plan was asked for before, and notes it.
func (c *Cache) again(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.entries[id]; el != nil {
		c.order.MoveToFront(el)
		return true
	}
	c.note(id, "")
	return false
}

// askWhole looks for the answer to a plan over rows whose state is mark, and takes
// the mark down. False is a plan of which nothing can be proven.
func (c *Cache) askWhole(id ID, mark string) (Answer, bool) {
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
	if e.mark != mark {
		if e.answer != nil {
			c.counts.Changed++
		}
		c.renew(e, mark)
	}
	if e.answer != nil {
		c.counts.Hits++
		c.counts.Whole++
	}
	return e.answer, true
}
