package write

import (
	"bytes"
	"context"
	"sync"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// uidTable is a UID table in memory with only the calls that a dictionary needs to assign UIDs.
type uidTable struct {
	store.Store // nil: methods that these tests do not call
	mu          sync.Mutex
	cells       map[string][]byte
	counter     int64
}

func (*uidTable) Features() store.Features { return store.Features{} }

func newTable() *uidTable { return &uidTable{cells: map[string][]byte{}} }

func cellName(family string, row, qualifier []byte) string {
	return family + " " + string(row) + " " + string(qualifier)
}

func (u *uidTable) Get(_ context.Context, _, family string, keys [][]byte) (rows []store.Row, _ error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range keys {
		row := store.Row{Key: key}
		for _, kind := range []encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagK, encoding.UIDTagV} {
			if v, ok := u.cells[cellName(family, key, kind.Qualifier())]; ok {
				row.Cells = append(row.Cells, store.Cell{Family: []byte(family), Qualifier: kind.Qualifier(), Value: v})
			}
		}
		if len(row.Cells) > 0 {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (u *uidTable) Increment(context.Context, string, store.CellKey, int64) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.counter++
	return u.counter, nil
}

func (u *uidTable) CompareAndPut(_ context.Context, _ string, c store.CellKey, expected, value []byte) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := cellName(c.Family, c.Row, c.Qualifier)
	if !bytes.Equal(u.cells[at], expected) {
		return false, nil
	}
	u.cells[at] = bytes.Clone(value)
	return true, nil
}
