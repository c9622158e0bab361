package encoding

import (
	"encoding/binary"
	"fmt"
)

// leastEntry is the length of an append column's shortest entry: two bytes of
// qualifier, one of value.
const leastEntry = 3

// addAppended walks the qualifier-value entries of an append column in write
// order; of equal offsets only the last stays.
func (d *RowDecoder) addAppended(value []byte) error {
	first := d.grow(len(value) / leastEntry)
	points, err := d.walkAppended(first, value)
	if err != nil {
		d.truncate(first)
		return err
	}
	d.truncate(first + points)
	if !ascending(d.offset[first:]) {
		d.sortFrom(first)
		d.keepLast(first)
	}
	d.noteOrder(first)
	return nil
}

func (d *RowDecoder) walkAppended(first int, value []byte) (points int, err error) {
	whole := len(value)
	for {
		n, rest := d.walkAppendedSeconds(first+points, value)
		points, value = points+n, rest
		if len(value) == 0 {
			return points, nil
		}
		q, after, err := ParseQualifier(value)
		if err != nil {
			return points, fmt.Errorf("encoding: append column at byte %d: %w", whole-len(value), err)
		}
		if len(after) < q.Width || !validWidth(q.Width, q.Float) {
			return points, fmt.Errorf("encoding: append column at byte %d: value is said to have %d bytes, want %s and at most the %d left",
				whole-len(value), q.Width, widthsWanted(q.Float), len(after))
		}
		i := first + points
		d.offset[i], d.raw[i], d.flags[i] = q.OffsetMS, readRaw(after, q.Width), valueFlags(q.Float, q.Width)
		points, value = points+1, after[q.Width:]
	}
}

// walkAppendedSeconds does for entries what walkSeconds does for compacted
// cells, and stops at what is not plain.
func (d *RowDecoder) walkAppendedSeconds(first int, value []byte) (points int, rest []byte) {
	offset, raws, flags := d.offset[first:], d.raw[first:], d.flags[first:]
	raws, flags = raws[:len(offset)], flags[:len(offset)]
	at := 0
	for i := range offset {
		if at+10 > len(value) {
			return i, value[at:]
		}
		v := uint32(value[at])<<8 | uint32(value[at+1])
		f := uint8(v) & flagMask
		if v >= maxSecondsQualifier || validFlags>>f&1 == 0 {
			return i, value[at:]
		}
		width := uint(f&lengthMask) + 1
		raw := binary.BigEndian.Uint64(value[at+2:at+10]) >> ((64 - 8*width) & 63)
		offset[i], raws[i], flags[i] = int32(v>>flagBits*1000), raw, f
		at += 2 + int(width)
	}
	return len(offset), value[at:]
}

// keepLast drops all but the last of neighbours at one offset.
func (d *RowDecoder) keepLast(first int) {
	out := first
	for i := first; i < len(d.offset); i++ {
		if i+1 < len(d.offset) && d.offset[i+1] == d.offset[i] {
			continue
		}
		d.move(out, i)
		out++
	}
	d.truncate(out)
}
