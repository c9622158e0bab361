package encoding

import (
	"encoding/binary"
	"math"
	"slices"
)

// OnlyBits is OnlyCell for callers that need the values as they are stored: it returns
// Value.Bits of each, in dst's memory, which is used from its beginning. It leaves alone cells
// that OnlyCell does not accept, those with integers and floats, and entries of append columns
// whose points are not at equal distances or not of one length: ok is false.
// isFloat is the type of all values.
func (d *RowDecoder) OnlyBits(qualifier, value []byte,
	dst []uint64) (offsets []int32, bits []uint64, isFloat, ok bool) {
	if string(qualifier) == string(AppendColumn) {
		if d.onlyBlock(value) {
			return d.onlySealedBits(dst)
		}
		return d.onlyAppendedBits(value, dst)
	}

	n := len(qualifier) / 2
	if n < 2 || len(qualifier)%2 != 0 {
		return nil, dst, false, false
	}
	bits = slices.Grow(dst[:0], n)[:n]
	if offsets, ok = d.compactedOffsets(qualifier, n); !ok {
		return nil, dst, false, false
	}

	flags := qualifier[1] & flagMask
	isFloat = flags&floatFlag != 0
	if !d.cachedUniform {
		return offsets, bits, isFloat, mixedBits(bits, qualifier, value)
	}

	width := int(flags&lengthMask) + 1
	end := n * width
	if validFlags>>flags&1 == 0 || end > len(value) || !isTrailer(value[end:]) {
		return nil, dst, false, false
	}
	stridedBits(bits, value, width, flags)
	return offsets, bits, isFloat, true
}

// onlyAppendedBits is OnlyBits for an append column.
func (d *RowDecoder) onlyAppendedBits(value []byte, dst []uint64) (offsets []int32, bits []uint64, isFloat, ok bool) {
	t, even := parseEvenSpacing(value)
	if !even {
		return nil, dst, false, false
	}

	// The caller reads the row's annotations and skipped cells: it has none.
	d.Reset(0)
	d.offset = slices.Grow(d.offset, t.points)
	offsets, bits = d.offset[:t.points], slices.Grow(dst[:0], t.points)[:t.points]
	t.fill(offsets)
	stridedBits(bits, value[2:], int(t.flags&lengthMask)+3, t.flags)
	return offsets, bits, t.flags&floatFlag != 0, true
}

// mixedBits reads the values of a cell of several lengths. It reports whether all are
// integers, and whether their lengths, with the trailer, add up to the cell's.
func mixedBits(bits []uint64, qualifier, value []byte) bool {
	at := 0
	for i := range bits {
		flags := qualifier[2*i+1] & flagMask
		width := int(flags&lengthMask) + 1
		if validFlags>>flags&1 == 0 || flags&floatFlag != 0 || at+width > len(value) {
			return false
		}

		// Where eight bytes are left any length is one load and a shift with sign.
		if at+8 <= len(value) {
			bits[i] = uint64(int64(binary.BigEndian.Uint64(value[at:])) >> ((64 - 8*width) & 63))
		} else {
			stridedBits(bits[i:i+1], value[at:], width, flags)
		}
		at += width
	}
	return isTrailer(value[at:])
}

// stridedBits reads len(to) values of one type and length, the first at the start of b and
// each stride bytes after the one before it. flags are valid: 0, 1, 3 and 7 are integers on
// 1, 2, 4 and 8 bytes. The switch is outside the loops so that each loop knows the width it
// reads.
func stridedBits(to []uint64, b []byte, stride int, flags uint8) {
	switch flags {
	case 0:
		if stride == 1 {
			b = b[:len(to)] // so that the loop needs no bounds check
			for i := range to {
				to[i] = uint64(int8(b[i])) //fault:bits-without-sign TestOnlyBits_equalsCellByCell
			}
			return
		}
		for i := range to {
			to[i] = uint64(int8(b[i*stride]))
		}
	case 1:
		for i := range to {
			to[i] = uint64(int16(binary.BigEndian.Uint16(b[i*stride:])))
		}
	case 3:
		for i := range to {
			to[i] = uint64(int32(binary.BigEndian.Uint32(b[i*stride:])))
		}
	case floatFlag | 3:
		for i := range to {
			to[i] = math.Float64bits(float64(math.Float32frombits(binary.BigEndian.Uint32(b[i*stride:]))))
		}
	case 7, floatFlag | 7:
		for i := range to {
			to[i] = binary.BigEndian.Uint64(b[i*stride:])
		}
	}
}
