package tools

import (
	"bytes"
	"context"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/extra/tools/fsck"
	"downpour/pushdown/store"
)

// moveCells puts the cells of an off-hour row into the rows of full hours, in which others may write
// too: a cell only where none is yet. refusal is why the off-hour row must not be deleted, "" if all of
// its cells are durable in the rows of full hours.
func (w *rowWorker) moveCells(ctx context.Context, rows []fsck.Row) (refusal string, err error) {
	if len(rows) == 0 {
		return "", nil
	}
	putAbsent := w.checks.Store.Features().PutAbsent
	if putAbsent == nil {
		return "the store cannot put what is absent", nil
	}
	keys := make([][]byte, len(rows))
	for i := range rows {
		keys[i] = rows[i].Key
	}
	stored, err := w.checks.Store.Get(ctx, w.checks.Tables.Data, encoding.FamilyData, keys)
	if err != nil {
		return "", err
	}
	for i := range rows {
		if refusal = valueConflict(&rows[i], stored); refusal != "" {
			return refusal, nil
		}
	}

	var cells []store.CellKey
	var values [][]byte
	for _, r := range rows {
		for _, c := range r.Cells {
			cells = append(cells, store.CellKey{Row: r.Key, Family: encoding.FamilyData, Qualifier: c.Qualifier})
			values = append(values, c.Value)
		}
	}
	if _, err := putAbsent(ctx, w.checks.Tables.Data, cells, values); err != nil {
		return "", err
	}
	// A cell that was there before, or that another writer has put since, is left as it is. So read again:
	// the rows must have every value that was to be moved, and no other at the same time.
	if stored, err = w.checks.Store.Get(ctx, w.checks.Tables.Data, encoding.FamilyData, keys); err != nil {
		return "", err
	}
	for i := range rows {
		if refusal = valueConflict(&rows[i], stored); refusal != "" {
			return refusal, nil
		}
		if !holdsCells(stored, &rows[i]) {
			return "what was written cannot be read: a newer deletion hides it", nil
		}
	}
	return "", nil
}

// valueConflict returns why the cells of r cannot be added to the stored row with its key, "" if they can. The
// stored row may have another value at one of their times: queries of a row with both values fail.
func valueConflict(r *fsck.Row, stored []store.Row) string {
	for _, o := range stored {
		if !bytes.Equal(o.Key, r.Key) {
			continue
		}
		d := encoding.RowDecoder{}
		d.Reset(0)
		all := make([]store.Cell, 0, len(o.Cells)+len(r.Cells))
		all = append(all, o.Cells...)
		for _, c := range r.Cells {
			all = append(all, store.Cell{Qualifier: c.Qualifier, Value: c.Value, Timestamp: c.Timestamp})
		}
		var points encoding.Points
		for _, c := range all {
			if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
				return fmt.Sprintf("row %x, where its points belong, is damaged", r.Key)
			}
		}
		if err := d.Finish(&points); err != nil {
			return fmt.Sprintf("row %x, where its points belong, has another value of one of their times", r.Key)
		}
	}
	return ""
}

// holdsCells reports whether the stored row with the key of r has all cells of r, with equal values.
func holdsCells(stored []store.Row, r *fsck.Row) bool {
	for _, o := range stored {
		if !bytes.Equal(o.Key, r.Key) {
			continue
		}
		values := map[string][]byte{} // by qualifier
		for _, c := range o.Cells {
			values[string(c.Qualifier)] = c.Value
		}
		for _, c := range r.Cells {
			if v, ok := values[string(c.Qualifier)]; !ok || !bytes.Equal(v, c.Value) {
				return false
			}
		}
		return true
	}
	return false
}
