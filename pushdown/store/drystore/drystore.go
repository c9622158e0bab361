// Package drystore is a store that takes changes as if they were made, and makes none: what works on it
// does all that it would do, and says the same.
package drystore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// Store keeps changes of single cells in memory, and leaves all tables as they are. Get, and a scan of one
// row, find what was changed; longer scans find what is in the tables. It does not embed the store below: a
// change that nobody has thought of must not compile, rather than be made.
type Store struct {
	inner   store.Cells
	forgets []string
	mu      sync.Mutex
	rows    map[row]map[column]cell
	made    map[string]bool // tables
}

type (
	row    struct{ table, key string }
	column struct{ family, qualifier string }
	cell   struct {
		value   []byte
		deleted bool
	}
)

// cellBytes is about what a changed cell takes in addition to its bytes.
const cellBytes = 250

// New returns a dry store over st, which stays the caller's to close.
//
// It keeps no change of the tables forgotten. They are for work that changes a table of any size, and does not
// read there what it has written. Every condition on a cell of theirs holds: the work has read the cell before,
// and another process that changes it in between must not refuse a dry run.
func New(st store.Cells, forgotten ...string) *Store {
	return &Store{inner: st, forgets: forgotten, rows: map[row]map[column]cell{}, made: map[string]bool{}}
}

// set notes a change. The caller holds mu.
func (s *Store) set(ctx context.Context, table string, at store.CellKey, to cell) error {
	if err := memory.Reserve(ctx, int64(len(at.Row)+len(at.Qualifier)+len(to.value)+cellBytes)); err != nil {
		return err
	}
	in := row{table, string(at.Row)}
	if s.rows[in] == nil {
		s.rows[in] = map[column]cell{}
	}
	s.rows[in][column{at.Family, string(at.Qualifier)}] = to
	return nil
}

// keep notes a change, unless the table is forgotten. The caller holds mu.
func (s *Store) keep(ctx context.Context, table string, at store.CellKey, to cell) error {
	if slices.Contains(s.forgets, table) {
		return nil
	}
	return s.set(ctx, table, at, to)
}

// value is what a cell holds now, nil if it is not there. The caller holds mu.
func (s *Store) value(ctx context.Context, table string, at store.CellKey) ([]byte, error) {
	rows, err := s.get(ctx, table, at.Family, [][]byte{at.Row})
	for _, r := range rows {
		for _, c := range r.Cells {
			if bytes.Equal(c.Qualifier, at.Qualifier) {
				return append([]byte{}, c.Value...), err
			}
		}
	}
	return nil, err
}

// Features implements store.Reader. Marks are those of the tables below, which a dry run does not change: what was
// marked before it is proven, and what it has changed itself is not seen. All other features would go past what was
// changed, or change the tables.
func (s *Store) Features() store.Features {
	return store.Features{
		Versioned:     s.versioned(),
		Versioner:     nil,
		Marker:        s.inner.Features().Marker,
		Staged:        nil,
		RangeDeleter:  nil,
		PutAbsent:     nil,
		IncrementAll:  nil,
		Watch:         nil,
		Writable:      nil,
		DiskUsage:     nil,
		Checkpoint:    nil,
		Inspect:       nil,
		Seal:          nil,
		CheckReadable: nil,
	}
}

func (s *Store) versioned() store.Versioned {
	if v := s.inner.Features().Versioned; v != nil {
		return versions{v}
	}
	return nil
}

// versions has every condition hold: nobody changes what was read.
type versions struct{ inner store.Versioned }

// Versions implements store.Versioned.
func (v versions) Versions(ctx context.Context, table, family string, keys store.KeyRange, maxRows int) (
	[]store.VersionRow, []byte, error) {
	return v.inner.Versions(ctx, table, family, keys, maxRows)
}

// CheckVersions implements store.Versioned.
func (v versions) CheckVersions(ctx context.Context, table, family string) error {
	return v.inner.CheckVersions(ctx, table, family)
}

// ChangeIf implements store.Versioned.
func (versions) ChangeIf(_ context.Context, _, _ string, changes []store.ConditionalChange) ([]bool, error) {
	held := make([]bool, len(changes))
	for i := range held {
		held[i] = true
	}
	return held, nil
}

// Regions implements store.Reader.
func (s *Store) Regions(ctx context.Context, table string, start, stop []byte) ([]store.Region, error) {
	return s.inner.Regions(ctx, table, start, stop)
}

// Get implements store.Reader.
func (s *Store) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(ctx, table, family, keys)
}

func (s *Store) get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	rows, err := s.inner.Get(ctx, table, family, keys)
	if err != nil && !s.empty(table, err) {
		return nil, err
	}
	for _, key := range keys {
		changed := s.rows[row{table, string(key)}]
		if len(changed) == 0 {
			continue
		}
		at, there := slices.BinarySearchFunc(rows, key, func(r store.Row, key []byte) int {
			return bytes.Compare(r.Key, key)
		})
		now := store.Row{Key: key}
		if there {
			now = rows[at]
		}
		now.Cells = merged(now.Cells, changed, family)
		switch {
		case there && len(now.Cells) == 0:
			rows = slices.Delete(rows, at, at+1)
		case there:
			rows[at] = now
		case len(now.Cells) > 0:
			rows = slices.Insert(rows, at, now)
		}
	}
	return rows, nil
}

// empty reports whether an error says that a table is not there which was made here. The caller holds mu.
func (s *Store) empty(table string, err error) bool {
	return errors.Is(err, store.ErrNoTable) && s.made[table]
}

// merged returns the cells of a row with the changes of a family, of all for "".
func merged(cells []store.Cell, changed map[column]cell, family string) (out []store.Cell) {
	for _, c := range cells {
		if _, ok := changed[column{string(c.Family), string(c.Qualifier)}]; !ok {
			out = append(out, c)
		}
	}
	for at, c := range changed {
		if !c.deleted && (family == "" || family == at.family) {
			out = append(out, store.Cell{Family: []byte(at.family), Qualifier: []byte(at.qualifier), Value: c.value})
		}
	}
	slices.SortFunc(out, func(a, b store.Cell) int {
		return cmp.Or(bytes.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier))
	})
	return out
}

// Scan implements store.Reader.
func (s *Store) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	oneRow := len(scan.Stop) == len(scan.Start)+1 &&
		bytes.HasPrefix(scan.Stop, scan.Start) && scan.Stop[len(scan.Start)] == 0
	if !oneRow {
		sc, err := s.inner.Scan(ctx, scan)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.empty(scan.Table, err) {
			return new(oneBlock), nil
		}
		return sc, err
	}
	rows, err := s.Get(ctx, scan.Table, scan.Family, [][]byte{scan.Start})
	if err != nil {
		return nil, err
	}
	var out oneBlock
	for _, r := range rows {
		if len(scan.Columns) > 0 {
			r.Cells = slices.DeleteFunc(slices.Clone(r.Cells), func(c store.Cell) bool {
				wanted := func(of store.KeyRange) bool { return of.Contains(c.Qualifier) }
				return !slices.ContainsFunc(scan.Columns, wanted)
			})
		}
		if len(r.Cells) > 0 {
			out.rows = append(out.rows, r)
		}
	}
	return &out, nil
}

// oneBlock is a scanner of the rows of one block.
type oneBlock struct{ rows []store.Row }

// Next implements store.Scanner.
func (b *oneBlock) Next() ([]store.Row, error) {
	rows := b.rows
	if b.rows = nil; len(rows) == 0 {
		return nil, io.EOF
	}
	return rows, nil
}

// NextBytes implements store.Scanner. The rows are in memory already.
func (b *oneBlock) NextBytes() int64 { return 0 }

// Stats implements store.Scanner.
func (b *oneBlock) Stats() store.ScanStats { return store.ScanStats{} }

// Close implements store.Scanner.
func (b *oneBlock) Close() error {
	b.rows = nil
	return nil
}

// errAppend is returned for points in a table that is not forgotten.
var errAppend = errors.New("a dry run appends nothing to cells")

// Apply implements store.Writer.
func (s *Store) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	if slices.Contains(s.forgets, table) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range mutations {
		at := store.CellKey{Row: m.Row, Family: m.Family, Qualifier: m.Qualifier}
		var err error
		switch m.Kind {
		case store.Put:
			err = s.set(ctx, table, at, cell{value: bytes.Clone(m.Value)})
		case store.DeleteCell:
			err = s.set(ctx, table, at, cell{deleted: true})
		case store.DeleteRow:
			err = s.deleteRow(ctx, table, at)
		default:
			err = errAppend
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteRow deletes all cells of a row's family.
func (s *Store) deleteRow(ctx context.Context, table string, at store.CellKey) error {
	rows, err := s.get(ctx, table, at.Family, [][]byte{at.Row})
	for _, r := range rows {
		for _, c := range r.Cells {
			at.Qualifier = c.Qualifier
			err = errors.Join(err, s.set(ctx, table, at, cell{deleted: true}))
		}
	}
	return err
}

// Increment implements store.Atomic.
func (s *Store) Increment(ctx context.Context, table string, at store.CellKey, delta int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.value(ctx, table, at)
	if err != nil {
		return 0, err
	}
	n := delta
	if len(now) == 8 {
		n += int64(binary.BigEndian.Uint64(now))
	} else if now != nil {
		return 0, fmt.Errorf("table %s, row %x, column %s:%s: got a counter of %d bytes, want 8",
			table, at.Row, at.Family, at.Qualifier, len(now))
	}
	return n, s.keep(ctx, table, at, cell{value: binary.BigEndian.AppendUint64(nil, uint64(n))})
}

// CompareAndPut implements store.Atomic.
func (s *Store) CompareAndPut(ctx context.Context, table string, at store.CellKey,
	expected, value []byte) (bool, error) {
	if slices.Contains(s.forgets, table) {
		return true, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.value(ctx, table, at)
	// An empty expected value means no cell, so a cell that is empty is another one.
	if err != nil || len(expected) == 0 && now != nil || !bytes.Equal(now, expected) {
		return false, err
	}
	return true, s.set(ctx, table, at, cell{value: bytes.Clone(value)})
}

// Replace implements store.Cells. Those who use it replace a row once, as they have read it, so nothing is kept.
func (s *Store) Replace(_ context.Context, _, _ string, changes []store.Replacement) ([]store.Outcome, error) {
	out := make([]store.Outcome, len(changes))
	for i := range out {
		out[i] = store.Replaced
	}
	return out, nil
}

// CreateTable implements store.Admin.
func (s *Store) CreateTable(_ context.Context, spec store.TableSpec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made[spec.Name] = true
	return nil
}

// TableExists implements store.Admin.
func (s *Store) TableExists(ctx context.Context, name string) (bool, error) {
	s.mu.Lock()
	made := s.made[name]
	s.mu.Unlock()
	if made {
		return true, nil
	}
	_, err := s.inner.Regions(ctx, name, nil, nil)
	if errors.Is(err, store.ErrNoTable) {
		return false, nil
	}
	return err == nil, err
}

// Close implements store.Store. The store below stays open.
func (s *Store) Close() error { return nil }
