package column

import (
	"encoding/binary"
	"slices"
)

// Bits of the byte that a column of times begins with; without them points are at equal distances, and
// numbers are seconds.
const (
	uneven = 1 // distances differ
	millis = 2 // numbers are ms
)

// MaxOffset is the last offset of a row, in ms.
const MaxOffset = 3_600_000 - 1

// Times are the times of a block, not unpacked.
type Times struct {
	n     int
	scale int32 // ms of a unit: 1000 or 1
	even  bool
	first int32 // in units of scale
	step  int32 // of even times, in units of scale
	// Of others:
	unit, least int32
	packed
}

// appendTimes appends the column of times (see the package comment) for the offsets of at least one
// point, in ms from the row's base time, each greater than the one before.
func appendTimes(dst []byte, offsets []int32) []byte {
	// All numbers are in seconds if every offset is a whole second, else in ms.
	msPerTick, form := int32(1000), byte(0)
	if slices.ContainsFunc(offsets, func(ms int32) bool { return ms%1000 != 0 }) {
		msPerTick, form = 1, millis
	}
	first := uint64(offsets[0] / msPerTick)
	if len(offsets) == 1 {
		return binary.AppendUvarint(append(dst, form), first)
	}
	if equalDistances(offsets) {
		dst = binary.AppendUvarint(append(dst, form), first)
		return binary.AppendUvarint(dst, uint64((offsets[1]-offsets[0])/msPerTick))
	}

	// distances[i] is that from point i to the next one: first in ticks, below what it exceeds the
	// least distance by, in units. A unit is the largest number of ticks that divides all distances.
	distances := make([]uint64, len(offsets)-1)
	unit, least := uint64(0), uint64(MaxOffset)
	for i := range distances {
		distances[i] = uint64((offsets[i+1] - offsets[i]) / msPerTick)
		unit, least = divisor(unit, distances[i]), min(least, distances[i])
	}
	for i := range distances {
		distances[i] = (distances[i] - least) / unit
	}
	dst = binary.AppendUvarint(append(dst, form|uneven), first)
	dst = binary.AppendUvarint(dst, unit)
	dst = binary.AppendUvarint(dst, least/unit)
	return appendPacked(dst, distances)
}

// equalDistances reports whether neighbours have the same distance everywhere; there are at least two
// offsets.
func equalDistances(offsets []int32) bool {
	for i := 2; i < len(offsets); i++ {
		if offsets[i]-offsets[i-1] != offsets[1]-offsets[0] {
			return false
		}
	}
	return true
}

// divisor returns the greatest common divisor of two numbers; one may be 0.
func divisor(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// parseTimes reads a column of n times from the start of b.
func parseTimes(b []byte, n int) (t Times, rest []byte, err error) {
	head, rest, err := cutByte(b)
	if err != nil {
		return t, b, err
	}
	if head&^(uneven|millis) != 0 {
		return t, b, errorOf("form of times", head)
	}
	t.n, t.even, t.scale = n, head&uneven == 0, 1000
	if head&millis != 0 {
		t.scale = 1
	}
	most := uint64(MaxOffset / t.scale)
	if t.first, rest, err = cutOffset(rest, 0, most); err != nil {
		return t, b, err
	}

	switch {
	case t.even && n == 1:
		return t, rest, nil
	case t.even:
		if t.step, rest, err = cutOffset(rest, 1, most); err != nil {
			return t, b, err
		}
		if last := uint64(t.first) + uint64(t.step)*uint64(n-1); last > most {
			return t, b, errorOf("last time", last)
		}
		return t, rest, nil
	case n < 3:
		return t, b, errorOf("number of points that are not at equal distances", n)
	}
	if t.unit, rest, err = cutOffset(rest, 1, most); err != nil {
		return t, b, err
	}
	if t.least, rest, err = cutOffset(rest, 1, most); err != nil {
		return t, b, err
	}
	t.packed, rest, err = parsePacked(rest, n-1)
	return t, rest, err
}

// cutOffset reads a number between two others from the start of b.
func cutOffset(b []byte, least, most uint64) (v int32, rest []byte, err error) {
	u, rest, err := cutUvarint(b)
	if err == nil && (u < least || u > most) {
		err = errorOf("number in times", u)
	}
	return int32(u), rest, err
}

// Even returns the first offset and the distance of points at equal distances, in ms; the distance is
// 0 for one point.
func (t *Times) Even() (first, step int32, ok bool) {
	return t.first * t.scale, t.step * t.scale, t.even
}

// Seconds reports whether all times are whole seconds.
func (t *Times) Seconds() bool { return t.scale == 1000 }

// Unpack writes the offsets to dst, which has an element for each point. more is scratch, which it returns. It
// fails if they leave the hour.
func (t *Times) Unpack(dst []int32, more []uint64) ([]uint64, error) {
	at := t.first * t.scale
	if t.even {
		step := t.step * t.scale
		for i := range dst {
			dst[i] = at
			at += step
		}
		return more, nil
	}

	more = slices.Grow(more[:0], t.n-1)[:t.n-1]
	t.unpack(more)
	dst[0] = at
	unit, now := uint64(t.unit)*uint64(t.scale), uint64(at)
	over := uint64(0)
	for i, m := range more {
		over |= m
		now += (m + uint64(t.least)) * unit
		dst[i+1] = int32(now)
	}
	// Numbers this large would run over.
	if over > MaxOffset || now > MaxOffset {
		return more, errorOf("time", now)
	}
	return more, nil
}
