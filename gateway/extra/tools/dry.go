package tools

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

// dryMode says how a command answers -dry-run. One that never changes anything has nothing to do.
type dryMode int

const (
	// noDry refuses it.
	noDry dryMode = iota
	// ownDry leaves it to the command.
	ownDry
	// storeDry gives the command a dryStore: it does all that it would do, and says the same.
	storeDry
)

// dryLine stands before what a command says in a dry run, in the words of the real one.
const dryLine = "dry run, nothing is changed; this would be done:"

// beginDry tells of a dry run, or refuses it.
func (c *call) beginDry() error {
	if c.command.changes == nil || !c.command.changes(c) {
		return nil
	}
	switch c.dryModeOf() {
	case noDry:
		return c.usage("-dry-run: gateway %s has no dry run for this; nothing is done", c.command.Name)
	case storeDry:
		to := c.Out
		if c.command.Name == "scan" { // whose output import reads
			to = c.Err
		}
		fmt.Fprintln(to, dryLine)
	}
	return nil
}

// dryModeOf is the mode of the command; those of uid differ.
func (c *call) dryModeOf() dryMode {
	if c.command.Name != "uid" || len(c.args) == 0 {
		return c.command.dry
	}
	switch c.args[0] {
	case "fsck", treeSync, treePurge:
		return storeDry
	case "metasync", "metapurge":
		return ownDry
	}
	return noDry
}

// dryStore is a store that takes changes as if they were made, keeps those of single cells in memory, and
// leaves all tables as they are. Get, and a scan of one row, find what was changed; longer scans find what
// is in the tables. It is for the work of one command. It does not embed the store below: a change that
// nobody has thought of must not compile, rather than be made.
type dryStore struct {
	inner Store
	mu    sync.Mutex
	rows  map[dryRow]map[dryColumn]dryCell
}

type (
	dryRow    struct{ table, key string }
	dryColumn struct{ family, qualifier string }
	dryCell   struct {
		value   []byte
		deleted bool
	}
)

// dryCellBytes is about what a changed cell takes beside its bytes.
const dryCellBytes = 250

func newDryStore(st Store) *dryStore {
	return &dryStore{inner: st, rows: map[dryRow]map[dryColumn]dryCell{}}
}

// set notes a change. The caller holds mu.
func (s *dryStore) set(ctx context.Context, table string, at store.CellKey, cell dryCell) error {
	if err := memory.Reserve(ctx, int64(len(at.Row)+len(at.Qualifier)+len(cell.value)+dryCellBytes)); err != nil {
		return err
	}
	row := dryRow{table, string(at.Row)}
	if s.rows[row] == nil {
		s.rows[row] = map[dryColumn]dryCell{}
	}
	s.rows[row][dryColumn{at.Family, string(at.Qualifier)}] = cell
	return nil
}

// value is what a cell holds now, nil if it is not there. The caller holds mu.
func (s *dryStore) value(ctx context.Context, table string, at store.CellKey) ([]byte, error) {
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

// Features implements store.Reader. All of them would go past what was changed, or change the tables.
func (s *dryStore) Features() store.Features { return store.Features{} }

// Regions implements store.Reader.
func (s *dryStore) Regions(ctx context.Context, table string, start, stop []byte) ([]store.Region, error) {
	return s.inner.Regions(ctx, table, start, stop)
}

// Get implements store.Reader.
func (s *dryStore) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(ctx, table, family, keys)
}

func (s *dryStore) get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	rows, err := s.inner.Get(ctx, table, family, keys)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		changed := s.rows[dryRow{table, string(key)}]
		if len(changed) == 0 {
			continue
		}
		at, there := slices.BinarySearchFunc(rows, key, func(r store.Row, key []byte) int { return bytes.Compare(r.Key, key) })
		row := store.Row{Key: key}
		if there {
			row = rows[at]
		}
		row.Cells = merged(row.Cells, changed, family)
		switch {
		case there && len(row.Cells) == 0:
			rows = slices.Delete(rows, at, at+1)
		case there:
			rows[at] = row
		case len(row.Cells) > 0:
			rows = slices.Insert(rows, at, row)
		}
	}
	return rows, nil
}

// merged returns the cells of a row with the changes of a family, of all for "".
func merged(cells []store.Cell, changed map[dryColumn]dryCell, family string) (out []store.Cell) {
	for _, c := range cells {
		if _, ok := changed[dryColumn{string(c.Family), string(c.Qualifier)}]; !ok {
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
func (s *dryStore) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	oneRow := len(scan.Stop) == len(scan.Start)+1 && bytes.HasPrefix(scan.Stop, scan.Start) && scan.Stop[len(scan.Start)] == 0
	if !oneRow {
		return s.inner.Scan(ctx, scan)
	}
	rows, err := s.Get(ctx, scan.Table, scan.Family, [][]byte{scan.Start})
	if err != nil {
		return nil, err
	}
	var out oneBlock
	for _, r := range rows {
		if len(scan.Columns) > 0 {
			r.Cells = slices.DeleteFunc(slices.Clone(r.Cells), func(c store.Cell) bool {
				return !slices.ContainsFunc(scan.Columns, func(of store.KeyRange) bool { return of.Contains(c.Qualifier) })
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

// errDryAppend is returned for points, which no command with a dry run writes so.
var errDryAppend = errors.New("a dry run appends nothing to cells")

// Apply implements store.Writer.
func (s *dryStore) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range mutations {
		at := store.CellKey{Row: m.Row, Family: m.Family, Qualifier: m.Qualifier}
		var err error
		switch m.Kind {
		case store.Put:
			err = s.set(ctx, table, at, dryCell{value: bytes.Clone(m.Value)})
		case store.DeleteCell:
			err = s.set(ctx, table, at, dryCell{deleted: true})
		case store.DeleteRow:
			err = s.deleteRow(ctx, table, at)
		default:
			err = errDryAppend
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteRow deletes all cells of a row's family.
func (s *dryStore) deleteRow(ctx context.Context, table string, at store.CellKey) error {
	rows, err := s.get(ctx, table, at.Family, [][]byte{at.Row})
	for _, r := range rows {
		for _, c := range r.Cells {
			at.Qualifier = c.Qualifier
			err = errors.Join(err, s.set(ctx, table, at, dryCell{deleted: true}))
		}
	}
	return err
}

// Increment implements store.Atomic.
func (s *dryStore) Increment(ctx context.Context, table string, at store.CellKey, delta int64) (int64, error) {
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
		return 0, fmt.Errorf("table %s, row %x, column %s:%s: got a counter of %d bytes, want 8", table, at.Row, at.Family, at.Qualifier, len(now))
	}
	return n, s.set(ctx, table, at, dryCell{value: binary.BigEndian.AppendUint64(nil, uint64(n))})
}

// CompareAndPut implements store.Atomic.
func (s *dryStore) CompareAndPut(ctx context.Context, table string, at store.CellKey, expected, value []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.value(ctx, table, at)
	// An empty expected value means no cell, so a cell that is empty is another one.
	if err != nil || len(expected) == 0 && now != nil || !bytes.Equal(now, expected) {
		return false, err
	}
	return true, s.set(ctx, table, at, dryCell{value: bytes.Clone(value)})
}

// Replace implements store.Cells. Commands replace a row once, as they have read it, so nothing is kept.
func (s *dryStore) Replace(_ context.Context, _, _ string, changes []store.Replacement) ([]store.Outcome, error) {
	out := make([]store.Outcome, len(changes))
	for i := range out {
		out[i] = store.Replaced
	}
	return out, nil
}

// CreateTable implements store.Admin.
func (s *dryStore) CreateTable(context.Context, store.TableSpec) error { return nil }

// TableExists implements store.Admin.
func (s *dryStore) TableExists(ctx context.Context, name string) (bool, error) {
	return s.inner.TableExists(ctx, name)
}

// Close implements store.Store.
func (s *dryStore) Close() error { return s.inner.Close() }
