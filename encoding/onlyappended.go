package encoding

import (
	"encoding/binary"
	"math"
	"slices"
)

// onlyAppended is OnlyCell for an append column. Its entries stand one behind the
// other, qualifier and value, so where one begins hangs on all before. But most
// are as long as the one before: runs of entries with one type and length are read
// four at a time, column by column, and only what is left goes entry by entry.
func (d *RowDecoder) onlyAppended(value []byte, dst []float64) (offsets []int32, values []float64, ok bool) {
	n := len(value) / leastEntry
	d.Reset(0)
	d.offset = slices.Grow(d.offset, n)
	offsets, values = d.offset[:n], slices.Grow(dst[:0], n)[:n]
	if t, even := evenly(value); even {
		n, ok = t.points, true
		t.fill(offsets[:n])
		stridedDoubles(values[:n], value, t.flags)
	} else {
		n, ok = plainEntries(offsets, values, value)
	}
	return offsets[:n], values[:n], ok
}

// fill fills in the times as offsets.
func (t *evenTimes) fill(offsets []int32) {
	at, step := t.first*1000, t.step*1000
	for i := range offsets {
		offsets[i] = at
		at += step
	}
}

// Entries are read one by one, so many before the next look whether there is a run
// of alike ones, and twice as many if there was none that is worth it.
const (
	leastStretch = 8
	worthRun     = 16
)

// plainEntries fills both columns and returns the number of points, and whether
// all entries have the form of seconds, ascend within the hour and are whole.
func plainEntries(offsets []int32, values []float64, b []byte) (points int, ok bool) {
	order, stretch := ascent{last: -1}, leastStretch
	for len(b) > 1 && !order.over() {
		flags := b[1] & flagMask
		if validFlags>>flags&1 == 0 {
			return points, false
		}
		stride := int(flags&lengthMask) + 3
		n := order.alike(offsets[points:], b, stride)
		stridedDoubles(values[points:points+n], b[:n*stride], flags)
		points, b = points+n, b[n*stride:]
		if n < worthRun {
			stretch *= 2
		} else {
			stretch = leastStretch
		}
		n, size := order.mixed(offsets[points:], values[points:], b, stretch)
		if n == 0 {
			break
		}
		points, b = points+n, b[size:]
	}
	return points, len(b) == 0 && points > 0 && !order.over()
}

// ascent follows the seconds of entries.
type ascent struct {
	last  int32 // -1 before the first
	wrong int32 // negative once a step has not ascended
}

// over tells that the order is broken, or the hour at its end: the form of
// milliseconds, read as seconds, lies beyond it.
func (o *ascent) over() bool { return o.wrong < 0 || o.last >= RowSeconds }

// alike fills in the offsets of leading entries that have the first one's flags,
// stride bytes each, and returns their number, a multiple of four.
func (o *ascent) alike(offsets []int32, b []byte, stride int) (n int) {
	flags, last, wrong := b[1]&flagMask, o.last, o.wrong
	for ; len(b) >= 4*stride && len(offsets) >= 4; b, offsets = b[4*stride:], offsets[4:] {
		q, r := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[stride:])
		s, t := binary.BigEndian.Uint16(b[2*stride:]), binary.BigEndian.Uint16(b[3*stride:])
		f := uint16(flags)
		if ((q^f)|(r^f)|(s^f)|(t^f))&flagMask != 0 {
			break
		}
		x, y, z, w := int32(q>>flagBits), int32(r>>flagBits), int32(s>>flagBits), int32(t>>flagBits)
		wrong |= (x - last - 1) | (y - x - 1) | (z - y - 1) | (w - z - 1)
		to := offsets[:4]
		to[0], to[1], to[2], to[3] = x*1000, y*1000, z*1000, w*1000
		last = w
		n += 4
	}
	o.last, o.wrong = last, wrong
	return n
}

// mixed reads leading entries of any flags, most in number, and returns how many
// they are and their bytes. Where the next one begins is known soonest from the
// byte that says so, read alone.
func (o *ascent) mixed(offsets []int32, values []float64, b []byte, most int) (n, at int) {
	last, wrong := o.last, o.wrong
	for n < most && at+2 <= len(b) {
		flags := b[at+1] & flagMask
		end := at + 3 + int(flags&lengthMask)
		if validFlags>>flags&1 == 0 || end > len(b) {
			break
		}
		s := int32(b[at])<<4 | int32(b[at+1]>>flagBits)
		if at+10 <= len(b) && flags&floatFlag == 0 {
			values[n] = float64(int64(binary.BigEndian.Uint64(b[at+2:at+10])) >> ((56 - 8*flags) & 63))
		} else {
			readDoubles(values[n:n+1], b[at+2:end], flags)
		}
		wrong |= s - last - 1
		offsets[n], last = s*1000, s
		n, at = n+1, end
	}
	o.last, o.wrong = last, wrong
	return n, at
}

// stridedDoubles reads the values of entries of one type and length.
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
