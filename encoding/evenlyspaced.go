package encoding

import (
	"encoding/binary"

	"downpour/encoding/column"
)

// EvenlySpaced is an append column whose points are at equal distances and whose values are
// integers of one length, up to four bytes: the usual column of a machine that is
// polled every ten seconds. Its values can be summed without decoding each point. Three
// points ten seconds apart with the values 42, 43 and -1, each on one byte, are
//
//	0000 2A | 00A0 2B | 0140 FF
//	+0 s 42 | +10 s 43| +20 s -1
type EvenlySpaced struct {
	First, Step int32 // offset of the first point from the base time, and distance between two; ms
	Points      int   // at least two

	// The values: entries of an append column, or, if these are nil, integers of a block of columns, or the
	// sums of those before each one and of all.
	entries []byte
	width   int // bytes of a value in entries: 1, 2 or 4
	sums    []uint64
	sealed  *column.Integers
}

// OnlyEvenlySpaced returns the points of a row whose only cell, given by its qualifier and value, is an
// append column of evenly spaced points. ok is false for every other row. The result is a view into
// value, or into d, and holds until the next row.
func (d *RowDecoder) OnlyEvenlySpaced(qualifier, value []byte) (e EvenlySpaced, ok bool) {
	if string(qualifier) != string(AppendColumn) || len(value) < 2*minEntryBytes {
		return e, false
	}
	if value[0] == column.Mark {
		// Others are left to OnlyCell before they are read as a whole.
		if !column.BeginsWithInteger(value) {
			return e, false
		}
		if !d.onlyBlock(value) {
			return e, false
		}
		return d.evenlySpacedSealed()
	}

	// Floats and integers of eight bytes need more than 53 bits for their sums,
	// which OpenTSDB rounds after each addition: they must be added in doubles,
	// one by one. The flags of integers on 1, 2 and 4 bytes are 0, 1 and 3; parseEvenSpacing
	// refuses 2.
	flags := value[1] & flagMask
	if flags > 3 {
		return e, false
	}

	// The caller asks d for the row's annotations and skipped cells: without Reset those of the row
	// before would be returned.
	d.Reset(0)
	t, ok := parseEvenSpacing(value)
	return EvenlySpaced{
		First:   t.first * 1000,
		Step:    t.step * 1000,
		Points:  t.points,
		entries: value,
		width:   int(flags) + 1,
	}, ok
}

// evenSpacing are the times of points at equal distances, in seconds.
type evenSpacing struct {
	first, step int32
	points      int
	flags       uint8 // of every point: float flag and length, as in a qualifier
}

// parseEvenSpacing reads the times of an append column from its first two entries.
// ok reports whether the others follow at the same distance: at least two
// complete entries in the seconds form, of one type and length, that ascend
// within the hour.
func parseEvenSpacing(entries []byte) (t evenSpacing, ok bool) {
	if len(entries) < 2*minEntryBytes {
		return t, false
	}

	// All entries are as long as the first one, or the column is not even.
	t.flags = entries[1] & flagMask
	stride := 2 + int(t.flags&lengthMask) + 1
	t.points = len(entries) / stride
	if validFlags>>t.flags&1 == 0 || t.points < 2 || t.points*stride != len(entries) {
		return t, false
	}

	// Complete qualifiers are compared, not only their offsets. A step whose four lowest bits are
	// zero does not change the flags, so one comparison covers time, type and length. The bound on
	// the last qualifier also excludes the milliseconds form, which as a number is larger than all
	// of the seconds form.
	first := int64(binary.BigEndian.Uint16(entries))
	step := int64(binary.BigEndian.Uint16(entries[stride:])) - first
	if step <= 0 || step&flagMask != 0 || first+int64(t.points-1)*step >= maxSecondsQualifier {
		return t, false
	}

	t.first, t.step = int32(first>>flagBits), int32(step>>flagBits)
	return t, evenlySpaced(entries, stride, uint64(first), uint64(step))
}

// evenlySpaced reports whether the qualifiers of entries, stride bytes each,
// begin with first and grow by step. The caller makes sure that the last one
// fits in two bytes.
func evenlySpaced(b []byte, stride int, first, step uint64) bool {
	at, want := 0, first

	// Two qualifiers fit in eight bytes only with values of up to four bytes.
	if stride <= 6 {
		at = evenlySpacedPairs(b, stride, first, step)
		want += uint64(at/stride) * step
	}

	// The entries after the last pair, or those from the first difference on:
	// the loop then finds it again and stops there.
	for ; at < len(b); at, want = at+stride, want+step {
		if uint64(binary.BigEndian.Uint16(b[at:])) != want {
			return false
		}
	}
	return true
}

// evenlySpacedPairs does the work of evenlySpaced for two qualifiers at a time.
// Eight bytes are loaded from the start of an entry as one big-endian number.
// The mask keeps two lanes of it, the qualifiers of this entry and of the next
// one; for entries with values of one byte:
//
//	bytes loaded  00 00 2A 00 A0 2B 01 40
//	mask          FF FF 00 FF FF 00 00 00
//	want          00 00 00 00 A0 00 00 00
//	add           01 40 00 01 40 00 00 00     what both lanes grow by: 2 * step
//
// want never carries from the low lane into the high one while it is compared,
// because the last qualifier fits in two bytes.
//
// It returns the offset at which it stopped, near the end or before a difference:
// all qualifiers before that offset are as expected.
func evenlySpacedPairs(b []byte, stride int, first, step uint64) (at int) {
	low := uint(48 - 8*stride) // the lane of the second qualifier begins at this bit
	lanes := uint64(1)<<48 | 1<<low
	mask, want, add := 0xFFFF*lanes, first<<48|(first+step)<<low, 2*step*lanes

	// Two loads in a round, four entries: their comparisons do not depend on each
	// other, and one branch decides on both.
	for ; at+2*stride+8 <= len(b); at += 4 * stride {
		x, y := binary.BigEndian.Uint64(b[at:]), binary.BigEndian.Uint64(b[at+2*stride:])
		if (x&mask^want)|(y&mask^(want+add)) != 0 { //fault:even-with-a-gap-taken TestOnlyEven_refuses
			return at
		}
		want += 2 * add
	}
	return at
}

// Sum returns the sum of the values of the points [from, to). Values have at most 4 bytes, so
// it does not overflow.
func (e *EvenlySpaced) Sum(from, to int) (sum int64) {
	switch {
	case e.sums != nil:
		return int64(e.sums[to] - e.sums[from])
	case e.entries == nil:
		return e.sealed.Sum(from, to)
	}

	stride := 2 + e.width
	b := e.entries[from*stride : to*stride]

	switch e.width {
	// sumPairs loads eight bytes at once, and leaves the last entries, which have fewer.
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
		// Two values of four bytes with their qualifiers take twelve bytes: there
		// is no pair to load at once.
		for ; len(b) >= stride; b = b[stride:] {
			sum += int64(int32(binary.BigEndian.Uint32(b[2:])))
		}
	}

	return sum
}

// At returns the value of a point.
func (e *EvenlySpaced) At(i int) int64 {
	switch {
	case e.sums != nil:
		return int64(e.sums[i+1] - e.sums[i])
	case e.entries == nil:
		return e.sealed.At(i)
	}
	b := e.entries[i*(2+e.width)+2:]
	return widen(readRaw(b, e.width), e.width, false).Int()
}

// Bounds returns the least and the largest value of the points [from, to). There is at least one.
func (e *EvenlySpaced) Bounds(from, to int) (least, most int64) {
	if e.sums == nil && e.entries == nil {
		return e.sealed.Bounds(from, to)
	}
	least = e.At(from)
	most = least
	if e.sums != nil { // no call for each value
		for i, sum := range e.sums[from+1 : to] {
			v := int64(e.sums[from+i+2] - sum)
			least, most = min(least, v), max(most, v)
		}
		return least, most
	}
	for i := from + 1; i < to; i++ {
		v := e.At(i)
		least, most = min(least, v), max(most, v)
	}
	return least, most
}

// sumPairs sums values of one or two bytes, two at a time. Eight bytes are loaded
// from the start of an entry as one big-endian number, in which the values of
// this entry and of the next one are lanes; for values of one byte:
//
//	bytes loaded  00 00 2A 00 A0 2B 01 40
//	mask          00 00 FF 00 00 FF 00 00
//	sign          00 00 80 00 00 80 00 00
//
// Flipping the sign bit adds 128 (32768 for two bytes) to a value. So no lane
// is negative, and none borrows from the other; what was added to all values is
// subtracted at the end.
//
// Both lanes are summed in one number. Neither overflows: each has two bytes more than a value,
// room for 65536 values, and a row has at most 3600.
//
// It returns the sum and the entries that did not make a pair with eight bytes.
func sumPairs(b []byte, stride int) (sum int64, rest []byte) {
	bits := uint(8 * (stride - 2)) // of a value
	high := 48 - bits              // the lane of the first value begins at this bit
	low := high - uint(8*stride)   // and that of the second one at this
	lanes := uint64(1)<<high | 1<<low
	mask, sign := (1<<bits-1)*lanes, lanes<<(bits-1)

	total, at := uint64(0), 0
	for ; at+8 <= len(b); at += 2 * stride {
		total += (binary.BigEndian.Uint64(b[at:]) ^ sign) & mask
	}

	second := total >> low & (1<<(8*stride) - 1)
	return int64(total>>high+second) - int64(at/stride)<<(bits-1), b[at:]
}
