package pebble

import (
	"slices"
	"sync"

	"downpour/pushdown/store"
)

// Bounds of what a watch keeps between two calls of Take: rows, and writes to
// them. Of rows beyond the latter it knows only that they have changed.
const (
	watchKeys   = 64 << 10
	watchWrites = 16 << 10
)

// watch is one collection of changes.
type watch struct {
	of      *watches
	changed func()

	mu     sync.Mutex
	rows   map[string]*store.Change
	writes int // in rows
	lost   bool
}

// add takes changes in and wakes whoever waits. They are shared with other
// watches, and never changed.
func (w *watch) add(rows []*store.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		if w.lost {
			break
		}
		w.addChange(row)
		if len(w.rows) > watchKeys {
			w.rows, w.writes, w.lost = map[string]*store.Change{}, 0, true
		}
	}
	if w.changed != nil {
		w.changed()
	}
}

// addChange adds the change of one row to what is known of it.
func (w *watch) addChange(row *store.Change) {
	old := w.rows[string(row.Row)]
	if old != nil && old.Cut {
		return
	}
	if old == nil && w.writes+len(row.Writes) <= watchWrites {
		w.rows[string(row.Row)] = row
		w.writes += len(row.Writes)
		return
	}
	now := &store.Change{Row: row.Row, Cut: true}
	if old != nil {
		w.writes -= len(old.Writes)
		now.Cut = row.Cut
		now.Writes = slices.Concat(old.Writes, row.Writes)
	}
	if len(now.Writes) > rowWrites || w.writes+len(now.Writes) > watchWrites {
		now.Cut = true
	}
	if now.Cut {
		now.Writes = nil
	}
	w.writes += len(now.Writes)
	w.rows[string(row.Row)] = now
}

// Take returns what was collected and begins anew.
func (w *watch) Take() (rows []store.Change, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rows) > 0 {
		rows = make([]store.Change, 0, len(w.rows))
	}
	for _, row := range w.rows {
		rows = append(rows, *row)
	}
	lost = w.lost
	clear(w.rows)
	w.writes, w.lost = 0, false
	return rows, lost
}

// Close ends the collecting.
func (w *watch) Close() { w.of.remove(w) }
