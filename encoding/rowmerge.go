package encoding

import (
	"cmp"
	"fmt"
	"slices"
)

// pointOrder is what decides a point's place: its offset, and of equal offsets
// the newer cell first; index keeps the rest as it came.
type pointOrder struct {
	offset, index int32
	stamp         int64
	raw           uint64
	flags         uint8
}

func comparePoints(a, b pointOrder) int {
	if a.offset != b.offset {
		return cmp.Compare(a.offset, b.offset)
	}
	if a.stamp != b.stamp {
		return cmp.Compare(b.stamp, a.stamp)
	}
	return cmp.Compare(a.index, b.index)
}

// sortFrom orders the points from index first on, which is where a cell begins,
// as OpenTSDB's heap of cells does. Source: ColumnDatapointIterator.compareTo.
func (d *RowDecoder) sortFrom(first int) {
	d.order = d.order[:0]
	for c, mark := range d.cells {
		end := len(d.offset)
		if c+1 < len(d.cells) {
			end = d.cells[c+1].first
		}
		for i := max(mark.first, first); i < end; i++ {
			d.order = append(d.order, pointOrder{d.offset[i], int32(i), mark.stamp, d.raw[i], d.flags[i]})
		}
	}
	slices.SortFunc(d.order, comparePoints)
	for i, p := range d.order {
		d.offset[first+i], d.raw[first+i], d.flags[first+i] = p.offset, p.raw, p.flags
	}
}

// mergeDuplicates keeps the newest of the points at one offset, which the sort
// has put first. Only value bytes are compared, not types: an integer and a
// float of equal bytes are one point.
func (d *RowDecoder) mergeDuplicates() error {
	out := 0
	for i := range d.offset {
		if out > 0 && d.offset[out-1] == d.offset[i] {
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

func (d *RowDecoder) duplicate(newer, older int) error {
	bytesOf := func(i int) []byte { return appendRaw(nil, d.raw[i], int(d.flags[i]&lengthMask)+1) }
	return &DuplicateError{OffsetMS: d.offset[newer], Newer: bytesOf(newer), Older: bytesOf(older)}
}

// DuplicateError reports two different values stored for one time of a series.
type DuplicateError struct {
	OffsetMS     int32  // from the row's base time
	Newer, Older []byte // value bytes, by time of write
}

// Error tells the offset and both values.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("duplicate timestamp at offset %d ms: % X and % X", e.OffsetMS, e.Newer, e.Older)
}
