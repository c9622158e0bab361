package column

import (
	"encoding/binary"
	"slices"
)

// Forms of a column of integers.
const (
	fromLeast   = 0 // the least one, and what each has more
	differences = 1 // the first one, and differences of neighbours
)

// Integers are the integers of a block, not unpacked.
type Integers struct {
	n     int
	form  byte
	first int64 // the least one or the first one
	least int64 // of differences
	packed
}

// appendIntegers appends a column of at least one integer, in the form that the package comment prefers.
func appendIntegers(dst []byte, values []int64) []byte {
	least := slices.Min(values)
	more := make([]uint64, len(values)) // what each value has more than the least one
	for i, v := range values {
		more[i] = uint64(v) - uint64(least)
	}
	_, size := bestWidth(more)

	// Differences, and sums of them, wrap around where they overflow.
	from := len(dst)
	if len(values) > 1 {
		steps := make([]uint64, len(values)-1)
		for i := range steps {
			steps[i] = uint64(values[i+1]) - uint64(values[i])
		}
		shortest := int64(steps[0])
		for _, s := range steps {
			shortest = min(shortest, int64(s))
		}
		for i := range steps {
			steps[i] -= uint64(shortest)
		}
		dst = binary.AppendVarint(append(dst, differences), values[0])
		dst = binary.AppendVarint(dst, shortest)
		dst = appendPacked(dst, steps)
		if n := len(dst) - from; 5*n <= 4*size {
			return dst
		}
	}
	dst = binary.AppendVarint(append(dst[:from], fromLeast), least)
	return appendPacked(dst, more)
}

// parseIntegers reads a column of n integers from the start of b.
func parseIntegers(b []byte, n int) (c Integers, rest []byte, err error) {
	c.n = n
	if c.form, rest, err = cutByte(b); err != nil {
		return c, b, err
	}
	if c.form > differences {
		return c, b, errorOf("form of integers", c.form)
	}
	if c.first, rest, err = cutVarint(rest); err != nil {
		return c, b, err
	}
	if c.form == differences {
		if c.least, rest, err = cutVarint(rest); err != nil {
			return c, b, err
		}
		n--
	}
	c.packed, rest, err = parsePacked(rest, n)
	return c, rest, err
}

// Len is the number of integers.
func (c *Integers) Len() int { return c.n }

// Unpack writes the integers to dst, which has Len elements.
func (c *Integers) Unpack(dst []uint64) {
	if c.form == fromLeast {
		c.unpack(dst)
		for i := range dst {
			dst[i] += uint64(c.first)
		}
		return
	}

	v := uint64(c.first)
	dst[0] = v
	c.unpack(dst[1:])
	for i, more := range dst[1:] {
		v += more + uint64(c.least)
		dst[i+1] = v
	}
}

// Sums writes to dst, which has Len+1 elements, the sum of all integers before each one, and of all: that of the
// integers [i, j) is dst[j] - dst[i]. Sums wrap around where they overflow.
func (c *Integers) Sums(dst []uint64) {
	dst[0] = 0
	sum := uint64(0)
	if c.form == fromLeast {
		c.unpack(dst[1:])
		for i, more := range dst[1:] {
			sum += more + uint64(c.first)
			dst[i+1] = sum
		}
		return
	}

	v, least := uint64(c.first), uint64(c.least)
	dst[1], sum = v, v
	steps, at := dst[2:], 0
	if w := uint(c.width); 0 < w && w < 8 && len(c.patches) == 0 {
		// As unpackNarrow does it, in one loop: two take a seventh longer, and one that is not unrolled twice as long.
		mask := uint64(1)<<w - 1
		for b := c.bits; len(b) >= 8 && at+8 <= len(steps); at, b = at+8, b[w:] {
			x := binary.LittleEndian.Uint64(b)
			to := steps[at : at+8 : at+8]
			v += x&mask + least
			sum += v
			to[0] = sum
			v += x>>(w&63)&mask + least
			sum += v
			to[1] = sum
			v += x>>(2*w&63)&mask + least
			sum += v
			to[2] = sum
			v += x>>(3*w&63)&mask + least
			sum += v
			to[3] = sum
			v += x>>(4*w&63)&mask + least
			sum += v
			to[4] = sum
			v += x>>(5*w&63)&mask + least
			sum += v
			to[5] = sum
			v += x>>(6*w&63)&mask + least
			sum += v
			to[6] = sum
			v += x>>(7*w&63)&mask + least
			sum += v
			to[7] = sum
		}
		c.unpackWide(steps[at:], at)
	} else {
		c.unpack(steps)
	}
	for i, more := range steps[at:] {
		v += more + least
		sum += v
		steps[at+i] = sum
	}
}

// Summable reports whether Sum, Bounds and At can be used.
func (c *Integers) Summable() bool { return c.form == fromLeast && len(c.patches) == 0 }

// Sum returns the sum of the integers [from, to).
func (c *Integers) Sum(from, to int) int64 {
	return int64(uint64(to-from)*uint64(c.first) + c.sum(from, to))
}

// Within reports whether all integers are between least and most, as far as can be said without
// unpacking them.
func (c *Integers) Within(least, most int64) bool {
	if len(c.patches) > 0 || c.width > 32 || c.first < least || c.first > most {
		return false
	}
	// What 32 bits hold more than such numbers runs over nowhere.
	largest := int64(uint64(1)<<c.width - 1)
	if c.form == fromLeast {
		return c.first+largest <= most
	}
	// So that what follows does not overflow: MaxPoints of these are no more than 2^57.
	const far = 1 << 40
	if max(c.first, c.least) > far || min(c.first, c.least) < -far {
		return false
	}
	steps := int64(c.n - 1)
	return c.first+min(0, steps*c.least) >= least && c.first+max(0, steps*(c.least+largest)) <= most
}

// Bounds returns the least and the largest of the integers [from, to), one or more.
func (c *Integers) Bounds(from, to int) (least, most int64) {
	l, m := c.bounds(from, to)
	return c.first + int64(l), c.first + int64(m)
}

// At returns an integer of a column that is Summable.
func (c *Integers) At(i int) int64 { return c.first + int64(c.sumEach(i, i+1)) }
