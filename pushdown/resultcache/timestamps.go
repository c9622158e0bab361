package resultcache

import (
	"context"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// stamped is a reader that looks at the timestamps of the rows it reads, while
// on.
type stamped struct {
	store.Reader
	schema encoding.Schema
	on     bool

	cells, equal int // looked at; those that have the time of their own point
}

// Scan passes on.
func (s *stamped) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	sc, err := s.Reader.Scan(ctx, scan)
	if err != nil || !s.on {
		return sc, err
	}
	return &stampedScanner{Scanner: sc, of: s}, nil
}

// ofData tells whether cells carry the time of their data: half of those looked
// at have it to the millisecond. A cell written as its point was measured has it
// by chance.
func (s *stamped) ofData() bool { return s.equal > 0 && 2*s.equal >= s.cells }

// stampedScanner is for the operator's goroutine alone.
type stampedScanner struct {
	store.Scanner
	of *stamped
}

// Next passes on.
func (s *stampedScanner) Next() ([]store.Row, error) {
	rows, err := s.Scanner.Next()
	for i := range rows {
		s.of.look(&rows[i])
	}
	return rows, err
}

// look judges a row by its first cell of points.
func (s *stamped) look(r *store.Row) {
	key, err := s.schema.ParseRowKey(r.Key)
	if err != nil {
		return
	}
	for i := range r.Cells {
		if c := &r.Cells[i]; len(c.Qualifier) > 0 && len(c.Qualifier)%2 == 0 {
			s.cells++
			if ofPoint(c.Qualifier, c.Timestamp-int64(key.BaseTime)*1000) {
				s.equal++
			}
			return
		}
	}
}

// ofPoint tells whether one of the points that a qualifier lists has an offset,
// in ms.
func ofPoint(qualifier []byte, offset int64) bool {
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
