package cellblock

import (
	"bytes"
	"fmt"

	"downpour/pushdown/store"
)

// Row decodes a block that holds the cells of one row.
func Row(block []byte) (store.Row, error) {
	var row store.Row
	for len(block) > 0 {
		var cell store.Cell
		key, rest, err := Split(block, &cell)
		if err != nil {
			return row, err
		}
		row.Key = key
		row.Cells = append(row.Cells, cell)
		block = rest
	}
	return row, nil
}

// Length returns the bytes of the first n cells of block. It is an error if one
// of them is not of the row.
func Length(block []byte, n int, row []byte) (int, error) {
	if n < 0 {
		return 0, fmt.Errorf("%w: got %d cells", ErrMalformed, n)
	}

	length := 0
	for range n {
		var cell store.Cell
		got, rest, err := Split(block[length:], &cell)
		if err != nil {
			return 0, fmt.Errorf("%w, want %d cells of row %x", err, n, row)
		}
		if !bytes.Equal(got, row) {
			return 0, fmt.Errorf("%w: a cell of row %x, want row %x", ErrMalformed, got, row)
		}
		length = len(block) - len(rest)
	}
	return length, nil
}
