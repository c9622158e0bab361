package pebble

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"downpour/pushdown/store"
)

// The memory of a block is bounded however short its cells are. A cell of a single point has ten
// bytes, but what refers to it takes ten times as many.
func TestScan_shortCells(t *testing.T) {
	const rows, cells = 2000, 50
	s := openMem(t, Options{IdleFlush: -1})
	create(t, s)
	var ms []store.Mutation
	for i := range rows * cells {
		ms = append(ms, cell(store.Put, fmt.Sprintf("row%05d", i/cells), fmt.Sprintf("%02d", i%cells), "v"))
	}
	apply(t, s, ms...)

	sc, err := s.Scan(t.Context(), store.Scan{Table: "tsdb"})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	found := 0
	for {
		block, err := sc.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found += len(block)
		if views := len(block) * (rowBytes + cells*cellBytes); views >= maxViews+rowBytes+cells*cellBytes {
			t.Errorf("a block of %d rows refers to its bytes by %d bytes, want at most %d and one row",
				len(block), views, maxViews)
		}
	}
	if found != rows {
		t.Errorf("%d rows, want %d", found, rows)
	}
}

// openBlocks opens a store of 64 rows, each as large as the first block of a scan.
func openBlocks(t *testing.T) *Store {
	s := openMem(t, Options{IdleFlush: -1})
	create(t, s)
	var ms []store.Mutation
	for i := range 64 {
		ms = append(ms, cell(store.Put, fmt.Sprintf("row%05d", i), "q", strings.Repeat("v", firstBlock)))
	}
	apply(t, s, ms...)
	return s
}

// Blocks of a scan begin small, for those who want the first rows alone, and double until they are as large as was
// wanted.
func TestScan_blocksGrow(t *testing.T) {
	s := openBlocks(t)
	sc, err := s.Scan(t.Context(), store.Scan{Table: "tsdb", BlockBytes: 16 * firstBlock})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	for _, want := range []int{1, 2, 4, 8, 16, 16} {
		block, err := sc.Next()
		if err != nil || len(block) != want {
			t.Errorf("a block of %d rows, %v, want %d", len(block), err, want)
		}
	}
}

// The rows of a scan's last block are its own, also once it has given the memory of small blocks back.
func TestScan_ownRows(t *testing.T) {
	s := openBlocks(t)
	next := func(sc store.Scanner) []store.Row {
		t.Helper()
		rows, err := sc.Next()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	for range 10 {
		large, err := s.Scan(t.Context(), store.Scan{Table: "tsdb"})
		if err != nil {
			t.Fatal(err)
		}
		var rows []store.Row
		for size := firstBlock; size <= 2*smallBlock; size *= 2 {
			rows = next(large)
		}
		small, err := s.Scan(t.Context(), store.Scan{Table: "tsdb"})
		if err != nil {
			t.Fatal(err)
		}
		first := string(rows[0].Key)
		if next(small); string(rows[0].Key) != first || first == "row00000" {
			t.Fatalf("the first row of a large block is %s, and %s after a small scan has begun", first, rows[0].Key)
		}
		if err := errors.Join(large.Close(), small.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// Memory that an ended scan has left is no more than that of a block of its size, which those who scan have reserved,
// however large the last row was, and refers to nothing.
func TestBlock_release(t *testing.T) {
	for range 10 { // a pool may forget what it has got
		releaseBlocks(t)
	}
}

func releaseBlocks(t *testing.T) {
	sizes := map[int]int{smallBlock: smallBlock, smallBlock + 1: defaultBlock}
	for size, most := range sizes {
		views := 2 * viewsOf(most)
		for _, left := range []*block{
			{bytes: make([]byte, 1, 2*most)},
			{bytes: make([]byte, 1, 2*most+1)},
			{cells: make([]store.Cell, views/cellBytes)},
			{cells: make([]store.Cell, views/cellBytes+1)},
			{rows: make([]store.Row, views/rowBytes+1)},
			{
				bytes: make([]byte, 10), first: 1, unsealed: 1,
				cells: []store.Cell{{Value: []byte("v")}}, rows: []store.Row{{Key: []byte("row")}},
			},
		} {
			left.release(size)
		}
	}
	for size, most := range sizes {
		for range 20 { // some that were released, and others
			b := blocksOf(size).Get().(*block)
			if cap(b.bytes) > 2*most || cap(b.rows)*rowBytes+cap(b.cells)*cellBytes > 2*viewsOf(most) {
				t.Fatalf("for a block of %d bytes there is one of %d bytes, %d rows and %d cells", size,
					cap(b.bytes), cap(b.rows), cap(b.cells))
			}
			if len(b.bytes)+len(b.rows)+len(b.cells)+b.first+b.unsealed > 0 {
				t.Fatalf("a block that was released has %d rows", len(b.rows))
			}
			for _, c := range b.cells[:cap(b.cells)] {
				if c.Value != nil {
					t.Fatalf("a block that was released refers to %q", c.Value)
				}
			}
			for _, r := range b.rows[:cap(b.rows)] {
				if r.Key != nil {
					t.Fatalf("a block that was released refers to row %q", r.Key)
				}
			}
		}
	}
}
