package encoding

import (
	"cmp"
	"fmt"
	"slices"
)

// pointOrder is the order of a point in a row: by offset, then by the timestamp of its cell, the
// newer one first, then by the index in which it was added.
type pointOrder struct {
	offset, index int32
	stamp         int64 // of the point's cell
	raw           uint64
	flags         uint8
}

// comparePoints is a total order: no two points have the same index.
func comparePoints(a, b pointOrder) int {
	if a.offset != b.offset {
		return cmp.Compare(a.offset, b.offset)
	}

	// The newest point of an offset comes first: it is the one that is kept.
	if a.stamp != b.stamp {
		return cmp.Compare(b.stamp, a.stamp) //fault:older-duplicate-wins TestRowDecoder_equalsModel
	}

	return cmp.Compare(a.index, b.index)
}

// sortFrom orders the points from index first on as OpenTSDB's heap of cells
// does; first is where a cell begins. Source: ColumnDatapointIterator.compareTo.
func (d *RowDecoder) sortFrom(first int) {
	// The columns are copied into one slice, sorted there and copied back: moving
	// a point in one place is cheaper than in three.
	d.order = d.order[:0]
	for c, cell := range d.cells {
		end := len(d.offset)
		if c+1 < len(d.cells) {
			end = d.cells[c+1].first
		}
		// Cells before first have no points from there on: the loop does nothing.
		for i := max(cell.first, first); i < end; i++ {
			d.order = append(d.order, pointOrder{d.offset[i], int32(i), cell.stamp, d.raw[i], d.flags[i]})
		}
	}

	slices.SortFunc(d.order, comparePoints)
	for i, p := range d.order {
		d.offset[first+i], d.raw[first+i], d.flags[first+i] = p.offset, p.raw, p.flags
	}
}

// mergeDuplicates keeps the newest of the points at one offset, which the sort
// has put first. Only value bytes are compared, not types, as OpenTSDB does: an
// integer and a float with equal bytes are one point.
func (d *RowDecoder) mergeDuplicates() error {
	out := 0 // points kept so far, at the columns' beginning
	for i := range d.offset {
		if out > 0 && d.offset[out-1] == d.offset[i] {
			// Equal lengths and equal numbers are equal bytes.
			same := d.raw[out-1] == d.raw[i] && (d.flags[out-1]^d.flags[i])&lengthMask == 0
			if !same && !d.FixDuplicates {
				return d.duplicate(out-1, i)
			}
			continue
		}
		d.move(out, i)
		out++
	}

	d.truncate(out)
	return nil
}

// duplicate is the error for the points at two indexes.
func (d *RowDecoder) duplicate(newer, older int) error {
	bytesOf := func(i int) []byte { return appendRaw(nil, d.raw[i], int(d.flags[i]&lengthMask)+1) }
	return &DuplicateError{OffsetMS: d.offset[newer], Newer: bytesOf(newer), Older: bytesOf(older)}
}

// DuplicateError is returned when a row has two different values at one time.
type DuplicateError struct {
	OffsetMS     int32  // from the row's base time
	Newer, Older []byte // value bytes; Newer was written later
}

// Error names the offset and both values.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("duplicate timestamp at offset %d ms: % X and % X", e.OffsetMS, e.Newer, e.Older)
}
