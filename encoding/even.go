package encoding

import "encoding/binary"

// Even are the points of a row that are equally far apart, and integers of one
// length, up to four bytes: what a machine reports that is asked every ten seconds.
// They are added up without being decoded one by one. Ten seconds apart, with the
// values 42, 43 and -1 on one byte:
//
//	0000 2A  00A0 2B  0140 FF
type Even struct {
	First, Step int32 // offset from the base time, distance; ms
	Points      int   // at least two

	entries []byte // of an append column
	width   int    // of a value: 1, 2 or 4
}

// OnlyEven is OnlyCell for a row whose only cell is an append column of Even
// points; of any other it returns false. The result is a view into value.
func (d *RowDecoder) OnlyEven(qualifier, value []byte) (e Even, ok bool) {
	if string(qualifier) != string(AppendColumn) || len(value) < 2*leastEntry {
		return e, false
	}
	flags := value[1] & flagMask
	if flags > 3 { // floats, or eight bytes: their sums are rounded one by one
		return e, false
	}
	d.Reset(0)
	t, ok := evenly(value)
	return Even{First: t.first * 1000, Step: t.step * 1000, Points: t.points, entries: value, width: int(flags) + 1}, ok
}

// evenTimes are times at equal distances, in seconds.
type evenTimes struct {
	first, step int32
	points      int
	flags       uint8 // of all
}

// evenly looks at the entries of an append column, and tells whether they are two
// or more, whole, in the form of seconds, equally far apart, ascending within the
// hour, and of one type and length.
func evenly(entries []byte) (t evenTimes, ok bool) {
	if len(entries) < 2*leastEntry {
		return t, false
	}
	t.flags = entries[1] & flagMask
	stride := 2 + int(t.flags&lengthMask) + 1
	t.points = len(entries) / stride
	if validFlags>>t.flags&1 == 0 || t.points < 2 || t.points*stride != len(entries) {
		return t, false
	}
	first := int64(binary.BigEndian.Uint16(entries))
	step := int64(binary.BigEndian.Uint16(entries[stride:])) - first
	if step <= 0 || step&flagMask != 0 || first+int64(t.points-1)*step >= maxSecondsQualifier {
		return t, false
	}
	t.first, t.step = int32(first>>flagBits), int32(step>>flagBits)
	return t, spaced(entries, stride, uint64(first), uint64(step))
}

// spaced tells whether the qualifiers of entries, stride bytes each, go up by step
// from first on; the last one, so, is to fit in two bytes.
func spaced(b []byte, stride int, first, step uint64) bool {
	at, want := 0, first
	if stride <= 6 {
		at = spacedPairs(b, stride, first, step)
		want += uint64(at/stride) * step
	}
	for ; at < len(b); at, want = at+stride, want+step {
		if uint64(binary.BigEndian.Uint16(b[at:])) != want {
			return false
		}
	}
	return true
}

// spacedPairs compares qualifiers two at once, as lanes of one number; of the
// entries 0000 2A, 00A0 2B with what follows and its mask
//
//	0000 2A 00A0 2B 0140
//	FFFF 00 FFFF 00 0000
//
// It returns where it has come to, which is before the first qualifier that is
// another.
func spacedPairs(b []byte, stride int, first, step uint64) (at int) {
	low := uint(48 - 8*stride) // the second one's place in eight bytes
	lanes := uint64(1)<<48 | 1<<low
	mask, want, add := 0xFFFF*lanes, first<<48|(first+step)<<low, 2*step*lanes
	for ; at+2*stride+8 <= len(b); at += 4 * stride {
		x, y := binary.BigEndian.Uint64(b[at:]), binary.BigEndian.Uint64(b[at+2*stride:])
		if (x&mask^want)|(y&mask^(want+add)) != 0 {
			return at
		}
		want += 2 * add
	}
	return at
}

// Sum adds up the values of the points from one index to another, half-open.
func (e Even) Sum(from, to int) (sum int64) {
	stride := 2 + e.width
	b := e.entries[from*stride : to*stride]
	switch e.width {
	case 1:
		sum, b = sumPairs(b, stride)
		for ; len(b) >= stride; b = b[stride:] {
			sum += int64(int8(b[2]))
		}
	case 2:
		sum, b = sumPairs(b, stride)
		for ; len(b) >= stride; b = b[stride:] {
			sum += int64(int16(binary.BigEndian.Uint16(b[2:])))
		}
	case 4:
		for ; len(b) >= stride; b = b[stride:] {
			sum += int64(int32(binary.BigEndian.Uint32(b[2:])))
		}
	}
	return sum
}

// sumPairs adds up values of one or two bytes, two at once as lanes of one number.
// A lane holds the numbers above the least one, so that none is negative, and does
// not run over: it has two bytes more than a value, and a row has 3600 points. It
// returns the entries that are left.
func sumPairs(b []byte, stride int) (sum int64, rest []byte) {
	bits := uint(8 * (stride - 2))
	high := 48 - bits
	low := high - uint(8*stride)
	lanes := uint64(1)<<high | 1<<low
	mask, sign := (1<<bits-1)*lanes, lanes<<(bits-1)
	total, at := uint64(0), 0
	for ; at+8 <= len(b); at += 2 * stride {
		total += (binary.BigEndian.Uint64(b[at:]) ^ sign) & mask
	}
	second := total >> low & (1<<(8*stride) - 1)
	return int64(total>>high+second) - int64(at/stride)<<(bits-1), b[at:]
}
