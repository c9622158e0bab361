package store

import (
	"context"
	"errors"
	"io"
	"iter"
)

// Blocks reads a scan to its end, block by block, and closes it, also when the
// loop is left early. A block is valid during its turn. An error comes last, with
// no block; a loop that ends without one has seen all rows.
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
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, err)
				return
			case !yield(rows, nil):
				return
			}
		}
	}
}

// lookEvery is after how many rows Rows looks at its context: a block may have
// very many, and a loop much to do with each.
const lookEvery = 256

// Rows is Blocks row by row; a row is valid during its turn. It ends soon after
// its context, also within a block.
func Rows(ctx context.Context, from Reader, s Scan) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		seen := 0
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
