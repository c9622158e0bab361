package pebble

import (
	"bytes"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

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

// Watch collects what is written to rows; see store.Watcher.
func (s *Store) Watch(table string, ranges []store.KeyRange, changed func()) (store.Watch, error) {
	if err := s.tables.check(table, ""); err != nil {
		return nil, err
	}
	w := &watch{of: &s.watches, changed: changed, rows: map[string]*store.Change{}}
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
// writes are read before: pebble may take a large batch's memory for itself.
func (w *watches) apply(db *pebble.DB, b *pebble.Batch) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var touched map[*watch][]*store.Change
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

// touched are the writes of a batch to rows that somebody watches, by row.
// Watches share the copies.
func (w *watches) touched(b *pebble.Batch) map[*watch][]*store.Change {
	out := map[*watch][]*store.Change{}
	reader := b.Reader()
	var last []byte
	var row *store.Change // of last; nil if nobody watches it
	for {
		kind, key, value, ok, err := reader.Next()
		if !ok || err != nil {
			return out // a batch of our own making has no faults
		}
		head := key[:split(key)]
		if !bytes.Equal(head, last) {
			last, row = head, w.tell(head, out)
		}
		if row != nil && !appendWrite(row, kind, key[len(head):], value) {
			row.Cut = true
		}
	}
}

// tell adds an empty change of a row to those of the watches that it concerns,
// and returns it; nil if it concerns none.
func (w *watches) tell(head []byte, out map[*watch][]*store.Change) (row *store.Change) {
	for i := range w.places {
		p := &w.places[i]
		if !bytes.HasPrefix(head, p.head) || !p.rows.Contains(head[p.at:len(head)-1]) {
			continue
		}
		if row == nil {
			row = &store.Change{Row: bytes.Clone(head[p.at : len(head)-1])}
		}
		if told := out[p.by]; len(told) == 0 || told[len(told)-1] != row { // ranges may overlap
			out[p.by] = append(told, row)
		}
	}
	return row
}

// rowWrites bounds the writes of one row that are kept between two calls of
// Take: with more of them it is as well read.
const rowWrites = 64

// appendWrite adds one change of a batch to a row's, false if it cannot be told.
func appendWrite(row *store.Change, kind pebble.InternalKeyKind, tail, stored []byte) bool {
	family, qualifier, ok := parseTail(tail)
	if !ok || len(row.Writes) >= rowWrites {
		return false
	}
	m := store.Mutation{Family: string(family)}
	var value []byte
	switch kind {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindMerge:
		var err error
		if m.Timestamp, value, err = parseValue(stored); err != nil {
			return false
		}
		if kind == pebble.InternalKeyKindMerge {
			m.Kind = store.Append
		}
	case pebble.InternalKeyKindDelete:
		m.Kind = store.DeleteCell
	case pebble.InternalKeyKindRangeDelete:
		m.Kind = store.DeleteRow
	default:
		return false
	}
	both := slices.Concat(qualifier, value)
	m.Qualifier, m.Value = both[:len(qualifier):len(qualifier)], both[len(qualifier):]
	row.Writes = append(row.Writes, m)
	return true
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
