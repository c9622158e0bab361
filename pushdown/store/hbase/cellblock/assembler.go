package cellblock

import (
	"bytes"
	"fmt"

	"downpour/pushdown/store"
)

// Assembler decodes the cell blocks of a scan's replies and joins the parts of rows. A
// row may come in several parts, and the partial flag of a reply is not reliable: it is
// also set on complete rows, when a size limit falls on a row's end or a filter has
// dropped the rest. So the last row of a reply is held back until another key follows
// or its region ends.
//
// Cells and rows are in two slices that are reused for every block; their bytes stay in the
// replies' cell blocks.
type Assembler struct {
	KeysOnly bool       // keep only the first cell of a row
	Columns  *ColumnSet // drop cells of other columns; nil drops none

	cells    []store.Cell
	rows     []store.Row
	first    []int // first[i] is the index in cells at which rows[i] begins
	lastHeld bool  // the last row may continue in the next reply
}

// StartBlock makes room for another block. Rows that were returned before become
// invalid; the row that is held back moves to the front.
func (a *Assembler) StartBlock() {
	if !a.lastHeld {
		a.cells, a.rows, a.first = a.cells[:0], a.rows[:0], a.first[:0]
		return
	}

	last := len(a.rows) - 1
	n := copy(a.cells, a.cells[a.first[last]:])
	a.cells = a.cells[:n]
	a.rows[0], a.first[0] = a.rows[last], 0
	a.rows, a.first = a.rows[:1], a.first[:1]
}

// Reset drops all rows, also the one held back.
func (a *Assembler) Reset() {
	a.lastHeld = false
	a.StartBlock()
}

// HoldsRow reports whether a row is held back because more of it may come.
func (a *Assembler) HoldsRow() bool { return a.lastHeld }

// AddReply decodes the cell block of a reply. counts holds the number of cells of
// each row, or part of a row, in block.
func (a *Assembler) AddReply(block []byte, counts []uint32) error {
	var err error
	for _, n := range counts {
		if n == 0 {
			continue // only a cell would name the row
		}
		if block, err = a.addRowPart(block, int(n)); err != nil {
			return err
		}
	}

	if len(block) != 0 {
		return fmt.Errorf("%w: %d bytes after the last cell", ErrMalformed, len(block))
	}
	return nil
}

// addRowPart decodes n cells of one row, at least one, and returns the rest of
// block.
func (a *Assembler) addRowPart(block []byte, n int) ([]byte, error) {
	var cell store.Cell
	row, rest, err := Split(block, &cell)
	if err != nil {
		return nil, err
	}

	continues := a.lastHeld && bytes.Equal(row, a.rows[len(a.rows)-1].Key)
	if !continues {
		a.rows = append(a.rows, store.Row{Key: row})
		a.first = append(a.first, len(a.cells))
		a.lastHeld = true
	}
	// With keys only, the first cell of a row shows that it exists.
	if (!continues || !a.KeysOnly) && (a.Columns == nil || !a.Columns.drops(cell.Qualifier, len(block)-len(rest))) {
		a.cells = append(a.cells, cell)
	}

	for range n - 1 {
		var cellRow []byte
		before := len(rest)
		if cellRow, rest, err = Split(rest, &cell); err != nil {
			return nil, err
		}
		// Only the lengths are compared, because this runs for every cell.
		if len(cellRow) != len(row) {
			return nil, fmt.Errorf("%w: row %x among cells of row %x", ErrMalformed, cellRow, row)
		}
		if !a.KeysOnly && (a.Columns == nil || !a.Columns.drops(cell.Qualifier, before-len(rest))) {
			a.cells = append(a.cells, cell)
		}
	}
	return rest, nil
}

// CompleteRows returns the rows that are complete; at the region's end that is all
// of them. They are valid until the next startBlock.
func (a *Assembler) CompleteRows(regionEnds bool) []store.Row {
	if regionEnds {
		a.lastHeld = false
	}
	if a.Columns != nil {
		a.dropEmptyRows()
	}

	n := len(a.rows)
	if a.lastHeld { //fault:half-row-delivered TestAssembler_anyParts
		n--
	}

	// The cells are assigned only now, because appending may have moved them.
	for i := range n {
		end := len(a.cells)
		if i+1 < len(a.first) {
			end = a.first[i+1]
		}
		a.rows[i].Cells = a.cells[a.first[i]:end:end]
	}
	return a.rows[:n:n]
}

// dropEmptyRows drops the rows none of whose cells was kept. The row that is held back
// stays, because a cell of it may still come.
func (a *Assembler) dropEmptyRows() {
	kept := 0
	for i := range a.rows {
		end := len(a.cells)
		if i+1 < len(a.first) {
			end = a.first[i+1]
		}
		held := a.lastHeld && i == len(a.rows)-1
		if a.first[i] < end || held {
			a.rows[kept], a.first[kept] = a.rows[i], a.first[i]
			kept++
		}
	}
	a.rows, a.first = a.rows[:kept], a.first[:kept]
}

// Rows returns the rows of a whole reply, to which no other belongs.
func Rows(block []byte, counts []uint32) ([]store.Row, error) {
	var a Assembler
	if err := a.AddReply(block, counts); err != nil {
		return nil, err
	}

	const regionEnds = true // no further reply comes
	return a.CompleteRows(regionEnds), nil
}
