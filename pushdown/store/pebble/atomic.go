package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// Increment adds delta to a counter and returns its new value after fsync.
func (s *Store) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	return s.increment(ctx, table, cell, delta, s.awaitDurable)
}

// increment increments a counter, and returns what await returns of the batch that
// has made the new value visible.
func (s *Store) increment(ctx context.Context, table string, cell store.CellKey, delta int64, await func(*batch) error) (int64, error) {
	var sum int64
	_, err := s.update(ctx, table, cell, await, func(old []byte, found bool) ([]byte, bool, error) {
		if found && len(old) != 8 {
			return nil, false, fmt.Errorf("row %x, %s:%x: counter has %d bytes, want 8", cell.Row, cell.Family, cell.Qualifier, len(old))
		}
		if found {
			sum = int64(binary.BigEndian.Uint64(old))
		}
		sum += delta
		return binary.BigEndian.AppendUint64(nil, uint64(sum)), true, nil
	})
	if err != nil {
		return 0, fmt.Errorf("increment in table %q: %w", table, err)
	}
	return sum, nil
}

// CompareAndPut writes value if the cell holds expected, or is absent when
// expected is empty.
func (s *Store) CompareAndPut(ctx context.Context, table string, cell store.CellKey, expected, value []byte) (bool, error) {
	return s.compareAndPut(ctx, table, cell, expected, value, s.awaitDurable)
}

// compareAndPut writes value if the cell holds expected, and returns what await
// returns of the batch that has made it visible.
func (s *Store) compareAndPut(ctx context.Context, table string, cell store.CellKey, expected, value []byte, await func(*batch) error) (bool, error) {
	wrote, err := s.update(ctx, table, cell, await, func(old []byte, found bool) ([]byte, bool, error) {
		if len(expected) == 0 {
			return value, !found, nil
		}
		return value, found && bytes.Equal(old, expected), nil
	})
	if err != nil {
		return false, fmt.Errorf("compare and put in table %q: %w", table, err)
	}
	return wrote, nil
}

// PutAbsent implements store.AbsentPutter. It returns after fsync.
func (s *Store) PutAbsent(ctx context.Context, table string, cells []store.CellKey, values [][]byte) ([]bool, error) {
	return s.putAbsent(ctx, table, cells, values, s.awaitDurable)
}

// putAbsent writes those of some cells that do not exist, and returns what await returns of
// the batch that has made them visible. Nothing else becomes visible in between.
func (s *Store) putAbsent(ctx context.Context, table string, cells []store.CellKey, values [][]byte, await func(*batch) error) ([]bool, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.life.RUnlock()
	for _, c := range cells {
		if err := s.checkUpdate(table, c); err != nil {
			return nil, fmt.Errorf("put absent cells of table %q: %w", table, err)
		}
	}

	wrote, b, err := s.readAndPutAbsent(table, cells, values)
	if b == nil || err != nil {
		return wrote, err
	}
	return wrote, await(b)
}

// readAndPutAbsent is the part of putAbsent that excludes other writers. The batch is nil if
// all cells exist.
func (s *Store) readAndPutAbsent(table string, cells []store.CellKey, values [][]byte) ([]bool, *batch, error) {
	s.change.Lock()
	defer s.change.Unlock()

	wrote, writes := make([]bool, len(cells)), false
	var key []byte
	for i, c := range cells {
		key = appendKey(key[:0], table, c.Row, c.Family, c.Qualifier)
		_, found, err := s.readCell(key)
		if err != nil {
			return nil, nil, fmt.Errorf("put absent cells of table %q: %w", table, err)
		}
		wrote[i] = !found
		writes = writes || !found
	}
	if !writes {
		return wrote, nil, nil
	}

	b, now := s.newBatch(0), s.opts.Now().UnixMilli()
	for i, c := range cells {
		if wrote[i] {
			b.put(table, c.Row, c.Family, c.Qualifier, now, values[i])
		}
	}
	if err := s.makeVisible(b); err != nil {
		return nil, nil, fmt.Errorf("put absent cells of table %q: %w", table, err)
	}
	return wrote, b, nil
}

// update reads a cell and writes the value that change returns, if change returns
// true; nothing else becomes visible in between. The lock is not held while await
// waits for the disk: those that read the new value meanwhile write their own behind
// it in the log.
func (s *Store) update(ctx context.Context, table string, cell store.CellKey, await func(*batch) error, change func(old []byte, found bool) ([]byte, bool, error)) (bool, error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	defer s.life.RUnlock()
	if err := s.checkUpdate(table, cell); err != nil {
		return false, err
	}

	b, err := s.readAndWrite(table, cell, change)
	if b == nil || err != nil {
		return false, err
	}
	return true, await(b)
}

// checkUpdate checks that a cell can be in a table.
func (s *Store) checkUpdate(table string, cell store.CellKey) error {
	if err := s.tables.check(table, cell.Family); err != nil {
		return err
	}
	// Without a name, tables.check asks only for the table.
	if cell.Family == "" {
		return fmt.Errorf("row %x: family is empty", cell.Row)
	}
	return checkCell(cell.Row, cell.Family, cell.Qualifier)
}

// readAndWrite is the part of update that excludes other writers. It returns the
// batch that it has made visible, nil if change did not want to write.
func (s *Store) readAndWrite(table string, cell store.CellKey, change func(old []byte, found bool) ([]byte, bool, error)) (*batch, error) {
	s.change.Lock()
	defer s.change.Unlock()

	old, found, err := s.readCell(appendKey(nil, table, cell.Row, cell.Family, cell.Qualifier))
	if err != nil {
		return nil, err
	}
	value, write, err := change(old, found)
	if err != nil || !write {
		return nil, err
	}

	b := s.newBatch(0)
	b.put(table, cell.Row, cell.Family, cell.Qualifier, s.opts.Now().UnixMilli(), value)
	if err := s.makeVisible(b); err != nil {
		return nil, err
	}
	return b, nil
}

// readCell returns a copy of the value of the cell with a key.
func (s *Store) readCell(key []byte) (value []byte, found bool, err error) {
	stored, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot read %v: %w", keyFormat(key), unreadable(err))
	}

	_, value, err = parseValue(stored)
	if err != nil {
		err = fmt.Errorf("cannot read %v: %w", keyFormat(key), err)
	}
	return bytes.Clone(value), true, errors.Join(err, closer.Close())
}
