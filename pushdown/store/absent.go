package store

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// absentAtOnce bounds the calls of PutAbsent that are under way at a time.
const absentAtOnce = 32

// PutAbsent is AbsentPutter.PutAbsent for any Atomic: one that is none makes a call for
// each cell.
func PutAbsent(ctx context.Context, a Atomic, table string, cells []CellKey, values [][]byte) ([]bool, error) {
	if many, ok := a.(AbsentPutter); ok {
		return many.PutAbsent(ctx, table, cells, values)
	}

	wrote := make([]bool, len(cells))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(absentAtOnce)
	for i := range cells {
		work.Go(func() (err error) {
			wrote[i], err = a.CompareAndPut(ctx, table, cells[i], nil, values[i])
			return err
		})
	}
	return wrote, work.Wait()
}
