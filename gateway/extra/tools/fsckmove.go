package tools

import (
	"bytes"
	"context"
	"fmt"

	"downpour/encoding"
	"downpour/gateway/extra/tools/fsck"
	"downpour/pushdown/store"
)

// move puts cells of a row of no full hour into the rows of full hours, in which others may write
// too: only where nothing is yet. It returns why the row stays as it is, "" if all of its
// cells are durable in their new places.
func (w *rowWorker) move(ctx context.Context, rows []fsck.Row) (stays string, err error) {
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
	there, err := w.checks.Store.Get(ctx, w.checks.Tables.Data, encoding.FamilyData, keys)
	if err != nil {
		return "", err
	}
	for i := range rows {
		if stays = w.taken(&rows[i], there); stays != "" {
			return stays, nil
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
	// Also of what was there before, or came from others since, only the same values will do.
	if there, err = w.checks.Store.Get(ctx, w.checks.Tables.Data, encoding.FamilyData, keys); err != nil {
		return "", err
	}
	for i := range rows {
		if stays = w.taken(&rows[i], there); stays != "" {
			return stays, nil
		}
		if !holds(there, &rows[i]) {
			return "what was written cannot be read: a newer deletion hides it", nil
		}
	}
	return "", nil
}

// taken returns why a row cannot take cells, "" if it can: it has another value of a time. Both
// would be there then, and queries fail.
func (w *rowWorker) taken(r *fsck.Row, there []store.Row) string {
	for _, o := range there {
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

// holds reports whether a row has cells with these values.
func holds(there []store.Row, r *fsck.Row) bool {
	for _, o := range there {
		if !bytes.Equal(o.Key, r.Key) {
			continue
		}
		has := map[string][]byte{}
		for _, c := range o.Cells {
			has[string(c.Qualifier)] = c.Value
		}
		for _, c := range r.Cells {
			if v, ok := has[string(c.Qualifier)]; !ok || !bytes.Equal(v, c.Value) {
				return false
			}
		}
		return true
	}
	return false
}
