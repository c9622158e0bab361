package pebble

import "downpour/pushdown/store"

// blocks keeps the memory of ended scans for the next ones: a query opens many,
// each of which would grow a block of its own.
var blocks = make(chan *block, 16)

// newBlock is an ended scan's, or a new one.
func newBlock() *block {
	select {
	case b := <-blocks:
		return b
	default:
		return new(block)
	}
}

// block holds copies of whole rows. Its three slices are used again for the
// next block; when one must grow in between, the views into the old array stay
// valid, for nothing overwrites that.
type block struct {
	bytes []byte
	cells []store.Cell
	rows  []store.Row
	first int // first cell of the open row
	begin int // where its bytes begin
}

// release gives the memory back once nobody can hold a view into it, the rows'
// own memory included. A block that one large row has blown up is let go.
func (b *block) release() {
	if cap(b.bytes) > 4*defaultBlock {
		return
	}
	clear(b.cells[:cap(b.cells)])
	clear(b.rows[:cap(b.rows)])
	b.reset()
	select {
	case blocks <- b:
	default:
	}
}

// reset forgets the rows and keeps the room.
func (b *block) reset() {
	b.bytes, b.cells, b.rows, b.first = b.bytes[:0], b.cells[:0], b.rows[:0], 0
}

// copy keeps a copy of v.
func (b *block) copy(v []byte) []byte {
	n := len(b.bytes)
	b.bytes = append(b.bytes, v...)
	return b.bytes[n:len(b.bytes):len(b.bytes)]
}

// openRow begins a row.
func (b *block) openRow(key []byte) {
	b.first, b.begin = len(b.cells), len(b.bytes)
	b.rows = append(b.rows, store.Row{Key: b.copy(key)})
}

// cell adds a cell to the open row. Family names repeat, so the last one's
// copy is used again.
func (b *block) cell(family, qualifier, value []byte, ms int64) {
	c := store.Cell{Timestamp: ms}
	if n := len(b.cells); n > 0 && string(b.cells[n-1].Family) == string(family) {
		c.Family = b.cells[n-1].Family
	} else {
		c.Family = b.copy(family)
	}
	c.Qualifier, c.Value = b.copy(qualifier), b.copy(value)
	b.cells = append(b.cells, c)
}

// closeRow ends the open row and drops it if it has no cell. It tells whether
// it stayed.
func (b *block) closeRow() bool {
	last := len(b.rows) - 1
	if len(b.cells) == b.first {
		b.rows, b.bytes = b.rows[:last], b.bytes[:b.begin]
		return false
	}
	b.rows[last].Cells = b.cells[b.first:len(b.cells):len(b.cells)]
	return true
}
