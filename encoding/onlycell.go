package encoding

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
)

// OnlyCell decodes a row that has a single cell, in place of Reset, Add and
// FinishDoubles. It accepts only simple compacted cells and append columns: all times
// in the seconds form and ascending, and lengths that add up. ok is false for every
// other cell, which the caller then gives to Add.
//
// A scan of old rows spends its time here. So the columns are filled one after the other, in loops
// whose steps depend neither on the point before nor on the type of its value.
//
// Offsets are in ms from the base time, in a view that is valid until the next row. Values are in
// dst's memory, used from its start.
func (d *RowDecoder) OnlyCell(qualifier, value []byte, dst []float64) (offsets []int32, values []float64, ok bool) {
	if bytes.Equal(qualifier, AppendColumn) {
		if d.onlyBlock(value) {
			return d.onlySealed(dst)
		}
		return d.onlyAppended(value, dst)
	}

	// A single point is not worth the preparation; odd lengths are no points.
	n := len(qualifier) / 2
	if n < 2 || len(qualifier)%2 != 0 {
		return nil, dst, false
	}

	values = slices.Grow(dst[:0], n)[:n]
	offsets, ok = d.compactedOffsets(qualifier, n) // sets cachedUniform, too
	switch {
	case !ok:
		return nil, dst, false
	case d.cachedUniform:
		ok = uniformDoubles(values, qualifier[1]&flagMask, value)
	default:
		ok = mixedDoubles(values, qualifier, value)
	}
	return offsets, values, ok
}

// compactedOffsets returns the offsets of n qualifiers, and whether all have the
// seconds form and ascend. Series that are measured at the same times have the
// same qualifiers, so those of the last row are cached: comparing bytes is much
// faster than decoding them.
func (d *RowDecoder) compactedOffsets(qualifier []byte, n int) (offsets []int32, ok bool) {
	// Reset was called before they were cached, and Add not since then: there are neither
	// annotations nor skipped cells of another row.
	if bytes.Equal(qualifier, d.cachedQualifiers) {
		return d.offset[:n], true
	}

	// Reset drops the cached qualifiers, and they stay dropped if these are refused: offset is then
	// unusable.
	d.Reset(0)
	d.offset = slices.Grow(d.offset, n)
	offsets = d.offset[:n]
	if ok, d.cachedUniform = secondsOffsets(offsets, qualifier); ok {
		d.cachedQualifiers = append(d.cachedQualifiers, qualifier...)
	}
	return offsets, ok
}

// Four qualifiers of the seconds form are read as one number.
const (
	fourQualifiers = 8 // bytes
	fourOnes       = 0x0001_0001_0001_0001
	secondsMask    = 0xFFF
)

// secondsOffsets fills in the offsets of qualifiers, read in the seconds form. valid
// reports whether all have that form and ascend within the hour; the milliseconds form,
// read as seconds, is beyond the hour. uniform reports whether all values have one type
// and length.
func secondsOffsets(offsets []int32, qualifier []byte) (valid, uniform bool) {
	flags := uint64(qualifier[1]&flagMask) * fourOnes
	differ := uint64(0) // has a flag bit set once a qualifier's flags were not the first one's
	last, wrong := int32(-1), int32(0)

	// Eight bytes are four qualifiers: aaaf bbbf cccf eeef in hex digits, three of
	// seconds and one of flags each. Nothing is tested inside the loop: wrong becomes
	// negative at a step that does not ascend, and both are tested at the end.
	for ; len(qualifier) >= fourQualifiers; qualifier, offsets = qualifier[fourQualifiers:], offsets[4:] {
		q, to := binary.BigEndian.Uint64(qualifier), offsets[:4]
		a, b := int32(q>>52), int32(q>>36)&secondsMask
		c, e := int32(q>>20)&secondsMask, int32(q>>4)&secondsMask
		wrong |= (a - last - 1) | (b - a - 1)
		wrong |= (c - b - 1) | (e - c - 1) //fault:only-cell-out-of-order-taken TestOnlyCell_refuses
		differ |= q ^ flags
		to[0], to[1], to[2], to[3] = a*1000, b*1000, c*1000, e*1000
		last = e
	}

	// Up to three qualifiers are left.
	for i := range offsets {
		q := binary.BigEndian.Uint16(qualifier[2*i:])
		s := int32(q >> flagBits)
		wrong |= s - last - 1
		differ |= uint64(q) ^ flags&flagMask
		offsets[i], last = s*1000, s
	}

	// As all ascend, the last one is the only one to compare with the hour. Only the flag bits of
	// differ count; the others are offsets.
	return wrong >= 0 && last < RowSeconds, differ&(flagMask*fourOnes) == 0
}

// isTrailer reports whether what follows a cell's values is its last byte, 0 or
// 1; see RowDecoder.addCompacted.
func isTrailer(rest []byte) bool { return len(rest) == 1 && rest[0] <= 1 }

// uniformDoubles reads the values of a cell that all have one type and length. It
// reports whether that type is valid, and whether these lengths, with the trailer, add up
// to the cell's.
func uniformDoubles(values []float64, flags uint8, value []byte) bool {
	end := len(values) * (int(flags&lengthMask) + 1)
	if validFlags>>flags&1 == 0 || end > len(value) || !isTrailer(value[end:]) {
		return false
	}
	readDoubles(values, value[:end], flags)
	return true
}

// mixedDoubles is uniformDoubles for values of several types and lengths.
func mixedDoubles(values []float64, qualifier, value []byte) bool {
	at := 0
	for i := range values {
		flags := qualifier[2*i+1] & flagMask
		width := int(flags&lengthMask) + 1
		if validFlags>>flags&1 == 0 || at+width > len(value) {
			return false
		}

		if at+8 <= len(value) && flags&floatFlag == 0 {
			// An integer of any length is one load of eight bytes and a shift with
			// sign: the lengths change from point to point, and a branch on them
			// would be guessed wrong.
			values[i] = float64(int64(binary.BigEndian.Uint64(value[at:])) >> ((64 - 8*width) & 63))
		} else {
			readDoubles(values[i:i+1], value[at:at+width], flags)
		}
		at += width
	}
	return isTrailer(value[at:])
}

// readDoubles reads len(to) values of one type and length as doubles. b holds
// exactly these. flags are valid: 0, 1, 3 and 7 are integers on 1, 2, 4 and 8 bytes.
func readDoubles(to []float64, b []byte, flags uint8) {
	switch flags {
	case 0:
		b = b[:len(to)] // so that the loop needs no bounds check
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
