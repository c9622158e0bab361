package pebble

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
)

var _ store.Stager = (*Store)(nil)

// Staged are the atomic operations without their wait for the disk. All writes
// go through one log: what is acknowledged later stands behind them there.
func (s *Store) Staged() store.Atomic { return staged{s} }

// staged lets the disk come later.
type staged struct{ s *Store }

// Increment is Store.Increment, visible when it returns.
func (a staged) Increment(ctx context.Context, table string, cell store.CellKey, delta int64) (int64, error) {
	return a.s.increment(ctx, table, cell, delta, a.s.settleLater)
}

// CompareAndPut is Store.CompareAndPut, visible when it returns.
func (a staged) CompareAndPut(ctx context.Context, table string, cell store.CellKey, expected, value []byte) (bool, error) {
	return a.s.compareAndPut(ctx, table, cell, expected, value, a.s.settleLater)
}

// settleLater lets somebody else wait for the disk; Close waits for them.
func (s *Store) settleLater(b *batch) error {
	s.later.Go(func() { _ = s.finishCommit(b) }) // an error has ended the process
	return nil
}

// Sync returns once all that is visible is durable.
func (s *Store) Sync(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.life.RUnlock()
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}
