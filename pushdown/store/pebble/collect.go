package pebble

import (
	"slices"
	"sync"

	"downpour/pushdown/store"
)

// Bounds of what a watch keeps between two calls of Take. Beyond maxWatchWrites it
// keeps only which rows have changed; beyond maxWatchRows it keeps nothing.
const (
	maxWatchRows   = 64 << 10
	maxWatchWrites = 16 << 10
)

// watch collects the changes of some rows; see store.Watch.
type watch struct {
	owner   *watches
	changed func() // may be nil

	mu     sync.Mutex
	rows   map[string]*store.Change // by row key
	writes int                      // in rows
	lost   bool                     // rows was dropped because there were too many
}

// add adds changes and calls changed. The changes are shared with other watches and
// never written to.
func (w *watch) add(rows []*store.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		// What is collected is useless until the next Take.
		if w.lost {
			break
		}
		w.addChange(row)
		if len(w.rows) > maxWatchRows {
			w.rows, w.writes, w.lost = map[string]*store.Change{}, 0, true
		}
	}

	if w.changed != nil {
		w.changed()
	}
}

// addChange adds the change of one row to what was collected of it before.
func (w *watch) addChange(row *store.Change) {
	old := w.rows[string(row.Row)]
	// The row is to be read anyhow.
	if old != nil && old.Cut {
		return
	}
	if old == nil && w.writes+len(row.Writes) <= maxWatchWrites {
		w.rows[string(row.Row)] = row
		w.writes += len(row.Writes)
		return
	}

	// Both changes are shared, so their sum is a new one. A row's first change comes here
	// only for want of room: it is cut.
	now := &store.Change{Row: row.Row, Cut: true}
	if old != nil {
		w.writes -= len(old.Writes)
		now.Cut = row.Cut
		now.Writes = slices.Concat(old.Writes, row.Writes)
	}
	if len(now.Writes) > maxRowWrites || w.writes+len(now.Writes) > maxWatchWrites {
		now.Cut = true
	}
	if now.Cut {
		now.Writes = nil
	}

	w.writes += len(now.Writes)
	w.rows[string(row.Row)] = now
}

// Take returns what was collected since the last call, and starts again with nothing.
func (w *watch) Take() (rows []store.Change, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows = make([]store.Change, 0, len(w.rows))
	for _, row := range w.rows {
		rows = append(rows, *row)
	}
	lost = w.lost

	clear(w.rows)
	w.writes, w.lost = 0, false
	return rows, lost
}

// Close ends the collection.
func (w *watch) Close() { w.owner.remove(w) }
