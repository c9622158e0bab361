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

// update reads a cell and writes the value that change returns, if change returns
// true; nothing else becomes visible in between. The lock is not held while await
// waits for the disk: those that read the new value meanwhile write their own behind
// it in the log.
func (s *Store) update(ctx context.Context, table string, cell store.CellKey, await func(*batch) error, change func(old []byte, found bool) ([]byte, bool, error)) (bool, error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	defer s.life.RUnlock()
	if err := s.tables.check(table, cell.Family); err != nil {
		return false, err
	}
	// Without a name, tables.check asks only for the table.
	if cell.Family == "" {
		return false, fmt.Errorf("row %x: family is empty", cell.Row)
	}
	if err := checkCell(cell.Row, cell.Family, cell.Qualifier); err != nil {
		return false, err
	}

	b, err := s.readAndWrite(table, cell, change)
	if b == nil || err != nil {
		return false, err
	}
	return true, await(b)
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
