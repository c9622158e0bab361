package pebble

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

// Staged returns the atomic operations without their wait for the disk. All writes
// go through one log, in which everything that is acknowledged later follows theirs.
func (s *Store) Staged() store.Staged { return staged{s} }

// staged has the atomic operations that return as soon as they are visible.
type staged struct{ s *Store }

// Increment is Store.Increment, but the change is only visible when it returns.
func (a staged) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	return a.s.increment(ctx, table, cell, delta, a.s.awaitDurableLater)
}

// CompareAndPut is Store.CompareAndPut, but the change is only visible when it returns.
func (a staged) CompareAndPut(ctx context.Context, table string, cell store.CellKey,
	expected, value []byte) (bool, error) {
	return a.s.compareAndPut(ctx, table, cell, expected, value, a.s.awaitDurableLater)
}

// PutAbsent is Store.PutAbsent, but the cells are only visible when it returns.
func (a staged) PutAbsent(ctx context.Context, table string, cells []store.CellKey, values [][]byte) ([]bool, error) {
	return a.s.putAbsent(ctx, table, cells, values, a.s.awaitDurableLater)
}

// Sync is Store.Sync.
func (a staged) Sync(ctx context.Context) error { return a.s.Sync(ctx) }

// awaitDurableLater waits for the disk in a goroutine of its own, for which Close
// waits.
func (s *Store) awaitDurableLater(b *batch) error {
	s.staging.Go(func() { _ = s.awaitDurable(b) }) // an error has ended the process
	return nil
}

// Sync returns once everything is durable that was visible when it was called.
func (s *Store) Sync(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.life.RUnlock()

	// An empty record follows all others in the log, so once it is durable they are.
	if err := s.db.LogData(nil, pebble.Sync); err != nil { //fault:sync-without-waiting TestStaged_sync
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}
