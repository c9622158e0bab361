// Package wholetable is for tools that go through a whole table of any size in bounded memory.
// They read its rows in large blocks (Rows) and report how far they are (Counted). They look up many rows of
// another table at a time (Lookup). Where what they keep takes too much memory (Budget), they
// read again for a share of the keys at a time (Share).
package wholetable

import (
	"context"
	"iter"
	"slices"

	"downpour/pushdown/store"
)

// BlockBytes is about how much of a table is read at a time.
const BlockBytes = 1 << 20

// Rows reads a scan as store.Rows does, in large blocks.
func Rows(ctx context.Context, from store.Reader, s store.Scan) iter.Seq2[store.Row, error] {
	s.BlockBytes = BlockBytes
	return store.Rows(ctx, from, s)
}

// Counted is Rows. At each row whose number is a multiple of every it calls progress with that number,
// before the row is handed out.
func Counted(
	ctx context.Context, from store.Reader, s store.Scan, every int, progress func(rows int),
) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		rows := 0
		for row, err := range Rows(ctx, from, s) {
			if err == nil {
				if rows++; rows%every == 0 {
					progress(rows)
				}
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// Cells are values that were read, by row and column.
type Cells map[[2]string][]byte

// Value returns the value of a cell, nil for none; an empty value is not nil.
func (c Cells) Value(row, qualifier string) []byte { return c[[2]string{row, qualifier}] }

// perGet is the number of rows that Lookup reads at a time.
const perGet = 1000

// Lookup returns the cells of rows in a family. Keys may repeat.
func Lookup(ctx context.Context, from store.Reader, table, family string, keys []string) (Cells, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	cells := make(Cells, len(keys))
	for part := range slices.Chunk(keys, perGet) {
		raw := make([][]byte, len(part))
		for i, k := range part {
			raw[i] = []byte(k)
		}

		rows, err := from.Get(ctx, table, family, raw)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			row := string(r.Key)
			for _, c := range r.Cells {
				cells[[2]string{row, string(c.Qualifier)}] = append([]byte{}, c.Value...) // never nil, see Value
			}
		}
	}
	return cells, nil
}
