package store

import (
	"context"
	"io"
	"iter"
)

// Blocks reads a scan to its end, block by block, and closes the scanner, also when the
// loop is left early. A block is valid until the next iteration. An error comes last,
// with no block; a loop that ends without an error has seen all rows.
func Blocks(ctx context.Context, from Reader, s Scan) iter.Seq2[[]Row, error] {
	return func(yield func([]Row, error) bool) {
		sc, err := from.Scan(ctx, s)
		if err != nil {
			yield(nil, err)
			return
		}
		defer sc.Close()

		for {
			rows, err := sc.Next()
			switch {
			case err == io.EOF:
				return
			case err != nil:
				yield(nil, err) //fault:error-of-a-scan-swallowed TestRows
				return
			case !yield(rows, nil):
				return
			}
		}
	}
}

// lookEvery is the number of rows after which Rows checks its context: a block may have very many
// rows, and a loop may do much with each.
const lookEvery = 256

// Rows reads a scan as Blocks does, row by row. A row is valid until the next iteration. Rows ends
// soon after its context, also in the middle of a block.
func Rows(ctx context.Context, from Reader, s Scan) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		seen := 0 // rows, over all blocks
		for rows, err := range Blocks(ctx, from, s) {
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, r := range rows {
				if seen++; seen%lookEvery == 0 && ctx.Err() != nil {
					yield(Row{}, ctx.Err())
					return
				}
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}
