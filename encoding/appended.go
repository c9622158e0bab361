package encoding

import (
	"encoding/binary"
	"fmt"

	"downpour/encoding/column"
)

// minEntryBytes is the length of an append column's shortest entry: two bytes of
// qualifier, one of value.
const minEntryBytes = 3

// addAppended decodes an append column. Its entries, a qualifier and a value each, are in the order
// in which they were written; the last entry of an offset wins. If an entry cannot be read, none of
// the column's points is kept. A column that the embedded store has sealed has blocks instead of
// entries, see Sealer.
func (d *RowDecoder) addAppended(value []byte) error {
	first := d.grow(len(value) / minEntryBytes)
	points, err := d.walkAppended(first, value)
	if err != nil {
		d.truncate(first)
		return err
	}
	d.truncate(first + points)

	// Late points are appended after newer ones. All entries are of one cell, so
	// the sort leaves equal offsets in the order of writing.
	if !ascending(d.offset[first:]) {
		d.sortFrom(first)
		d.keepLast(first)
	}

	d.checkOrder(first)
	return nil
}

// walkAppended fills the columns from index first on and returns the number of
// points.
func (d *RowDecoder) walkAppended(first int, value []byte) (points int, err error) {
	size, sealed := len(value), 0
	for {
		// Most entries are read by walkAppendedSeconds. The one at which it stops is
		// read here, and then it is tried again.
		n, rest := d.walkAppendedSeconds(first+points, value)
		points, value = points+n, rest
		if len(value) == 0 {
			return points, nil
		}
		if value[0] == column.Mark {
			// A block has more points than its bytes would be entries.
			d.truncate(first + points)
			if n, value, err = d.addBlock(value, &sealed); err != nil {
				return points, fmt.Errorf("encoding: append column at byte %d: %w", size-len(value), err)
			}
			points += n
			d.grow(len(value) / minEntryBytes)
			continue
		}

		q, after, err := ParseQualifier(value)
		if err != nil {
			return points, fmt.Errorf("encoding: append column at byte %d: %w", size-len(value), err)
		}
		if len(after) < q.Width || !validWidth(q.Width, q.Float) {
			return points, fmt.Errorf(
				"encoding: append column at byte %d: value is said to have %d bytes, want %s and at most the %d left",
				size-len(value), q.Width, widthsWanted(q.Float), len(after))
		}

		i := first + points
		d.offset[i], d.raw[i], d.flags[i] = q.OffsetMS, readRaw(after, q.Width), valueFlags(q.Float, q.Width)
		points, value = points+1, after[q.Width:]
	}
}

// walkAppendedSeconds reads leading entries in the seconds form, as long as at
// least 10 bytes are left: a qualifier and the 8 bytes that any value is loaded
// from. It stops before the first entry that is not of this kind, as walkSeconds
// does.
func (d *RowDecoder) walkAppendedSeconds(first int, value []byte) (points int, rest []byte) {
	offset, raws, flags := d.offset[first:], d.raw[first:], d.flags[first:]
	raws, flags = raws[:len(offset)], flags[:len(offset)] // one bounds check for three columns

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

		// As in walkSeconds: the shift drops the bytes that follow the value.
		width := uint(f&lengthMask) + 1
		raw := binary.BigEndian.Uint64(value[at+2:at+10]) >> ((64 - 8*width) & 63)
		offset[i], raws[i], flags[i] = int32(v>>flagBits*1000), raw, f
		at += 2 + int(width)
	}

	return len(offset), value[at:]
}

// keepLast keeps the last of the points at each offset, from index first on; they
// are sorted.
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
