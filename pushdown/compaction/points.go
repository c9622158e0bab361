package compaction

import (
	"bytes"
	"cmp"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// point is a value of a row.
type point struct {
	q     encoding.Qualifier // with the width that the value has
	value []byte
	stamp int64 // of its cell
}

// hasPoints reports whether the cells of a column hold points, and are no append
// column. Annotations, histograms and append columns have qualifiers of odd length.
func hasPoints(qualifier []byte) bool { return len(qualifier) > 0 && len(qualifier)%2 == 0 }

// appendPoints appends the points of a cell to points. The cell is one that encoding.RowDecoder
// accepts, so that its value has the bytes of all points.
func appendPoints(points []point, c store.Version) ([]point, error) {
	q, rest, err := encoding.ParseQualifier(c.Qualifier)
	if err != nil {
		return nil, err
	}
	if len(rest) == 0 {
		// A single cell's value counts by its real length. OpenTSDB's old error is four
		// zeros before a float of four bytes.
		value := c.Value
		if q.Float && q.Width == 4 && len(value) == 8 {
			value = value[4:]
		}
		q.Width = len(value)
		return append(points, point{q, value, c.Timestamp}), nil
	}

	values := c.Value
	for qualifiers := c.Qualifier; len(qualifiers) > 0; {
		if q, qualifiers, err = encoding.ParseQualifier(qualifiers); err != nil {
			return nil, err
		}
		points = append(points, point{q, values[:q.Width], c.Timestamp})
		values = values[q.Width:]
	}
	return points, nil
}

// mergePoints returns the cell of all points, with the newest of each time. Its timestamp is the latest
// of theirs. ok is false if the newest ones of one time have one timestamp and differ: it is
// unknown which of them counts.
func mergePoints(points []point) (merged store.Cell, ok bool) {
	slices.SortStableFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.q.OffsetMS, b.q.OffsetMS), cmp.Compare(b.stamp, a.stamp))
	})

	var b encoding.CellBuilder
	for i, p := range points {
		merged.Timestamp = max(merged.Timestamp, p.stamp)
		if i > 0 && points[i-1].q.OffsetMS == p.q.OffsetMS {
			continue
		}
		if !sameAge(points[i:]) {
			return merged, false
		}
		b.Add(p.q, p.value)
	}
	merged.Qualifier, merged.Value = b.Cell()
	return merged, true
}

// sameAge reports whether those of the first points that have one time and one timestamp have one
// type and value.
func sameAge(points []point) bool {
	first := points[0]
	for _, p := range points[1:] {
		if p.q.OffsetMS != first.q.OffsetMS || p.stamp != first.stamp {
			break
		}
		if p.q.Float != first.q.Float || !bytes.Equal(p.value, first.value) {
			return false
		}
	}
	return true
}
