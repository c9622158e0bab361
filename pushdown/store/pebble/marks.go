package pebble

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// The table of marks. No user's table can have its name. Its rows have one cell each, of the
// family marksFamily with an empty qualifier:
//
//	i                 the name of these marks, 16 hex digits
//	w, group prefix   the groups that are watched: first and last number, and the number of the last mark
//	c, group name     the number of the group's last change, of one that is watched
//
// A group prefix is a table, 00 and what the grouping says, a group name has the group's
// number behind it. Numbers are big-endian: of groups 4 bytes, of marks and changes 8.
const (
	marksTable  = "~marks"
	marksFamily = "m"

	rowID      = "i"
	rowWatched = "w"
	rowChange  = "c"
)

// marks numbers marks and, with them, the changes of those groups that were marked. A
// change is written into the batch that makes it, so that the two are visible and durable
// together, and none is missed by a process that has the store open. Groups that were never marked
// cost nothing.
type marks struct {
	on atomic.Bool // a group is watched

	mu      sync.Mutex
	id      string // empty until the first mark
	last    uint64 // number of the last mark or change
	watched map[string]watchedGroups
}

// watchedGroups are those of one prefix whose changes are written.
type watchedGroups struct{ first, last uint32 }

// loadMarks reads the table of marks. Where it cannot be read, or the store has lost data,
// all marks become void: changes may be missing.
func (s *Store) loadMarks() error {
	s.marks.watched = map[string]watchedGroups{}
	if !s.opts.Salvage {
		err := s.readMarks()
		if err == nil {
			return nil
		}
		s.log.Errorf("marks of rows cannot be read, and are given up: %v", err)
	}

	s.marks.id, s.marks.last, s.marks.watched = "", 0, map[string]watchedGroups{}
	s.marks.on.Store(false)
	b := s.newBatch(0)
	if err := b.DeleteRange(appendPrefix(nil, marksTable, nil), appendTableEnd(nil, marksTable), nil); err != nil {
		return errors.Join(err, b.Close())
	}
	return s.commit(b)
}

func (s *Store) readMarks() error {
	m := &s.marks
	lower, upper := appendPrefix(nil, marksTable, nil), appendTableEnd(nil, marksTable)
	return s.eachMark(lower, upper, func(row, value []byte) error {
		switch {
		case string(row) == rowID:
			m.id = string(value)
		case row[0] == rowWatched[0] && len(value) == 16:
			m.watched[string(row[1:])] = watchedGroups{
				binary.BigEndian.Uint32(value),
				binary.BigEndian.Uint32(value[4:]),
			}
			m.last = max(m.last, binary.BigEndian.Uint64(value[8:]))
			m.on.Store(true)
		case row[0] == rowChange[0] && len(value) == 8:
			m.last = max(m.last, binary.BigEndian.Uint64(value))
		default:
			return fmt.Errorf("row %x of the table of marks has a value of %d bytes, want i, w with 16 or c with 8",
				row, len(value))
		}
		return nil
	})
}

// eachMark calls f for the rows of the table of marks with keys in [lower, upper). f must not
// keep what it is given.
func (s *Store) eachMark(lower, upper []byte, f func(row, value []byte) error) (err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return unreadable(err)
	}
	defer func() { err = errors.Join(err, unreadable(it.Close())) }()

	for ok := it.First(); ok; ok = it.Next() {
		stored, err := it.ValueAndErr()
		if err != nil {
			return unreadable(err)
		}
		v, err := parseValue(stored)
		if err != nil {
			return err
		}
		prefix := it.Key()[:split(it.Key())]
		// Without the table with its 00, and the 00 that ends the row.
		if err := f(prefix[len(marksTable)+1:len(prefix)-1], v.bytes); err != nil {
			return err
		}
	}
	return nil
}

// putMark adds a row of the table of marks to a batch.
func (b *batch) putMark(kind, name string, value []byte) {
	b.put(marksTable, []byte(kind+name), marksFamily, nil, 0, value)
}

// note adds to a batch that is about to become visible the changes of those of its groups
// that are watched. names are those of all its groups. The caller holds Store.change.
func (m *marks) note(b *batch, names []string) {
	if !m.on.Load() {
		return // batches come here for version tokens alone, too
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if m.watches(name) {
			m.last++
			b.putMark(rowChange, name, binary.BigEndian.AppendUint64(nil, m.last))
		}
	}
}

// noteRanges is note for a batch that deletes ranges of rows. Rows without a group that lie between
// those with one do not count.
func (s *Store) noteRanges(b *batch, table string, ranges []store.KeyRange) {
	m := &s.marks
	var names []string
	m.mu.Lock()
	for _, r := range ranges {
		prefix, groups, err := s.groupsOf(table, r)
		if err != nil {
			names = append(names, table+"\x00") // anywhere in the table
		} else {
			w := m.watched[prefix]
			for n := uint64(max(w.first, groups.first)); n <= uint64(min(w.last, groups.last)); n++ {
				names = append(names, string(binary.BigEndian.AppendUint32([]byte(prefix), uint32(n))))
			}
		}
	}
	m.mu.Unlock()
	m.note(b, names)
}

// watches reports whether the changes of a group are written. The group of a table's rows
// without one is watched with any other of the table.
func (m *marks) watches(name string) bool {
	table := strings.IndexByte(name, 0) + 1
	if len(name) == table {
		for prefix := range m.watched {
			if strings.HasPrefix(prefix, name) {
				return true
			}
		}
		return false
	}
	at := len(name) - 4
	w, ok := m.watched[name[:at]]
	number := binary.BigEndian.Uint32([]byte(name[at:]))
	return ok && w.first <= number && number <= w.last
}

// groupsOf returns the prefix and the numbers of a range's groups.
func (s *Store) groupsOf(table string, r store.KeyRange) (prefix string, w watchedGroups, err error) {
	p, first, last, ok := s.opts.Grouping.Groups(r.Start, r.Stop)
	if !ok || first > last {
		return "", w, fmt.Errorf("keys %x to %x: want ascending keys of rows of one group prefix", r.Start, r.Stop)
	}
	return table + "\x00" + string(p), watchedGroups{first, last}, nil
}

// Mark implements store.Marker. A mark is the name of this store's marks and a number, such
// as 9f3c2a1b00112233:17. Unlike version tokens it holds for later openings of the store.
// Families are not distinguished.
func (s *Store) Mark(ctx context.Context, table, _ string, r store.KeyRange) (store.Mark, error) {
	if err := s.begin(ctx); err != nil {
		return store.Mark{}, err
	}
	defer s.life.RUnlock()
	if err := s.tables.check(table, ""); err != nil {
		return store.Mark{}, err
	}
	prefix, groups, err := s.groupsOf(table, r)
	if err != nil {
		return store.Mark{}, fmt.Errorf("cannot mark rows of table %q: %w", table, err)
	}

	// Between two batches: one that is half visible would go unnoticed.
	s.change.Lock()
	b, mark := s.marks.mark(s.newBatch(0), prefix, groups)
	s.change.Unlock()

	if err := s.commit(b); err != nil {
		return store.Mark{}, fmt.Errorf("cannot mark rows of table %q: %w", table, err)
	}
	return store.Mark{Text: mark}, nil
}

// mark makes a mark of groups, which are watched from now on, and adds to b what has to be
// durable before the mark may be used.
func (m *marks) mark(b *batch, prefix string, groups watchedGroups) (*batch, string) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.id == "" {
		var id [8]byte
		rand.Read(id[:]) // never fails
		m.id = hex.EncodeToString(id[:])
	}
	if w, ok := m.watched[prefix]; ok {
		groups = watchedGroups{min(w.first, groups.first), max(w.last, groups.last)}
	}
	m.watched[prefix] = groups
	m.last++
	m.on.Store(true)

	value := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, groups.first), groups.last)
	b.putMark(rowID, "", []byte(m.id))
	b.putMark(rowWatched, prefix, binary.BigEndian.AppendUint64(value, m.last))
	return b, fmt.Sprintf("%s:%d", m.id, m.last)
}

// Unchanged implements store.Marker.
func (s *Store) Unchanged(ctx context.Context, table, _ string, r store.KeyRange, mark string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.life.RUnlock()
	prefix, groups, err := s.groupsOf(table, r)
	if err == nil {
		err = s.unchangedSince(prefix, groups, mark)
	}
	if err != nil {
		return fmt.Errorf("cannot prove that rows of table %q from key %x are as they were: %w", table, r.Start, err)
	}
	return nil
}

// unchangedSince returns an error unless no group has changed since a mark.
func (s *Store) unchangedSince(prefix string, groups watchedGroups, mark string) error {
	id, digits, _ := strings.Cut(mark, ":")
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return fmt.Errorf("mark: got %q, want ID:NUMBER", mark)
	}
	if err := s.marks.check(id, prefix, groups); err != nil {
		return err
	}

	changed := func(row, value []byte) error {
		if len(value) != 8 || binary.BigEndian.Uint64(value) > number {
			return store.ErrRowsChanged
		}
		return nil
	}
	first := binary.BigEndian.AppendUint32([]byte(rowChange+prefix), groups.first)
	last := binary.BigEndian.AppendUint32([]byte(rowChange+prefix), groups.last)
	// Rows without a group may be anywhere in the table.
	other := []byte(rowChange + prefix[:strings.IndexByte(prefix, 0)+1])
	for _, rows := range [][2][]byte{{first, last}, {other, other}} {
		lower := appendPrefix(nil, marksTable, rows[0])
		upper := appendPrefix(nil, marksTable, append(bytes.Clone(rows[1]), 0))
		if err := s.eachMark(lower, upper, changed); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error unless the changes of the groups were written since a mark with
// this name was made.
func (m *marks) check(id, prefix string, groups watchedGroups) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	w, ok := m.watched[prefix]
	switch {
	case id != m.id || id == "":
		return fmt.Errorf("the mark is of another store, or from before this one lost data")
	case !ok || groups.first < w.first || groups.last > w.last:
		return fmt.Errorf("groups %d to %d were not all marked", groups.first, groups.last)
	}
	return nil
}
