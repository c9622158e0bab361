package storetest

import (
	"context"
	"sync/atomic"

	"downpour/pushdown/store"
)

// Marked is a store that makes marks, as jobs need it.
type Marked interface {
	store.Cells
	store.Marker
	store.Admin
}

// Counting is a store that counts what it is asked: scans, Gets, marks, and whether one holds.
type Counting struct {
	Marked
	Asked atomic.Int64
}

// Get counts, and asks the store below.
func (c *Counting) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	c.Asked.Add(1)
	return c.Marked.Get(ctx, table, family, keys)
}

// Scan counts, and asks the store below.
func (c *Counting) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	c.Asked.Add(1)
	return c.Marked.Scan(ctx, s)
}

// Mark counts, and asks the store below.
func (c *Counting) Mark(ctx context.Context, table, family string, r store.KeyRange) (store.Mark, error) {
	c.Asked.Add(1)
	return c.Marked.Mark(ctx, table, family, r)
}

// Unchanged counts, and asks the store below.
func (c *Counting) Unchanged(ctx context.Context, table, family string, r store.KeyRange, mark string) error {
	c.Asked.Add(1)
	return c.Marked.Unchanged(ctx, table, family, r, mark)
}
