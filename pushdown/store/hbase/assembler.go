package hbase

import (
	"bytes"
	"fmt"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
)

// assembler makes whole rows of the pieces that replies bring. A row may come
// in several pieces, and the flag that says so cannot be trusted: it also
// stands on complete rows (a size limit that falls on a row's end, a filter
// that has dropped the rest). So the last row of a reply is held back until
// another key follows or its region ends.
//
// Cells and rows lie in two slices that are used again for every block; their
// bytes stay in the replies' cell blocks.
type assembler struct {
	keysOnly bool // keep one cell a row

	cells []store.Cell
	rows  []store.Row
	first []int // first[i] is the index in cells where rows[i] begins
	held  bool  // the last row may go on
}

// next starts another block: rows handed out before are given up, the row
// held back moves to the front.
func (a *assembler) next() {
	if !a.held {
		a.cells, a.rows, a.first = a.cells[:0], a.rows[:0], a.first[:0]
		return
	}
	last := len(a.rows) - 1
	n := copy(a.cells, a.cells[a.first[last]:])
	a.cells = a.cells[:n]
	a.rows[0], a.first[0] = a.rows[last], 0
	a.rows, a.first = a.rows[:1], a.first[:1]
}

// reset drops everything, for a resumption.
func (a *assembler) reset() {
	a.held = false
	a.next()
}

// add decodes a reply: counts gives the cells of each piece of a row in block.
func (a *assembler) add(block []byte, counts []uint32) error {
	var err error
	for _, n := range counts {
		if n == 0 {
			continue
		}
		if block, err = a.addPiece(block, int(n)); err != nil {
			return err
		}
	}
	if len(block) != 0 {
		return fmt.Errorf("%w: %d bytes behind the last cell", errCellBlock, len(block))
	}
	return nil
}

// addPiece decodes n cells of one row and returns what is behind them.
func (a *assembler) addPiece(block []byte, n int) ([]byte, error) {
	var cell store.Cell
	row, rest, err := splitCell(block, &cell)
	if err != nil {
		return nil, err
	}
	again := a.held && bytes.Equal(row, a.rows[len(a.rows)-1].Key)
	if !again {
		a.rows = append(a.rows, store.Row{Key: row})
		a.first = append(a.first, len(a.cells))
		a.held = true
	}
	if !again || !a.keysOnly {
		a.cells = append(a.cells, cell)
	}
	for range n - 1 {
		var same []byte
		if same, rest, err = splitCell(rest, &cell); err != nil {
			return nil, err
		}
		if len(same) != len(row) {
			return nil, fmt.Errorf("%w: row %x among cells of row %x", errCellBlock, same, row)
		}
		if !a.keysOnly {
			a.cells = append(a.cells, cell)
		}
	}
	return rest, nil
}

// whole returns the rows that are complete; all of them once the region ends.
func (a *assembler) whole(regionEnds bool) []store.Row {
	if regionEnds {
		a.held = false
	}
	n := len(a.rows)
	if a.held {
		n--
	}
	for i := range n {
		end := len(a.cells)
		if i+1 < len(a.first) {
			end = a.first[i+1]
		}
		a.rows[i].Cells = a.cells[a.first[i]:end:end]
	}
	return a.rows[:n:n]
}

// decodeRows reads the reply of a scan that was opened and closed in one call.
func decodeRows(call *rpc) ([]store.Row, error) {
	response := call.response.(*pb.ScanResponse)
	var a assembler
	if err := a.add(call.cells, response.GetCellsPerResult()); err != nil {
		return nil, err
	}
	return a.whole(true), nil
}
