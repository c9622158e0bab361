package pebble

import (
	"bytes"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// watches are the open watches of a store. mu is held for reading from before a
// batch becomes visible until the watches have its changes, so that a watch gets
// every batch that becomes visible after it was opened.
type watches struct {
	mu     sync.RWMutex
	ranges []watchedRange // of all watches
}

// watchedRange is a range of rows that a watch is about.
type watchedRange struct {
	prefix []byte // what stored keys in the range begin with: table, 00, common bytes of both bounds
	rowAt  int    // where the row begins in prefix
	rows   store.KeyRange
	watch  *watch
}

// Watch collects what is written to rows; see store.Features.
func (s *Store) Watch(table string, ranges []store.KeyRange, changed func()) (store.Watch, error) {
	if err := s.tables.check(table, ""); err != nil {
		return nil, err
	}

	w := &watch{owner: &s.watches, changed: changed, rows: map[string]*store.Change{}}
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	for _, r := range ranges {
		p := watchedRange{prefix: append([]byte(table), 0), rows: r, watch: w}
		p.rowAt = len(p.prefix)
		p.prefix = append(p.prefix, commonPrefix(r)...)
		s.watches.ranges = append(s.watches.ranges, p)
	}
	return w, nil
}

// commonPrefix returns what all keys of a range begin with.
func commonPrefix(r store.KeyRange) []byte {
	n := 0
	for n < len(r.Start) && n < len(r.Stop) && r.Start[n] == r.Stop[n] {
		n++
	}
	return r.Start[:n]
}

// apply makes a batch visible and gives its changes to the watches that they concern.
func (w *watches) apply(db *pebble.DB, b *pebble.Batch) error {
	// No watch is added before the watches have the changes: it would miss a batch that
	// becomes visible after it began.
	w.mu.RLock()
	defer w.mu.RUnlock()

	// The changes are read before, because pebble may take a large batch's memory
	// for itself.
	var byWatch map[*watch][]*store.Change
	if len(w.ranges) > 0 {
		byWatch = w.changesIn(b)
	}
	if err := db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		return err
	}
	for watch, changes := range byWatch {
		watch.add(changes)
	}
	return nil
}

// changesIn returns the changes of a batch for each watch that they concern, one for
// each row. The changes are copies, which watches share.
func (w *watches) changesIn(b *pebble.Batch) map[*watch][]*store.Change {
	byWatch := map[*watch][]*store.Change{}
	reader := b.Reader()
	var rowPrefix []byte     // of the key before
	var change *store.Change // of the row of rowPrefix; nil if no watch is about it
	for {
		kind, key, value, ok, err := reader.Next()
		if !ok || err != nil {
			return byWatch // err is nil: this process has just made the batch
		}

		prefix := key[:split(key)]
		if !bytes.Equal(prefix, rowPrefix) {
			rowPrefix, change = prefix, w.addChange(byWatch, prefix)
		}
		if change != nil && !appendWrite(change, kind, key[len(prefix):], value) {
			change.Cut = true
		}
	}
}

// addChange makes an empty change of a row, adds it to those of each watch that is about the row, and returns
// it: the watches share it, and the caller fills it. Without such a watch it returns nil. rowPrefix is what
// the stored keys of the row begin with: table, 00, row, 00.
func (w *watches) addChange(byWatch map[*watch][]*store.Change, rowPrefix []byte) (change *store.Change) {
	for i := range w.ranges {
		watched := &w.ranges[i]
		// The prefix has the table's name: in a key of another table rowAt would mean nothing.
		if !bytes.HasPrefix(rowPrefix, watched.prefix) {
			continue
		}
		row := rowPrefix[watched.rowAt : len(rowPrefix)-1]
		if !watched.rows.Contains(row) {
			continue
		}

		if change == nil {
			change = &store.Change{Row: bytes.Clone(row)}
		}
		// A watch of several ranges that have the row gets the change once.
		if all := byWatch[watched.watch]; len(all) == 0 || all[len(all)-1] != change {
			byWatch[watched.watch] = append(all, change)
		}
	}
	return change
}

// maxRowWrites bounds the writes of one row that are kept between two calls of Take.
// Beyond it, to read the row costs no more.
const maxRowWrites = 64

// appendWrite adds one write of a batch to the change of its row. It returns false if
// it cannot: the caller then sets Cut.
func appendWrite(row *store.Change, kind pebble.InternalKeyKind, suffix, stored []byte) bool {
	family, qualifier, ok := parseSuffix(suffix)
	if !ok || len(row.Writes) >= maxRowWrites {
		return false
	}

	m := store.Mutation{Family: string(family)}
	var value []byte
	switch kind {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindMerge:
		v, err := parseValue(stored)
		if err != nil || v.tag == tagSealed { // no batch that a watch sees has one
			return false
		}
		m.Timestamp, value = v.ms, v.bytes
		if kind == pebble.InternalKeyKindMerge {
			m.Kind = store.Append
		}
	case pebble.InternalKeyKindDelete:
		m.Kind = store.DeleteCell
	case pebble.InternalKeyKindRangeDelete:
		m.Kind = store.DeleteRow
	default:
		// A batch of this store has no changes of other kinds.
		return false
	}

	// One allocation holds both copies.
	both := slices.Concat(qualifier, value)
	m.Qualifier, m.Value = both[:len(qualifier):len(qualifier)], both[len(qualifier):]
	row.Writes = append(row.Writes, m)
	return true
}

// remove removes the ranges of a watch.
func (w *watches) remove(closed *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()

	var rest []watchedRange
	for _, p := range w.ranges {
		if p.watch != closed {
			rest = append(rest, p)
		}
	}
	w.ranges = rest
}
