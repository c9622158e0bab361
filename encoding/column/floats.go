package column

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Parts of the byte that a column of floats begins with.
const (
	plain    = 0
	xor      = 1
	decimal  = 2
	formMask = 3
	words4   = 8
)

// maxExponent is the largest power of ten that a double holds exactly, so that a quotient by it is
// rounded once.
const maxExponent = 22

var powersOfTen = [maxExponent + 1]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// maxDecimal bounds the integers of decimals: doubles hold them exactly.
const maxDecimal = 1 << 53

// Floats are the floats of a block, not decoded.
type Floats struct {
	n, size int // of them; bytes of a word
	form    byte
	words   []byte // plain
	// XOR: the first word, and low bits that are 0.
	first uint64
	zeros uint
	packed
	// Decimals:
	exponent   byte
	integers   Integers
	exceptions []byte // and what follows them
}

// floatColumn is a column of floats on its way to bytes.
type floatColumn struct {
	words []uint64
	size  int // bytes of a word
}

// value is the number of a word.
func (c *floatColumn) value(i int) float64 {
	if c.size == 4 {
		return float64(math.Float32frombits(uint32(c.words[i])))
	}
	return math.Float64frombits(c.words[i])
}

// word is the word of a number.
func word(v float64, size int) uint64 {
	if size == 4 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

// append appends the column in the form that takes the fewest bytes.
func (c *floatColumn) append(dst []byte) []byte {
	head := byte(0)
	if c.size == 4 {
		head = words4
	}
	best := c.appendXOR([]byte{head | xor})
	if other := c.appendDecimals([]byte{head | decimal}); other != nil && len(other) < len(best) {
		best = other
	}
	if len(best) <= len(c.words)*c.size {
		return append(dst, best...)
	}

	dst = append(dst, head|plain)
	for _, w := range c.words {
		dst = appendWord(dst, w, c.size)
	}
	return dst
}

func appendWord(dst []byte, w uint64, size int) []byte {
	if size == 4 {
		return binary.LittleEndian.AppendUint32(dst, uint32(w))
	}
	return binary.LittleEndian.AppendUint64(dst, w)
}

// appendXOR appends the rest of the form XOR.
func (c *floatColumn) appendXOR(dst []byte) []byte {
	more := make([]uint64, len(c.words)-1)
	all := uint64(0)
	for i := range more {
		more[i] = c.words[i] ^ c.words[i+1]
		all |= more[i]
	}
	zeros := bits.TrailingZeros64(all) & 63 // all equal: 0
	for i := range more {
		more[i] >>= zeros
	}
	dst = append(appendWord(dst, c.words[0], c.size), byte(zeros))
	return appendPacked(dst, more)
}

// Bounds of the search for an exponent.
const (
	mostTried     = 17 // a double has no more digits
	exceptionPart = 16 // of so many points one may be an exception without a smaller exponent being tried
)

// exponentOf returns the least exponent at which a number is a decimal; ok is false if there is none.
func (c *floatColumn) exponentOf(i int) (e int, ok bool) {
	v := c.value(i)
	if !(math.Abs(v) < maxDecimal) { // nor a NaN
		return 0, false
	}
	for ; e <= mostTried; e++ {
		if _, ok := c.decimalOf(i, e); ok {
			return e, true
		}
		if math.Abs(v)*powersOfTen[e] > maxDecimal {
			break
		}
	}
	return 0, false
}

// decimalOf returns the integer that is a number at an exponent.
func (c *floatColumn) decimalOf(i, e int) (n int64, ok bool) {
	x := math.RoundToEven(c.value(i) * powersOfTen[e])
	if !(math.Abs(x) <= maxDecimal) {
		return 0, false
	}
	return int64(x), word(x/powersOfTen[e], c.size) == c.words[i] &&
		!(x == 0 && c.words[i] != 0) //fault:columns-lose-negative-zero TestBlock_roundTrip
}

// appendDecimals appends the rest of the form of decimals. It returns nil if too few are decimals.
func (c *floatColumn) appendDecimals(dst []byte) []byte {
	var counts [mostTried + 1]int
	for i := range c.words {
		if e, ok := c.exponentOf(i); ok {
			counts[e]++
		} else if i < exceptionPart && i+1 == exceptionPart && sum(counts[:]) == 0 {
			return nil // none of the first ones is a decimal: most of such a column are none
		}
	}
	// The least exponent that leaves few out.
	e, found := 0, counts[0]
	all := sum(counts[:])
	for found < all-all/exceptionPart {
		e++
		found += counts[e]
	}
	if 4*all < 3*len(c.words) {
		return nil
	}

	values, exceptions := make([]int64, len(c.words)), []int(nil)
	for i := range values {
		n, ok := c.decimalOf(i, e)
		if !ok {
			exceptions = append(exceptions, i)
		}
		// The place of an exception has the number of a neighbour, which costs nothing.
		if !ok && i > 0 {
			n = values[i-1]
		}
		values[i] = n
		if ok && i == len(exceptions) {
			for k := range exceptions { // all before it
				values[k] = n
			}
		}
	}

	dst = appendIntegers(append(dst, byte(e)), values)
	dst = binary.AppendUvarint(dst, uint64(len(exceptions)))
	next := 0
	for _, i := range exceptions {
		dst = binary.AppendUvarint(dst, uint64(i-next))
		dst = appendWord(dst, c.words[i], c.size)
		next = i + 1
	}
	return dst
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// parseFloats reads a column of n floats from the start of b.
func parseFloats(b []byte, n int) (c Floats, rest []byte, err error) {
	head, rest, err := cutByte(b)
	if err != nil {
		return c, b, err
	}
	c.n, c.form, c.size = n, head&formMask, 8
	if head&words4 != 0 {
		c.size = 4
	}
	if head&^(formMask|words4) != 0 || c.form > decimal {
		return c, b, errorOf("form of floats", head)
	}

	switch c.form {
	case plain:
		c.words, rest, err = cutBytes(rest, n*c.size)
	case xor:
		rest, err = c.parseXOR(rest)
	default:
		rest, err = c.parseDecimals(rest)
	}
	return c, rest, err
}

// cutBytes reads n bytes from the start of b.
func cutBytes(b []byte, n int) (v, rest []byte, err error) {
	if n > len(b) {
		return nil, b, errCut
	}
	return b[:n:n], b[n:], nil
}

func (c *Floats) parseXOR(b []byte) (rest []byte, err error) {
	first, rest, err := cutBytes(b, c.size)
	if err != nil {
		return b, err
	}
	c.first = wordAt(first, 0, c.size)
	zeros, rest, err := cutByte(rest)
	if err != nil {
		return b, err
	}
	if zeros > 63 {
		return b, errorOf("number of low bits", zeros)
	}
	c.zeros = uint(zeros)
	c.packed, rest, err = parsePacked(rest, c.n-1)
	return rest, err
}

func (c *Floats) parseDecimals(b []byte) (rest []byte, err error) {
	if c.exponent, rest, err = cutByte(b); err != nil {
		return b, err
	}
	if c.exponent > maxExponent {
		return b, errorOf("exponent", c.exponent)
	}
	if c.integers, rest, err = parseIntegers(rest, c.n); err != nil {
		return b, err
	}
	c.exceptions = rest
	return c.eachException(func(int, uint64) {})
}

// eachException calls f for each exception, and returns what follows them.
func (c *Floats) eachException(f func(i int, word uint64)) (rest []byte, err error) {
	count, b, err := cutUvarint(c.exceptions)
	if err != nil {
		return b, err
	}
	if count > uint64(c.n) {
		return b, errorOf("number of exceptions", count)
	}
	next := 0
	for range count {
		var gap uint64
		var w []byte
		if gap, b, err = cutUvarint(b); err != nil {
			return b, err
		}
		if gap >= uint64(c.n-next) {
			return b, errorOf("exception", gap)
		}
		if w, b, err = cutBytes(b, c.size); err != nil {
			return b, err
		}
		f(next+int(gap), wordAt(w, 0, c.size))
		next += int(gap) + 1
	}
	return b, nil
}

func wordAt(b []byte, i, size int) uint64 {
	if size == 4 {
		return uint64(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return binary.LittleEndian.Uint64(b[8*i:])
}

// Words writes the floats to dst, which has an element for each: the bits of doubles, or of floats of four
// bytes if Size is 4.
func (c *Floats) Words(dst []uint64) {
	switch c.form {
	case plain:
		for i := range dst {
			dst[i] = wordAt(c.words, i, c.size)
		}
	case xor:
		c.unpack(dst[1:])
		w := c.first
		dst[0] = w
		for i, more := range dst[1:] {
			w ^= more << (c.zeros & 63)
			dst[i+1] = w
		}
	default:
		c.integers.Unpack(dst)
		by, size := powersOfTen[c.exponent], c.size
		if size == 4 {
			for i, n := range dst {
				dst[i] = word(float64(int64(n))/by, 4)
			}
		} else {
			for i, n := range dst {
				dst[i] = math.Float64bits(float64(int64(n)) / by)
			}
		}
		// parseDecimals has read them once.
		_, _ = c.eachException(func(i int, w uint64) { dst[i] = w })
	}
}

// Size is the bytes of a word.
func (c *Floats) Size() int { return c.size }

// Len is the number of floats.
func (c *Floats) Len() int { return c.n }
