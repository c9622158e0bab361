package encoding

import (
	"encoding/binary"
	"math"
	"slices"
)

// onlyAppended is OnlyCell for an append column. Each entry's start depends on the lengths of all
// entries before it, which makes a loop over them slow: a load waits for the length read by the one
// before. Three methods avoid the wait, tried in this order:
//
//   - points at equal distances (parseEvenTimes): offsets are computed and
//     values read by index;
//   - runs of entries with one type and length (ascent.addRun): four
//     qualifiers are read at a time, then all values of the run by index;
//   - what is left goes entry by entry (ascent.addMixed).
func (d *RowDecoder) onlyAppended(value []byte, dst []float64) (offsets []int32, values []float64, ok bool) {
	n := len(value) / minEntryBytes // at most so many points

	// The caller reads the row's annotations and skipped cells: it has none.
	d.Reset(0)
	d.offset = slices.Grow(d.offset, n)
	offsets, values = d.offset[:n], slices.Grow(dst[:0], n)[:n]

	if t, even := parseEvenSpacing(value); even {
		n, ok = t.points, true
		t.fill(offsets[:n])
		stridedDoubles(values[:n], value, t.flags)
	} else {
		n, ok = decodeEntries(offsets, values, value)
	}

	return offsets[:n], values[:n], ok
}

// fill writes the times as offsets in ms, one for each element of offsets.
func (t *evenSpacing) fill(offsets []int32) {
	at, step := t.first*1000, t.step*1000
	for i := range offsets {
		offsets[i] = at
		at += step
	}
}

// A search for a run costs a little even where there is none. After a run that was too short the
// number of entries read one by one before the next search doubles, so a column without runs is
// searched a logarithmic number of times.
const (
	minPause = 8  // entries read one by one before the next look
	worthRun = 16 // entries that make a run worth the look
)

// decodeEntries fills both columns and returns the number of points. ok reports
// whether the whole column could be decoded: all entries are complete, have the
// seconds form and ascend within the hour.
func decodeEntries(offsets []int32, values []float64, b []byte) (points int, ok bool) {
	// pause is how many entries are read one by one before the next search for a run.
	order, pause := ascent{last: -1}, minPause

	// The order is not tested at each entry: addRun and addMixed only note errors, and a column out
	// of order is given up here, at the next round at the latest.
	for len(b) > 1 && !order.broken() {
		flags := b[1] & flagMask
		if validFlags>>flags&1 == 0 {
			return points, false
		}

		stride := int(flags&lengthMask) + 3
		n := order.addRun(offsets[points:], b, stride)
		stridedDoubles(values[points:points+n], b[:n*stride], flags)
		points, b = points+n, b[n*stride:]

		// A search for a run costs a little: after one without success the next comes twice as
		// late.
		if n < worthRun {
			pause *= 2
		} else {
			pause = minPause
		}

		// The run ended at an entry of another length, or at the last three.
		n, size := order.addMixed(offsets[points:], values[points:], b, pause)
		// An entry is cut or not valid: the caller sees that b is not empty.
		if n == 0 {
			break
		}
		points, b = points+n, b[size:]
	}

	return points, len(b) == 0 && points > 0 && !order.broken()
}

// ascent checks that the times of entries ascend, without a branch at each: the
// sign bit of every difference is collected in wrong.
type ascent struct {
	last  int32 // s, of the newest entry; -1 before the first
	wrong int32 // negative once an entry was not later than the one before it
}

// broken reports whether an entry was out of order or beyond the hour. The
// milliseconds form, read as seconds, lies beyond the hour too: its first four
// bits are ones, which makes at least 3840.
func (o *ascent) broken() bool { return o.wrong < 0 || o.last >= RowSeconds }

// addRun fills in the offsets of the leading entries that have the flags of the
// first one and so are stride bytes each. It returns their number, a multiple of
// four.
func (o *ascent) addRun(offsets []int32, b []byte, stride int) (n int) {
	flags, last, wrong := b[1]&flagMask, o.last, o.wrong

	// offsets never has fewer places than b has entries; its length is tested only to avoid the
	// bounds check below.
	for ; len(b) >= 4*stride && len(offsets) >= 4; b, offsets = b[4*stride:], offsets[4:] {
		q, r := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[stride:])
		s, t := binary.BigEndian.Uint16(b[2*stride:]), binary.BigEndian.Uint16(b[3*stride:])

		// If one of the four has other flags, the next is not a qualifier: the offsets of the four
		// must not be used.
		f := uint16(flags)
		if ((q^f)|(r^f)|(s^f)|(t^f))&flagMask != 0 {
			break
		}

		// x - last - 1 is negative unless x is later than last.
		x, y, z, w := int32(q>>flagBits), int32(r>>flagBits), int32(s>>flagBits), int32(t>>flagBits)
		wrong |= (x - last - 1) | (y - x - 1) | (z - y - 1) | (w - z - 1)
		to := offsets[:4] // one bounds check for four writes
		to[0], to[1], to[2], to[3] = x*1000, y*1000, z*1000, w*1000
		last = w
		n += 4
	}

	o.last, o.wrong = last, wrong
	return n
}

// addMixed reads up to most leading entries of any flags and returns how many
// they are and their length in bytes. It stops before an entry with invalid
// flags and before one that is cut.
func (o *ascent) addMixed(offsets []int32, values []float64, b []byte, most int) (n, at int) {
	last, wrong := o.last, o.wrong

	for n < most && at+2 <= len(b) {
		// The start of the next entry depends on this one byte, so it is loaded first: the next
		// round need not wait for anything else.
		flags := b[at+1] & flagMask
		end := at + 3 + int(flags&lengthMask)
		if validFlags>>flags&1 == 0 || end > len(b) {
			break
		}

		s := int32(b[at])<<4 | int32(b[at+1]>>flagBits)
		if at+10 <= len(b) && flags&floatFlag == 0 {
			// An integer of any length is one load of eight bytes and a shift with sign, which
			// avoids a branch on the length that would be mispredicted. The bytes after the value
			// are shifted out.
			values[n] = float64(int64(binary.BigEndian.Uint64(b[at+2:at+10])) >> ((56 - 8*flags) & 63))
		} else {
			readDoubles(values[n:n+1], b[at+2:end], flags)
		}

		wrong |= s - last - 1 // negative unless s is later than last
		offsets[n], last = s*1000, s
		n, at = n+1, end
	}

	o.last, o.wrong = last, wrong
	return n, at
}

// stridedDoubles reads the values of len(to) entries of one type and length, as
// doubles. It is readDoubles for values with qualifiers between them: flags 0, 1, 3 and
// 7 are integers on 1, 2, 4 and 8 bytes. The switch is outside the loops so that each
// loop knows the width it reads.
func stridedDoubles(to []float64, b []byte, flags uint8) {
	switch flags {
	case 0:
		for i := range to {
			to[i] = float64(int8(b[3*i+2]))
		}
	case 1:
		for i := range to {
			to[i] = float64(int16(binary.BigEndian.Uint16(b[4*i+2:])))
		}
	case 3:
		for i := range to {
			to[i] = float64(int32(binary.BigEndian.Uint32(b[6*i+2:])))
		}
	case 7:
		for i := range to {
			to[i] = float64(int64(binary.BigEndian.Uint64(b[10*i+2:])))
		}
	case floatFlag | 3:
		for i := range to {
			to[i] = float64(math.Float32frombits(binary.BigEndian.Uint32(b[6*i+2:])))
		}
	case floatFlag | 7:
		for i := range to {
			to[i] = math.Float64frombits(binary.BigEndian.Uint64(b[10*i+2:]))
		}
	}
}
