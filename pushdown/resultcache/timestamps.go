package resultcache

import (
	"context"
	"sync/atomic"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/store"
)

// timestampReader checks the timestamps of the rows that are read through it, if on is set. It
// finds cells that carry the time of their data instead of the time of their writing; answers over
// such cells must not be cached, see the package comment.
type timestampReader struct {
	store.Reader
	plan *scanplan.Plan
	on   bool

	// An operator that reads its hours side by side has several scanners.
	cells atomic.Int64 // checked
	equal atomic.Int64 // checked cells that have the time of their own point
}

// Features implements store.Reader. An operator only reads rows.
func (*timestampReader) Features() store.Features { return store.Features{} }

// Scan implements store.Reader.
func (r *timestampReader) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	sc, err := r.Reader.Scan(ctx, scan)
	if err != nil || !r.on {
		return sc, err
	}
	return &timestampScanner{Scanner: sc, reader: r}, nil
}

// areDataTime reports whether cells carry the time of their data: at least half of the
// checked cells have it to the millisecond. A cell that is written in the millisecond
// of its point has it by chance.
func (r *timestampReader) areDataTime() bool {
	equal := r.equal.Load()
	return equal > 0 && 2*equal >= r.cells.Load()
}

// timestampScanner is for one goroutine.
type timestampScanner struct {
	store.Scanner
	reader *timestampReader
}

// Next implements store.Scanner.
func (s *timestampScanner) Next() ([]store.Row, error) {
	rows, err := s.Scanner.Next()
	var cells, equal int64
	for i := range rows {
		c, e := s.reader.lookAt(&rows[i])
		cells, equal = cells+c, equal+e
	}
	s.reader.cells.Add(cells)
	s.reader.equal.Add(equal)
	return rows, err
}

// lookAt checks whether the first cell of a row that holds points, values of rollups or a
// histogram has the time of one of them, and returns how many cells it has checked, and
// how many of them have. One cell per row is enough to know how the table is written.
func (r *timestampReader) lookAt(row *store.Row) (cells, equal int64) {
	key, err := r.plan.Schema.ParseRowKey(row.Key)
	if err != nil {
		return 0, 0 // the operator reports it
	}
	for i := range row.Cells {
		c := &row.Cells[i]
		same, ok := r.isDataTime(c.Qualifier, c.Timestamp-int64(key.BaseTime)*1000)
		switch {
		case same:
			return 1, 1
		case ok:
			return 1, 0
		}
	}
	return 0, 0
}

// isDataTime reports whether a cell that was written so many ms after the row's base time has the
// time of its data. ok is false for other cells, such as annotations.
func (r *timestampReader) isDataTime(qualifier []byte, offset int64) (equal, ok bool) {
	if r.plan.Rollup != nil {
		index, ok := r.rollupIndex(qualifier)
		// A value has any time of its interval.
		inside := offset - int64(index)*r.plan.Rollup.Layout.Interval*1000
		return ok && 0 <= inside && inside < r.plan.Rollup.Layout.Interval*1000, ok
	}
	if at, _, err := encoding.ParseHistogramQualifier(qualifier); err == nil {
		return int64(at) == offset, true
	}
	// Qualifiers of points have an even length; an annotation's has not.
	if len(qualifier) == 0 || len(qualifier)%2 != 0 {
		return false, false
	}
	return hasOffset(qualifier, offset), true
}

// rollupIndex returns the interval of a value that the plan reads.
func (r *timestampReader) rollupIndex(qualifier []byte) (index int, ok bool) {
	index, _, _, ok = r.plan.Rollup.Column.ParseQualifier(qualifier)
	if !ok && r.plan.Rollup.Count != nil {
		index, _, _, ok = r.plan.Rollup.Count.ParseQualifier(qualifier)
	}
	return index, ok
}

// hasOffset reports whether one of the points of a qualifier has the given offset in ms. A
// compacted cell has several points.
func hasOffset(qualifier []byte, offset int64) bool {
	for {
		q, rest, err := encoding.ParseQualifier(qualifier)
		if err != nil {
			return false // none is left
		}
		if int64(q.OffsetMS) == offset {
			return true
		}
		qualifier = rest
	}
}
