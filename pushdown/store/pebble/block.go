package pebble

import (
	"sync"
	"unsafe"

	"downpour/pushdown/store"
)

// smallBlocks and largeBlocks keep the memory of ended scans for later ones: a query opens
// many scans, and each would grow a block of its own. The garbage collector may take it,
// so that what a storm of queries needed does not stay. A scan that reads little at a time
// must not hold the memory of one that read much, which nobody has reserved for it.
var (
	smallBlocks = sync.Pool{New: func() any { return new(block) }}
	largeBlocks = sync.Pool{New: func() any { return new(block) }}
)

// smallBlock is the most bytes of a block that has its memory from smallBlocks.
const smallBlock = 64 << 10

// blocksOf returns the pool for blocks of so many bytes.
func blocksOf(size int) *sync.Pool {
	if size <= smallBlock {
		return &smallBlocks
	}
	return &largeBlocks
}

// block holds copies of rows. Its three slices are used again for the next block.
// When one of them must grow in between, the views into the old array stay valid,
// because nothing overwrites that array any more.
type block struct {
	bytes []byte // keys, families, qualifiers and values
	cells []store.Cell
	rows  []store.Row
	first int // index of the open row's first cell
	begin int // offset of the open row's bytes
	// unsealed is about the bytes that sealed values would have as entries: those who read a block make as much
	// of it as of these, and have reserved no more memory.
	unsealed int
}

// Bytes of a row and of a cell, without keys and values.
const (
	rowBytes  = int(unsafe.Sizeof(store.Row{}))
	cellBytes = int(unsafe.Sizeof(store.Cell{}))
)

// full reports whether a block of a scan that asks for size bytes takes no more rows.
// A point in a cell of its own has some ten bytes, and its cell ten times as many, so
// the memory of rows and cells has a bound, too.
func (b *block) full(size int) bool {
	return len(b.bytes)+b.unsealed >= size || len(b.rows)*rowBytes+len(b.cells)*cellBytes >= viewsOf(size)
}

// viewsOf bounds the bytes of the rows and cells of a block of size bytes, without those of
// its last row.
func viewsOf(size int) int { return min(2*size, maxViews) }

// maxViews is viewsOf of large blocks.
const maxViews = 1 << 20

// release gives the memory to later scans of blocks of size bytes, once nobody can hold a
// view into it or into rows any more. A block that one large row has blown up is left to the
// garbage collector.
func (b *block) release(size int) {
	most := smallBlock
	if size > smallBlock {
		most = defaultBlock
	}
	if cap(b.bytes) > 2*most || cap(b.rows)*rowBytes+cap(b.cells)*cellBytes > 2*viewsOf(most) {
		return
	}

	// Old cells and rows would keep arrays alive that bytes has grown out of.
	clear(b.cells[:cap(b.cells)])
	clear(b.rows[:cap(b.rows)])
	b.reset()
	blocksOf(size).Put(b)
}

// reset removes the rows and keeps the capacity.
func (b *block) reset() {
	b.bytes, b.cells, b.rows, b.first, b.unsealed = b.bytes[:0], b.cells[:0], b.rows[:0], 0, 0
}

// copy appends v to bytes and returns the copy. Its capacity ends with it, so that
// appending to the copy overwrites nothing.
func (b *block) copy(v []byte) []byte {
	n := len(b.bytes)
	b.bytes = append(b.bytes, v...)
	return b.bytes[n:len(b.bytes):len(b.bytes)]
}

// openRow begins a row; the cells that are added belong to it until closeRow.
func (b *block) openRow(key []byte) {
	b.first, b.begin = len(b.cells), len(b.bytes)
	b.rows = append(b.rows, store.Row{Key: b.copy(key)})
}

// addCell adds a cell to the open row. Cells in a row mostly have the same family,
// so the name of the last one is shared.
func (b *block) addCell(family, qualifier, value []byte, ms int64) {
	c := store.Cell{Timestamp: ms}
	if n := len(b.cells); n > 0 && string(b.cells[n-1].Family) == string(family) {
		c.Family = b.cells[n-1].Family
	} else {
		c.Family = b.copy(family)
	}
	c.Qualifier, c.Value = b.copy(qualifier), b.copy(value)
	b.cells = append(b.cells, c)
}

// closeRow ends the open row. It removes a row without cells, and reports whether the
// row has stayed.
func (b *block) closeRow() bool {
	last := len(b.rows) - 1
	if len(b.cells) == b.first {
		b.rows, b.bytes = b.rows[:last], b.bytes[:b.begin]
		return false
	}

	// Only now, because cells may have moved while the row grew.
	b.rows[last].Cells = b.cells[b.first:len(b.cells):len(b.cells)]
	return true
}
