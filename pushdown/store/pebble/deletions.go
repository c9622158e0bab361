package pebble

import (
	"bytes"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// deletion is what is known of the deletions of whole ranges of one prefix (see Grouping): a
// range has very many groups, and nobody has ever looked most of them up.
type deletion struct {
	first, last uint32 // the groups that any of them had
	at          uint64 // number of the last one
	running     int    // in progress
}

// beginRanges notes that a batch of deletions of ranges is about to become visible, as begin
// does of any other.
func (c *changes) beginRanges(table string, ranges []store.KeyRange) (end func()) {
	if !c.on.Load() {
		return func() {}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.running++
	c.last++
	whole := false
	touched := map[*deletion]struct{}{}
	for _, r := range ranges {
		prefix, first, last, ok := c.grouping.Groups(r.Start, r.Stop)
		if !ok {
			whole = true
			continue
		}
		name := string(append(append([]byte(table), 0), prefix...))
		x := c.deletions[name]
		if x == nil {
			x = &deletion{first: math.MaxUint32}
			c.deletions[name] = x
		}
		x.first, x.last, x.at = min(x.first, first), max(x.last, last), c.last
		touched[x] = struct{}{}
	}
	for x := range touched {
		x.running++
	}
	if whole {
		c.everywhere++
	}

	return func() { c.endRanges(touched, whole) }
}

// endRanges notes that the batch is visible. Where its ranges have no groups, every token that
// was given before differs from every later one.
func (c *changes) endRanges(touched map[*deletion]struct{}, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	for x := range touched {
		x.running--
	}
	if whole {
		c.everywhere--
	}
	if !whole && len(c.deletions) <= maxGroups {
		return
	}

	c.dropped = c.last
	for name, x := range c.deletions {
		if x.running == 0 {
			delete(c.deletions, name)
		}
	}
}

// addDeletion adds the deletions of ranges of a prefix to what is known of some of its groups, as
// addGroup does of one group.
func (c *changes) addDeletion(name []byte, first, last uint32, at uint64, running bool) (uint64, bool) {
	x := c.deletions[string(name)]
	if x == nil || last < x.first || first > x.last {
		return at, running
	}
	return max(at, x.at), running || x.running > 0
}

// applyRanges makes a batch of deletions of ranges visible. A watch of rows in any of them has
// lost what it collected: which rows there were nobody knows.
func (w *watches) applyRanges(db *pebble.DB, b *pebble.Batch, table string, ranges []store.KeyRange) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if err := db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		return err
	}

	told := map[*watch]bool{}
	for i := range w.ranges {
		p := &w.ranges[i]
		if !told[p.watch] && string(p.prefix[:p.rowAt-1]) == table && overlapsAny(p.rows, ranges) {
			told[p.watch] = true
			p.watch.lose()
		}
	}
	return nil
}

// overlapsAny reports whether a range has keys of any of some others.
func overlapsAny(r store.KeyRange, others []store.KeyRange) bool {
	for _, o := range others {
		beginsBefore := len(r.Stop) == 0 || bytes.Compare(o.Start, r.Stop) < 0
		if beginsBefore && (len(o.Stop) == 0 || bytes.Compare(r.Start, o.Stop) < 0) {
			return true
		}
	}
	return false
}

// lose drops what was collected: any row may have changed.
func (w *watch) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows, w.writes, w.lost = map[string]*store.Change{}, 0, true
	if w.changed != nil {
		w.changed()
	}
}
