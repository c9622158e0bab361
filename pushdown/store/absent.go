package store

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// absentAtOnce bounds the calls of PutAbsent that are under way at a time.
const absentAtOnce = 32

// PutAbsent writes the value of each cell that does not exist, and tells of each whether it
// has, as an AbsentPutter does. Any other store is called for each.
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
