package pebble

import (
	"bytes"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// watchKeys bounds the row keys that a watch keeps between two calls of Take.
const watchKeys = 64 << 10

// watches are the open watches of a store. Who makes a batch visible holds mu
// for reading from before that until the watches know of it, so that a watch
// gets every batch that became visible after it was opened.
type watches struct {
	mu     sync.RWMutex
	places []place // of all watches
}

// place is a range that a watch is about, with what keys in it begin with.
type place struct {
	head []byte // table, 00 and the common beginning of the range's keys
	at   int    // where in head the row begins
	rows store.KeyRange
	by   *watch
}

var _ store.Watcher = (*Store)(nil)

// Watch collects the keys of changed rows; see store.Watcher.
func (s *Store) Watch(table string, ranges []store.KeyRange, changed func()) (store.Watch, error) {
	if err := s.tables.check(table, ""); err != nil {
		return nil, err
	}
	w := &watch{of: &s.watches, changed: changed, keys: map[string]struct{}{}}
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	for _, r := range ranges {
		p := place{head: append([]byte(table), 0), rows: r, by: w}
		p.at = len(p.head)
		p.head = append(p.head, commonHead(r)...)
		s.watches.places = append(s.watches.places, p)
	}
	return w, nil
}

// commonHead is what all keys of a range begin with.
func commonHead(r store.KeyRange) []byte {
	n := 0
	for n < len(r.Start) && n < len(r.Stop) && r.Start[n] == r.Stop[n] {
		n++
	}
	return r.Start[:n]
}

// apply makes a batch visible and tells the watches whose rows it touches. The
// keys are read before: pebble may take a large batch's memory for itself.
func (w *watches) apply(db *pebble.DB, b *pebble.Batch) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var touched map[*watch][][]byte
	if len(w.places) > 0 {
		touched = w.touched(b)
	}
	if err := db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		return err
	}
	for watch, rows := range touched {
		watch.add(rows)
	}
	return nil
}

// touched are the rows of a batch that somebody watches, copied.
func (w *watches) touched(b *pebble.Batch) map[*watch][][]byte {
	out := map[*watch][][]byte{}
	reader := b.Reader()
	var last []byte
	for {
		_, key, _, ok, err := reader.Next()
		if !ok || err != nil {
			return out // a batch of our own making has no faults
		}
		head := key[:split(key)]
		if bytes.Equal(head, last) {
			continue // another cell of the same row
		}
		last = head
		for i := range w.places {
			p := &w.places[i]
			if !bytes.HasPrefix(head, p.head) {
				continue
			}
			if row := head[p.at : len(head)-1]; p.rows.Contains(row) {
				out[p.by] = append(out[p.by], bytes.Clone(row))
			}
		}
	}
}

func (w *watches) remove(gone *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var rest []place
	for _, p := range w.places {
		if p.by != gone {
			rest = append(rest, p)
		}
	}
	w.places = rest
}

// watch is one collection of keys.
type watch struct {
	of      *watches
	changed func()

	mu   sync.Mutex
	keys map[string]struct{}
	lost bool
}

// add takes keys in and wakes whoever waits.
func (w *watch) add(rows [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		if w.lost {
			break
		}
		w.keys[string(row)] = struct{}{}
		if len(w.keys) > watchKeys {
			w.keys, w.lost = map[string]struct{}{}, true
		}
	}
	if w.changed != nil {
		w.changed()
	}
}

// Take returns what was collected and begins anew.
func (w *watch) Take() (rows [][]byte, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.keys {
		rows = append(rows, []byte(key))
	}
	lost = w.lost
	clear(w.keys)
	w.lost = false
	return rows, lost
}

// Close ends the collecting.
func (w *watch) Close() { w.of.remove(w) }
