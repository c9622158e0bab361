//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"downpour/integration/e2e"
	"downpour/pushdown/store"
)

// rowChange is a way in which rows of a panel can change.
type rowChange struct {
	name   string
	hidden bool // from proofs by timestamps, see pushdown/docs/result-cache.md
	// do makes such a change and returns its name, empty if there was nothing to change.
	do func(w *drawn, p *panel) (done string, err error)
}

const (
	bulkLoad     = "bulk load"
	retentionJob = "retention"
)

var rowChanges = []rowChange{
	newCell("put"),
	newCell("put without log"),
	newCell("check and put"),
	{name: "append", do: func(w *drawn, p *panel) (string, error) {
		// As OpenTSDB appends: qualifier and value, to a cell of qualifier 05 00 00.
		value := append(qualifierAt(w.rng.IntN(3600)), w.value()...)
		return "append",
			w.change(e2e.CellChange{Kind: "append", Row: w.row(p), Qualifier: []byte{5, 0, 0}, Value: value, At: -1})
	}},
	existing("overwrite", "put", false, false),
	existing("increment", "increment", false, false),
	existing("delete column", "delete column", false, false),
	existing("delete family", "delete family", false, false),
	existing("delete row", "delete row", false, false),
	{name: "replacement of cells with their old times", do: replaceCells},
	{name: "point by a gateway", do: func(w *drawn, p *panel) (string, error) {
		return "point by a gateway", w.putPoint(w.readers["exact"].URL, p)
	}},
	{
		name: "point by OpenTSDB",
		do:   func(w *drawn, p *panel) (string, error) { return "point by OpenTSDB", w.putPoint(w.tsd.URL, p) },
	},
	{name: "compaction by OpenTSDB", do: compactRows},
	{name: "compaction by a job", do: compactByJob},
	{name: "repair by fsck", do: repairByJob},
	{name: retentionJob, do: retainByJob},
	{name: "DELETE query of a gateway", do: func(w *drawn, p *panel) (string, error) {
		return "DELETE query of a gateway", w.deleteRows(w.readers["timestamps"].URL, p)
	}},
	{name: "DELETE query of OpenTSDB", do: func(w *drawn, p *panel) (string, error) {
		// It would compact what it deletes.
		if done, err := compactRows(w, p); done == "" || err != nil {
			return "", err
		}
		return "DELETE query of OpenTSDB", w.deleteRows(w.tsd.URL, p)
	}},
	existing("put of an old time", "put", true, true),
	existing("delete of an old time", "delete column", true, true),
	existing("delete version", "delete version", true, false),
	{name: bulkLoad, do: func(w *drawn, p *panel) (string, error) {
		return bulkLoad, hbase(w.T).Admin.BulkLoad(w.ctx, w.table, e2e.CellChange{
			Row:       w.row(p),
			Qualifier: qualifierAt(w.rng.IntN(3600)),
			Value:     w.value(),
			At:        w.base + 1,
		})
	}},
}

// newCell is a change that puts a cell into a column that need not exist.
func newCell(kind string) rowChange {
	return rowChange{name: kind, do: func(w *drawn, p *panel) (string, error) {
		return kind, w.change(e2e.CellChange{
			Kind:      kind,
			Row:       w.row(p),
			Qualifier: qualifierAt(w.rng.IntN(3600)),
			Value:     w.value(),
			At:        -1,
		})
	}}
}

// existing is a change of a cell that is there, with a time a little later than its own or the
// server's.
func existing(name, kind string, hidden, old bool) rowChange {
	return rowChange{name: name, hidden: hidden, do: func(w *drawn, p *panel) (string, error) {
		row, cell, err := w.cell(p)
		if row == nil || err != nil {
			return "", err
		}
		at := int64(-1)
		if old {
			at = cell.Timestamp + 1
		}
		return name, w.change(e2e.CellChange{Kind: kind, Row: row, Qualifier: cell.Qualifier, Value: w.value(), At: at})
	}}
}

func (w *drawn) change(c e2e.CellChange) error { return hbase(w.T).Admin.Change(w.ctx, w.table, c) }

// row is a row of a panel.
func (w *drawn) row(p *panel) []byte {
	rows := w.rows(p)
	return rows[w.rng.IntN(len(rows))]
}

// cell is a cell of a panel that holds one integer of 8 bytes. The row is nil if there is none.
func (w *drawn) cell(p *panel) (row []byte, cell store.Cell, err error) {
	rows, err := w.store.Get(w.ctx, w.table, "t", w.rows(p))
	n := 0
	for _, r := range rows {
		for _, c := range r.Cells {
			if len(c.Qualifier) != 2 || len(c.Value) != 8 {
				continue
			}
			if n++; w.rng.IntN(n) == 0 {
				row, cell = r.Key, c
			}
		}
	}
	return row, cell, err
}

// replaceCells puts a cell of the time of one that is there, as fsck does, and may delete that one.
func replaceCells(w *drawn, p *panel) (string, error) {
	row, cell, err := w.cell(p)
	if row == nil || err != nil {
		return "", err
	}
	rows, err := w.store.Get(w.ctx, w.table, "t", [][]byte{row})
	if err != nil || len(rows) != 1 {
		return "", fmt.Errorf("%d rows: %w", len(rows), err)
	}
	// No other column: one point for each second.
	change := store.Replacement{
		Read: rows[0],
		Put:  []store.Cell{{Qualifier: cell.Qualifier, Value: w.value(), Timestamp: cell.Timestamp}},
	}
	if w.rng.IntN(2) == 0 {
		second := qualifierAt(w.rng.IntN(3600))
		if string(second) != string(cell.Qualifier) {
			change.Put[0].Qualifier, change.Delete = second, []store.Cell{cell}
		}
	}
	_, err = w.store.Replace(w.ctx, w.table, "t", []store.Replacement{change})
	return "replacement of cells with their old times", err
}

func (w *drawn) putPoint(url string, p *panel) error {
	return e2e.Put(w.ctx, url, []e2e.Point{{
		Metric:    metricOf(p.region),
		Timestamp: p.from + w.rng.Int64N(drawnHours*3600),
		Value:     json.RawMessage(fmt.Sprint(w.rng.Int64N(1 << 40))),
		Tags:      map[string]string{"host": hosts[w.rng.IntN(drawnHosts)]},
	}})
}

// compactRows has OpenTSDB compact the rows of a panel, by reading them. It leaves out rows that
// have appended points.
func compactRows(w *drawn, p *panel) (string, error) {
	const name = "compaction by OpenTSDB"
	keys := w.rows(p)
	rows, err := w.store.Get(w.ctx, w.table, "t", keys)
	if err != nil {
		return "", err
	}
	for _, r := range rows {
		for _, c := range r.Cells {
			if len(c.Qualifier)%2 != 0 {
				return "", nil
			}
		}
	}
	return name, e2e.Until(within(w.T, time.Minute), 10*time.Millisecond, func(ctx context.Context) error {
		if _, err := e2e.Get(ctx, w.tsd.URL+p.path); err != nil {
			return err
		}
		rows, err := w.store.Get(ctx, w.table, "t", keys)
		for _, r := range rows {
			if len(r.Cells) > 1 {
				return fmt.Errorf("row %x has %d cells", r.Key, len(r.Cells))
			}
		}
		return err
	})
}

// deleteRows has a server delete what a panel reads, and waits until it is gone.
func (w *drawn) deleteRows(url string, p *panel) error {
	request, err := http.NewRequestWithContext(w.ctx, http.MethodDelete, url+p.path, nil)
	if err != nil {
		return err
	}
	a, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	a.Body.Close()
	return e2e.Until(within(w.T, time.Minute), 10*time.Millisecond, func(ctx context.Context) error {
		rows, err := w.store.Get(ctx, w.table, "t", w.rows(p))
		if err == nil && len(rows) > 0 {
			err = fmt.Errorf("DELETE %s: status %d, %d rows are left", p.path, a.StatusCode, len(rows))
		}
		return err
	})
}

// regionEvents are what can happen to the region of a panel. After the first calmEvents an
// unchanged panel may still be answered from memory. Flushes are the most frequent, or there is little to compact.
var regionEvents = []string{
	"flush", "flush", "flush", "minor compaction", "minor compaction", rollupsEvent, "major compaction",
	"move",
}

const calmEvents = 6

func (w *drawn) toRegion(region int, name string) error {
	if name == rollupsEvent {
		return w.rollUp(region)
	}
	admin := hbase(w.T).Admin
	if name != "move" {
		_, err := admin.Region(w.ctx, w.table, name, w.regions[region])
		return err
	}
	all, err := admin.Regions(w.ctx, w.table)
	if err != nil {
		return err
	}
	for i := range hbase(w.T).Len() {
		if to := hbase(w.T).RegionServerAddr(i); to != all[region].Server {
			return admin.Move(w.ctx, w.table, w.regions[region], to)
		}
	}
	return fmt.Errorf("no other server than %s", all[region].Server)
}
