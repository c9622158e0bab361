package retention_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"downpour/pushdown/store"
)

// crowded is a store that cannot give place back while its disk is full.
type crowded struct {
	store.Store
	full           atomic.Bool
	deletes, tries atomic.Int64
	scans          atomic.Int64
	reclaimed      atomic.Int64
}

func (c *crowded) Features() store.Features { return store.Features{RangeDeleter: c} }

func (c *crowded) DeleteRows(ctx context.Context, table string, ranges []store.KeyRange) error {
	c.deletes.Add(1)
	return c.Store.Features().RangeDeleter.DeleteRows(ctx, table, ranges)
}

func (c *crowded) Reclaim(_ context.Context, table string, ranges []store.KeyRange) error {
	c.tries.Add(1)
	if c.full.Load() {
		return fmt.Errorf("%w, says the test", store.ErrFull)
	}
	c.reclaimed.Add(int64(len(ranges)))
	return nil
}

func (c *crowded) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	c.scans.Add(1)
	return c.Store.Scan(ctx, scan)
}

func (c *crowded) DiskBytes(ctx context.Context, table string, ranges []store.KeyRange) (int64, error) {
	return c.Store.Features().RangeDeleter.DiskBytes(ctx, table, ranges)
}
