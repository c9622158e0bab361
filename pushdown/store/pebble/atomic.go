package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Increment adds delta to a counter and returns its new value after fsync.
func (s *Store) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	return s.increment(ctx, table, cell, delta, s.awaitDurable)
}

// increment increments a counter, and returns what await returns of the batch that
// has made the new value visible.
func (s *Store) increment(ctx context.Context, table string, cell store.CellKey, delta int64,
	await func(*batch) error) (int64, error) {
	sums, err := s.incrementAll(ctx, table, []store.CellKey{cell}, []int64{delta}, await)
	if err != nil {
		return 0, err
	}
	return sums[0], nil
}

// IncrementAll is described by store.Features. It returns after fsync.
func (s *Store) IncrementAll(ctx context.Context, table string, cells []store.CellKey,
	deltas []int64) ([]int64, error) {
	return s.incrementAll(ctx, table, cells, deltas, s.awaitDurable)
}

// incrementAll increments counters, and returns what await returns of the batch that
// has made the new values visible.
func (s *Store) incrementAll(ctx context.Context, table string, cells []store.CellKey, deltas []int64,
	await func(*batch) error) ([]int64, error) {
	sums := make([]int64, len(cells))
	err := s.update(ctx, table, cells, await, func(i int, old []byte, found bool) ([]byte, bool, error) {
		if found && len(old) != 8 {
			return nil, false, fmt.Errorf("row %x, %s:%x: counter has %d bytes, want 8",
				cells[i].Row, cells[i].Family, cells[i].Qualifier, len(old))
		}
		if found {
			sums[i] = int64(binary.BigEndian.Uint64(old))
		}
		sums[i] += deltas[i]
		return binary.BigEndian.AppendUint64(nil, uint64(sums[i])), true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("increment in table %q: %w", table, err)
	}
	return sums, nil
}

// CompareAndPut writes value if the cell holds expected, or is absent when
// expected is empty.
func (s *Store) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	return s.compareAndPut(ctx, table, cell, expected, value, s.awaitDurable)
}

// compareAndPut writes value if the cell holds expected, and returns what await
// returns of the batch that has made it visible.
func (s *Store) compareAndPut(ctx context.Context, table string, cell store.CellKey, expected, value []byte,
	await func(*batch) error) (bool, error) {
	wrote := false
	cells := []store.CellKey{cell}
	err := s.update(ctx, table, cells, await, func(_ int, old []byte, found bool) ([]byte, bool, error) {
		if len(expected) == 0 {
			wrote = !found
		} else {
			wrote = bytes.Equal(old, expected) // not of a cell that does not exist, whose value is empty
		}
		return value, wrote, nil
	})
	if err != nil {
		return false, fmt.Errorf("compare and put in table %q: %w", table, err)
	}
	return wrote, nil
}

// PutAbsent is described by store.Features. It returns after fsync.
func (s *Store) PutAbsent(ctx context.Context, table string, cells []store.CellKey, values [][]byte) ([]bool, error) {
	return s.putAbsent(ctx, table, cells, values, s.awaitDurable)
}

// putAbsent writes those of some cells that do not exist, and returns what await returns
// of the batch that has made them visible.
func (s *Store) putAbsent(ctx context.Context, table string, cells []store.CellKey, values [][]byte,
	await func(*batch) error) ([]bool, error) {
	wrote := make([]bool, len(cells))
	err := s.update(ctx, table, cells, await, func(i int, _ []byte, found bool) ([]byte, bool, error) {
		wrote[i] = !found //fault:cell-that-exists-put-as-absent TestConformance
		return values[i], wrote[i], nil
	})
	if err != nil {
		return nil, fmt.Errorf("put absent cells of table %q: %w", table, err)
	}
	return wrote, nil
}

// update reads cells, which differ, and writes for each the value that change returns, if
// change returns true; nothing else becomes visible in between. After an error of change
// nothing is written. The lock is not held while await waits for the disk: those that read
// the new values before that write their own behind them in the log.
func (s *Store) update(ctx context.Context, table string, cells []store.CellKey, await func(*batch) error,
	change func(i int, old []byte, found bool) ([]byte, bool, error)) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.life.RUnlock()
	for _, c := range cells {
		if err := s.checkPlace(table, c.Row, c.Family, c.Qualifier); err != nil {
			return err
		}
	}

	b, err := s.readAndWrite(table, cells, change)
	if b == nil || err != nil {
		return err
	}
	return await(b)
}

// readAndWrite is the part of update that excludes other writers. It returns the
// batch that it has made visible, nil if change did not want to write.
func (s *Store) readAndWrite(table string, cells []store.CellKey,
	change func(i int, old []byte, found bool) ([]byte, bool, error)) (*batch, error) {
	s.change.Lock()
	defer s.change.Unlock()

	b, now := s.newBatch(0), s.opts.Now().UnixMilli()
	err := s.readCells(table, cells, func(i int, old []byte, found bool) error {
		value, write, err := change(i, old, found)
		if c := &cells[i]; write && err == nil {
			b.put(table, c.Row, c.Family, c.Qualifier, now, value)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}

	if b.Empty() {
		return nil, b.Close()
	}
	if err := s.makeVisible(b); err != nil {
		return nil, err
	}
	return b, nil
}

// readCells calls got with the value of each cell, which it must not keep; found is false of
// one that does not exist. It stops at the first error. The cells come in the order of their
// keys. New rows that follow each other, as UIDs do, cost one seek: what stands behind one is
// behind the next ones, too.
func (s *Store) readCells(table string, cells []store.CellKey, got func(i int, value []byte, found bool) error) error {
	if len(cells) == 0 {
		return nil
	}
	keys := sortedKeys(table, cells)
	if len(cells) == 1 {
		return s.readApart(table, keys, got)
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: keys[0].key, UpperBound: appendTableEnd(nil, table)})
	if err != nil {
		return fmt.Errorf("cannot read %d cells: %w", len(cells), unreadable(err))
	}
	left, err := walk(it, keys, got)
	if len(left) > 0 {
		err = s.readApart(table, left, got)
	}
	return errors.Join(err, it.Close())
}

// readApart is readCells for cells of rows that are far apart, most of them missing: bloom
// filters answer for these. Those of the last level, which pebble leaves out by default,
// are the ones that matter: without them each such read uncompresses a block there.
func (s *Store) readApart(table string, keys []cellAt, got func(i int, value []byte, found bool) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound:   keys[0].key,
		UpperBound:   appendTableEnd(nil, table),
		UseL6Filters: true,
	})
	if err != nil {
		return fmt.Errorf("cannot read %d cells: %w", len(keys), unreadable(err))
	}
	for _, k := range keys {
		it.SeekPrefixGE(k.key) // it seeks the whole key, among the keys of its row
		if err = k.read(it, got); err != nil {
			break
		}
	}
	return errors.Join(err, it.Close())
}

// cellAt is the key of a cell and its place among others.
type cellAt struct {
	key []byte
	at  int
}

// sortedKeys returns the keys of cells in the order of the store.
func sortedKeys(table string, cells []store.CellKey) []cellAt {
	size := 0
	for i := range cells {
		size += prefixLen(table, cells[i].Row) + suffixLen(cells[i].Family, cells[i].Qualifier)
	}
	room, keys := make([]byte, 0, size), make([]cellAt, len(cells))
	for i, c := range cells {
		begin := len(room)
		room = appendKey(room, table, c.Row, c.Family, c.Qualifier)
		keys[i] = cellAt{room[begin:], i}
	}
	slices.SortFunc(keys, func(a, b cellAt) int { return compareKeys(a.key, b.key) })
	return keys
}

// maxAlone is how many seeks in a row may serve one cell each. Then rows lie far apart, and a
// read of each, which asks the bloom filters first, is cheaper than a seek in all tables.
const maxAlone = 4

// walk is readCells on an iterator. It returns the keys that are left, because they lie far apart, or an error.
func walk(it *pebble.Iterator, keys []cellAt, got func(i int, value []byte, found bool) error) (
	left []cellAt, err error) {
	alone, sought := 0, -1
	for n, k := range keys {
		// The iterator stands on the first key that is not before the last one sought, or
		// behind all.
		if sought < 0 || it.Valid() && compareKeys(it.Key(), k.key) < 0 {
			if alone++; n-sought > 1 {
				alone = 0
			}
			if alone > maxAlone {
				return keys[n:], nil
			}
			sought = n
			it.SeekGE(k.key)
		}
		if err := k.read(it, got); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// read calls got with the cell under an iterator, if it is this one.
func (k cellAt) read(it *pebble.Iterator, got func(i int, value []byte, found bool) error) error {
	if err := it.Error(); err != nil {
		return fmt.Errorf("cannot read %v: %w", keyFormat(k.key), unreadable(err))
	}
	if !it.Valid() || !bytes.Equal(it.Key(), k.key) {
		return got(k.at, nil, false)
	}
	stored, err := it.ValueAndErr()
	if err != nil {
		return fmt.Errorf("cannot read %v: %w", keyFormat(k.key), unreadable(err))
	}
	return k.parse(stored, got)
}

// parse calls got with what is stored.
func (k cellAt) parse(stored []byte, got func(i int, value []byte, found bool) error) error {
	v, err := parseValue(stored)
	if err != nil {
		return fmt.Errorf("cannot read %v: %w", keyFormat(k.key), err)
	}
	value, err := v.entries(nil, new(encoding.Unsealer))
	if err != nil {
		return fmt.Errorf("cannot read %v: %w", keyFormat(k.key), err)
	}
	return got(k.at, value, true)
}
