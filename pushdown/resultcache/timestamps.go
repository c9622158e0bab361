package resultcache

import (
	"context"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// timestampReader looks at the timestamps of the rows that are read through it, if
// on is set. It tells whether cells carry the time of their data instead of the time
// of their writing; answers over such cells must not be cached, see the package
// comment.
type timestampReader struct {
	store.Reader
	schema encoding.Schema
	on     bool

	cells int // looked at
	equal int // of them, those that have the time of their own point
}

// Scan implements store.Reader.
func (r *timestampReader) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	sc, err := r.Reader.Scan(ctx, scan)
	if err != nil || !r.on {
		return sc, err
	}
	return &timestampScanner{Scanner: sc, reader: r}, nil
}

// areDataTime tells whether cells carry the time of their data: at least half of
// those looked at have it to the millisecond. A cell that is written in the
// millisecond of its point has it by chance.
func (r *timestampReader) areDataTime() bool { return r.equal > 0 && 2*r.equal >= r.cells }

// timestampScanner is for the operator's goroutine alone.
type timestampScanner struct {
	store.Scanner
	reader *timestampReader
}

// Next implements store.Scanner.
func (s *timestampScanner) Next() ([]store.Row, error) {
	rows, err := s.Scanner.Next()
	for i := range rows {
		s.reader.lookAt(&rows[i])
	}
	return rows, err
}

// lookAt looks at the first cell of a row that holds points.
func (r *timestampReader) lookAt(row *store.Row) {
	key, err := r.schema.ParseRowKey(row.Key)
	if err != nil {
		return // the operator reports it
	}
	for i := range row.Cells {
		// Qualifiers of points have an even length; an annotation's has not.
		if c := &row.Cells[i]; len(c.Qualifier) > 0 && len(c.Qualifier)%2 == 0 {
			r.cells++
			if hasOffset(c.Qualifier, c.Timestamp-int64(key.BaseTime)*1000) {
				r.equal++
			}
			return
		}
	}
}

// hasOffset tells whether one of the points that a qualifier lists has the given
// offset in ms. A compacted cell has several points.
func hasOffset(qualifier []byte, offset int64) bool {
	for len(qualifier) > 0 {
		q, rest, err := encoding.ParseQualifier(qualifier)
		if err != nil {
			return false
		}
		if int64(q.OffsetMS) == offset {
			return true
		}
		qualifier = rest
	}
	return false
}
