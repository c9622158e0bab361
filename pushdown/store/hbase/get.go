package hbase

import (
	"context"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/cellblock"

	"github.com/tsuna/gohbase/pb"
)

// Get reads rows in calls of up to maxGets keys, to all their servers at the same
// time. A key that no row can have is skipped.
func (st *Store) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	var columns []*pb.Column
	if family != "" {
		columns = []*pb.Column{{Family: []byte(family)}}
	}

	actions := make([]*action, 0, len(keys))
	for _, key := range keys {
		if checkKey(key) == nil {
			actions = append(actions, &action{row: key, get: &pb.Get{Row: key, Column: columns}})
		}
	}
	if err := st.runActions(ctx, table, actions); err != nil {
		return nil, err
	}

	rows := make([]store.Row, 0, len(keys))
	for _, a := range actions {
		if a.err != nil {
			return nil, a.err
		}
		if len(a.result) == 0 {
			continue // there is no such row
		}
		row, err := cellblock.Row(a.result)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
