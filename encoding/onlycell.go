package encoding

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
)

// OnlyCell is Reset, Add and FinishDoubles in one for a row that has no other
// cell, if this is a compacted one or an append column of the plainest kind: all
// times in the seconds form, ascending, and values whose lengths add up. Of any
// other it returns false, and the row is to be read cell by cell. A scan of old
// rows spends its time here, so columns are made one after the other, in loops that
// know what they will meet: no step depends on the point before, or on what kind of
// value that was.
//
// Offsets are ms from the base time and a view until the next row; values are in
// dst's memory, used from its beginning.
func (d *RowDecoder) OnlyCell(qualifier, value []byte, dst []float64) (offsets []int32, values []float64, ok bool) {
	if bytes.Equal(qualifier, AppendColumn) {
		return d.onlyAppended(value, dst)
	}
	n := len(qualifier) / 2
	if n < 2 || len(qualifier)%2 != 0 {
		return nil, dst, false
	}
	values = slices.Grow(dst[:0], n)[:n]
	offsets, ok = d.times(qualifier, n)
	switch {
	case !ok:
		return nil, dst, false
	case d.alike:
		ok = alikeDoubles(values, qualifier[1]&flagMask, value)
	default:
		ok = mixedDoubles(values, qualifier, value)
	}
	return offsets, values, ok
}

// times are the offsets that n qualifiers say, read or remembered: rows of series
// that are measured at the same times have the same qualifiers.
func (d *RowDecoder) times(qualifier []byte, n int) (offsets []int32, ok bool) {
	if bytes.Equal(qualifier, d.wide) {
		return d.offset[:n], true
	}
	d.Reset(0)
	d.offset = slices.Grow(d.offset, n)
	offsets = d.offset[:n]
	if ok, d.alike = wideOffsets(offsets, qualifier); ok {
		d.wide = append(d.wide, qualifier...)
	}
	return offsets, ok
}

// Four qualifiers of the seconds form read as one number.
const (
	fourQualifiers = 8 // bytes
	fourOnes       = 0x0001_0001_0001_0001
	secondsMask    = 0xFFF
)

// wideOffsets fills in the offsets that the qualifiers say in the seconds form. It
// tells whether all have that form and ascend within the hour (the form of
// milliseconds, read as seconds, lies beyond it), and whether all values have one
// type and length.
func wideOffsets(offsets []int32, qualifier []byte) (wide, alike bool) {
	flags := uint64(qualifier[1]&flagMask) * fourOnes
	differ := uint64(0)
	last, wrong := int32(-1), int32(0) // wrong turns negative at a step that does not ascend
	for ; len(qualifier) >= fourQualifiers; qualifier, offsets = qualifier[fourQualifiers:], offsets[4:] {
		q, to := binary.BigEndian.Uint64(qualifier), offsets[:4]
		a, b := int32(q>>52), int32(q>>36)&secondsMask
		c, e := int32(q>>20)&secondsMask, int32(q>>4)&secondsMask
		wrong |= (a - last - 1) | (b - a - 1) | (c - b - 1) | (e - c - 1)
		differ |= q ^ flags
		to[0], to[1], to[2], to[3] = a*1000, b*1000, c*1000, e*1000
		last = e
	}
	for i := range offsets {
		q := binary.BigEndian.Uint16(qualifier[2*i:])
		s := int32(q >> flagBits)
		wrong |= s - last - 1
		differ |= uint64(q) ^ flags&flagMask
		offsets[i], last = s*1000, s
	}
	return wrong >= 0 && last < RowSeconds, differ&(flagMask*fourOnes) == 0
}

// trailed tells whether what is behind a cell's points is its last byte.
func trailed(rest []byte) bool { return len(rest) == 1 && rest[0] <= 1 }

// alikeDoubles reads the values of a cell that all have one type and length, and
// tells whether the cell's length is theirs.
func alikeDoubles(values []float64, flags uint8, value []byte) bool {
	end := len(values) * (int(flags&lengthMask) + 1)
	if validFlags>>flags&1 == 0 || end > len(value) || !trailed(value[end:]) {
		return false
	}
	readDoubles(values, value[:end], flags)
	return true
}

// mixedDoubles does the same for values of several types and lengths.
func mixedDoubles(values []float64, qualifier, value []byte) bool {
	at := 0
	for i := range values {
		flags := qualifier[2*i+1] & flagMask
		width := int(flags&lengthMask) + 1
		if validFlags>>flags&1 == 0 || at+width > len(value) {
			return false
		}
		if at+8 <= len(value) && flags&floatFlag == 0 {
			values[i] = float64(int64(binary.BigEndian.Uint64(value[at:])) >> ((64 - 8*width) & 63))
		} else {
			readDoubles(values[i:i+1], value[at:at+width], flags)
		}
		at += width
	}
	return trailed(value[at:])
}

// readDoubles reads values of one type and length.
func readDoubles(to []float64, b []byte, flags uint8) {
	switch flags {
	case 0:
		b = b[:len(to)]
		for i := range to {
			to[i] = float64(int8(b[i]))
		}
	case 1:
		for i := range to {
			to[i] = float64(int16(binary.BigEndian.Uint16(b[2*i:])))
		}
	case 3:
		for i := range to {
			to[i] = float64(int32(binary.BigEndian.Uint32(b[4*i:])))
		}
	case 7:
		for i := range to {
			to[i] = float64(int64(binary.BigEndian.Uint64(b[8*i:])))
		}
	case floatFlag | 3:
		for i := range to {
			to[i] = float64(math.Float32frombits(binary.BigEndian.Uint32(b[4*i:])))
		}
	case floatFlag | 7:
		for i := range to {
			to[i] = math.Float64frombits(binary.BigEndian.Uint64(b[8*i:]))
		}
	}
}
