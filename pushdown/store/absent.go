package store

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// absentAtOnce bounds the calls of PutAbsent that are under way at a time.
const absentAtOnce = 32

// PutAbsent writes the value of each cell that does not exist, and reports for each whether it has,
// as Features.PutAbsent does. A store without it is called for each.
func PutAbsent(ctx context.Context, st Cells, table string, cells []CellKey, values [][]byte) ([]bool, error) {
	if many := st.Features().PutAbsent; many != nil {
		return many(ctx, table, cells, values)
	}
	return PutEachAbsent(ctx, st, table, cells, values)
}

// PutEachAbsent is PutAbsent by one call for each cell.
func PutEachAbsent(ctx context.Context, a Atomic, table string, cells []CellKey, values [][]byte) ([]bool, error) {
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
