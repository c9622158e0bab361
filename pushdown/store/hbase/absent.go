package hbase

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/cellblock"
	"downpour/pushdown/store/hbase/regions"

	"github.com/tsuna/gohbase/pb"
	"golang.org/x/sync/errgroup"
)

// putsAtOnce bounds the calls of PutAbsent that are under way at a time: as many as a region
// server has handlers by default. A server syncs its log after each conditional put, so a call's
// puts wait for one sync each, one after another, and those of several calls share them.
const putsAtOnce = 30

// PutAbsent writes the value of each cell that does not exist: it reads all of them at once,
// and puts those that were absent on the condition that they still are. It returns which it has put.
func (st *Store) PutAbsent(ctx context.Context, table string, cells []store.CellKey, values [][]byte) ([]bool, error) {
	for _, cell := range cells {
		if err := checkCell(cell.Row, cell.Family); err != nil {
			return nil, err
		}
	}
	found, err := st.existing(ctx, table, cells)
	if err != nil {
		return nil, err
	}

	var absent []int // indexes of cells, by row
	for i := range cells {
		if !found[i] {
			absent = append(absent, i)
		}
	}
	slices.SortStableFunc(absent, func(i, j int) int { return bytes.Compare(cells[i].Row, cells[j].Row) })

	wrote := make([]bool, len(cells))
	calls, ctx := errgroup.WithContext(ctx)
	for part := range slices.Chunk(absent, max(1, (len(absent)+putsAtOnce-1)/putsAtOnce)) {
		calls.Go(func() error { return st.putAbsent(ctx, table, cells, values, part, wrote) })
	}
	return wrote, calls.Wait()
}

// putAbsent puts the cells with some indexes, and sets wrote at the index of each cell that it has put. The
// puts share a call if the server knows conditions on region actions (HBase 2.4 and later), else each has
// its own.
func (st *Store) putAbsent(ctx context.Context, table string, cells []store.CellKey, values [][]byte, indexes []int,
	wrote []bool) error {
	actions := make([]*conditional, len(indexes))
	for k, i := range indexes {
		var err error
		if actions[k], err = absentPut(cells[i], values[i]); err != nil {
			return err
		}
	}

	// A put that is resent after a lost reply would find the value of the first one, and report
	// that it had not written.
	err := st.sendAll(ctx, table, cells[indexes[0]].Family, actions, regions.SendOnce)
	for k, i := range indexes {
		wrote[i] = actions[k].held
	}
	if !errors.Is(err, errUnconditional) {
		return err
	}
	for _, i := range indexes {
		// Another server, of a later version, may have put some of them.
		if wrote[i] {
			continue
		}
		if wrote[i], err = st.checkAndPut(ctx, table, cells[i], nil, values[i]); err != nil {
			return err
		}
	}
	return nil
}

// absentPut returns the put of a cell that does not exist.
func absentPut(cell store.CellKey, value []byte) (*conditional, error) {
	condition, err := valueCondition(cell, nil)
	if err != nil {
		return nil, err
	}
	a, err := actionIf(condition)
	if err != nil {
		return nil, err
	}
	a.cells = cellblock.Append(nil, cell.Row, cell.Family, cell.Qualifier, value, cellblock.ServerTime, cellblock.Put)
	a.add(pb.MutationProto_PUT, 1)
	return a, nil
}
