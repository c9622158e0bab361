package storetest

import (
	"context"
	"sync/atomic"

	"downpour/pushdown/store"
)

// Counting is a store that counts its calls: scans, Gets, marks, and checks of marks.
type Counting struct {
	store.Store
	Asked atomic.Int64
}

// Get counts, and calls the store below.
func (c *Counting) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	c.Asked.Add(1)
	return c.Store.Get(ctx, table, family, keys)
}

// Scan counts, and calls the store below.
func (c *Counting) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	c.Asked.Add(1)
	return c.Store.Scan(ctx, s)
}

// Features implements store.Reader. It has only marks.
func (c *Counting) Features() store.Features {
	return store.Features{
		Versioner:     nil,
		Marker:        countingMarker{c.Store.Features().Marker, c},
		Staged:        nil,
		RangeDeleter:  nil,
		Versioned:     nil,
		PutAbsent:     nil,
		IncrementAll:  nil,
		Watch:         nil,
		Writable:      nil,
		DiskUsage:     nil,
		Checkpoint:    nil,
		Seal:          nil,
		Inspect:       nil,
		CheckReadable: nil,
	}
}

// countingMarker counts a Counting's calls for marks.
type countingMarker struct {
	store.Marker
	counting *Counting
}

// Mark counts, and calls the store below.
func (c countingMarker) Mark(ctx context.Context, table, family string, r store.KeyRange) (store.Mark, error) {
	c.counting.Asked.Add(1)
	return c.Marker.Mark(ctx, table, family, r)
}

// Unchanged counts, and calls the store below.
func (c countingMarker) Unchanged(ctx context.Context, table, family string, r store.KeyRange, mark string) error {
	c.counting.Asked.Add(1)
	return c.Marker.Unchanged(ctx, table, family, r, mark)
}
