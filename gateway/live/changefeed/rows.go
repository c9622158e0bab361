package changefeed

import (
	"bytes"
	"context"
	"io"
	"slices"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/live/incremental"
	"downpour/pushdown/operator"
	"downpour/pushdown/store"
)

// replaceRows reads the units (see incremental.Unit) of changed rows and takes them
// into the view. It returns incremental.ErrStale if a row of the view was deleted.
func (s *subQuery) replaceRows(ctx context.Context, changed [][]byte) error {
	plan := s.prepared.Plan
	keys, err := unitKeys(plan, changed)
	if err != nil {
		return err
	}
	rows, err := s.readRows(ctx, keys)
	if err != nil {
		return err
	}
	if s.anyGone(changed, rows) {
		return incremental.ErrStale
	}

	var records []batch.Record
	defer func() {
		for _, r := range records {
			r.Release()
		}
	}()
	for _, r := range plan.Ranges {
		part := rowsInRange(rows, r)
		if len(part) == 0 {
			continue
		}
		if records, err = decodeRows(ctx, s.decodingPlan(), r, part, records); err != nil {
			return err
		}
	}
	return s.view.Replace(keys, records)
}

// decodingPlan returns the plan by which rows that were read again become batches. A
// watched store reports points, and the view can continue a bucket only if it has seen
// the points in it: so it gets points. Otherwise it gets buckets, which take less
// memory.
func (s *subQuery) decodingPlan() *scanplan.Plan {
	if s.feed.cfg.Store.Features().Watch == nil {
		return s.prepared.Plan
	}
	raw := *s.prepared.Plan
	raw.Downsample = nil
	return &raw
}

// readRows returns the rows with the given keys, ascending. Rows that the finder
// knows come from it, the others from the store; rows that do not exist are left
// out.
func (s *subQuery) readRows(ctx context.Context, keys [][]byte) (rows []store.Row, err error) {
	var unknown [][]byte
	s.cells = s.cells[:0]
	for _, key := range keys {
		before := len(s.cells)
		var known bool
		if s.cells, known = s.finder.cachedRow(key, s.cells); !known {
			unknown = append(unknown, key)
			continue
		}
		rows = append(rows, store.Row{Key: key, Cells: s.cells[before:len(s.cells):len(s.cells)]})
	}
	if len(unknown) == 0 {
		return rows, nil
	}

	read, err := s.feed.cfg.Store.Get(ctx, s.prepared.Plan.Table, encoding.FamilyData, unknown)
	// A store that can be watched is in this process, see unreadable.
	if s.feed.cfg.Store.Features().Watch != nil && err != nil {
		return nil, unreadable(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	s.feed.stats.rows.Add(int64(len(read)))
	s.finder.rowsRead(read)

	rows = append(rows, read...)
	slices.SortFunc(rows, func(a, b store.Row) int { return bytes.Compare(a.Key, b.Key) })
	return rows, nil
}

// unitKeys returns the keys of all rows of the units of changed rows, ascending,
// each once.
func unitKeys(plan *scanplan.Plan, changed [][]byte) (keys [][]byte, err error) {
	for _, row := range changed {
		if keys, err = incremental.UnitKeys(keys, plan, row); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal), nil
}

// anyGone reports whether a changed row whose span is in the view no longer exists. rows are the
// rows that were read, ascending.
func (s *subQuery) anyGone(changed [][]byte, rows []store.Row) bool {
	var span []byte
	for _, key := range changed {
		_, exists := searchRow(rows, key)
		span = s.prepared.Plan.Schema.AppendSpan(span[:0], key)
		if !exists && s.view.Known(span) {
			return true
		}
	}
	return false
}

// rowsInRange returns the rows whose keys are in a range. rows are ascending.
func rowsInRange(rows []store.Row, r scanplan.KeyRange) []store.Row {
	i, _ := searchRow(rows, r.Start)
	j := len(rows)
	if len(r.Stop) > 0 {
		j, _ = searchRow(rows, r.Stop)
	}
	return rows[i:max(i, j)]
}

// searchRow returns the place of a key among ascending rows, and whether the row is
// there.
func searchRow(rows []store.Row, key []byte) (int, bool) {
	return slices.BinarySearchFunc(rows, key, func(r store.Row, key []byte) int { return bytes.Compare(r.Key, key) })
}

// decodeRows appends to dst the batches that a query would make of rows, all of
// which lie in one range of the plan. The part is the whole range, so that no
// bucket is cut. The caller releases the batches, also those that are returned with
// an error.
func decodeRows(ctx context.Context, plan *scanplan.Plan, r scanplan.KeyRange, rows []store.Row,
	dst []batch.Record) ([]batch.Record, error) {
	op, err := operator.FromRows(&scanplan.Part{Plan: *plan, Range: r}, rows, operator.Options{})
	if err != nil {
		return dst, err
	}
	defer op.Close()

	for {
		rec, err := op.Next(ctx)
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
		dst = append(dst, rec)
	}
}
