package column

import (
	"encoding/binary"
	"math/bits"
)

const (
	// patched is added to a width if some numbers have higher bits.
	patched = 0x80
	// maxWidth is the widest number that one load of eight bytes holds wherever it begins in a
	// byte. Wider ones have 64 bits, and begin with a byte.
	maxWidth = 56
)

// packed are n numbers of width bits each.
type packed struct {
	n, width int
	bits     []byte // the numbers
	patches  []byte // of how many numbers the higher bits follow, these, and what follows them; empty: of none
}

// bestWidth returns the width at which numbers take the fewest bytes, and about these bytes. Sums are computed from
// packed numbers only if none has higher bits elsewhere, so that must save a ninth.
func bestWidth(numbers []uint64) (width, size int) {
	var lengths [65]int
	for _, v := range numbers {
		lengths[bits.Len64(v)]++
	}

	longer, higher := 0, 0 // numbers that do not fit, and their higher bits
	for w := 64; w >= 0; w-- {
		if w < 64 {
			longer += lengths[w+1]
		}
		higher += longer
		if w > maxWidth && w < 64 {
			continue
		}
		n := 1 + (len(numbers)*w+7)/8
		if longer > 0 {
			// A patch has its place, and seven of the higher bits in a byte.
			n = (n + 1 + 2*longer + higher/7) * 9 / 8
		}
		if n < size || longer == 0 {
			width, size = w, n
		}
	}
	return width, size
}

// appendPacked appends numbers, packed at the width that takes the fewest bytes.
func appendPacked(dst []byte, numbers []uint64) []byte {
	width, _ := bestWidth(numbers)
	patches := 0
	for _, v := range numbers {
		if bits.Len64(v) > width {
			patches++
		}
	}

	head := byte(width)
	if patches > 0 {
		head |= patched
	}
	dst = appendBits(append(dst, head), numbers, width)
	if patches == 0 {
		return dst
	}

	dst = binary.AppendUvarint(dst, uint64(patches))
	next := 0
	for i, v := range numbers {
		if bits.Len64(v) > width {
			dst = binary.AppendUvarint(dst, uint64(i-next))
			dst = binary.AppendUvarint(dst, v>>width)
			next = i + 1
		}
	}
	return dst
}

// appendBits appends the width low bits of each number.
func appendBits(dst []byte, numbers []uint64, width int) []byte {
	if width == 64 {
		for _, v := range numbers {
			dst = binary.LittleEndian.AppendUint64(dst, v)
		}
		return dst
	}

	mask := uint64(1)<<width - 1
	word, held := uint64(0), 0 // bits that make no byte yet, fewer than 8 of them
	for _, v := range numbers {
		word |= v & mask << held // 56 bits and 7
		for held += width; held >= 8; held -= 8 {
			dst = append(dst, byte(word))
			word >>= 8
		}
	}
	if held > 0 {
		dst = append(dst, byte(word))
	}
	return dst
}

// parsePacked reads n packed numbers from the start of b, and returns what follows them.
func parsePacked(b []byte, n int) (p packed, rest []byte, err error) {
	if len(b) == 0 {
		return p, b, errCut
	}
	p.n, p.width = n, int(b[0]&^patched)
	if p.width > maxWidth && p.width != 64 {
		return p, b, errorOf("width of packed numbers", b[0])
	}
	size := (n*p.width + 7) / 8
	if size > len(b)-1 {
		return p, b, errCut
	}
	p.bits, rest = b[1:1+size:1+size], b[1+size:]
	if b[0]&patched == 0 {
		return p, rest, nil
	}

	p.patches = rest
	rest, err = p.eachPatch(func(int, uint64) {})
	return p, rest, err
}

// eachPatch calls f for each number that has higher bits, and returns what follows the patches.
func (p *packed) eachPatch(f func(i int, high uint64)) (rest []byte, err error) {
	b := p.patches
	count, b, err := cutUvarint(b)
	if err != nil {
		return b, err
	}
	if p.width == 64 || count > uint64(p.n) {
		return b, errorOf("number of patches", count)
	}
	next := 0
	for range count {
		var gap, high uint64
		if gap, b, err = cutUvarint(b); err != nil {
			return b, err
		}
		if high, b, err = cutUvarint(b); err != nil {
			return b, err
		}
		if gap >= uint64(p.n-next) || high == 0 || bits.Len64(high)+p.width > 64 {
			return b, errorOf("patch", gap)
		}
		f(next+int(gap), high<<p.width)
		next += int(gap) + 1
	}
	return b, nil
}

// unpack writes the numbers to dst, which has p.n elements.
func (p *packed) unpack(dst []uint64) {
	switch w := p.width; {
	case w == 0:
		clear(dst)
	case w == 64:
		for i := range dst {
			dst[i] = binary.LittleEndian.Uint64(p.bits[8*i:])
		}
	case w == 8:
		for i, b := range p.bits[:len(dst)] {
			dst[i] = uint64(b)
		}
	case w < 8:
		p.unpackNarrow(dst)
	default:
		p.unpackWide(dst, 0)
	}
	if len(p.patches) > 0 {
		// parsePacked has read them once.
		_, _ = p.eachPatch(func(i int, high uint64) {
			dst[i] |= high //fault:columns-without-patches TestBlock_roundTrip
		})
	}
}

// unpackNarrow is unpack for numbers of less than eight bits: eight of them have as many bytes as
// one has bits, and are one load.
func (p *packed) unpackNarrow(dst []uint64) {
	w := uint(p.width)
	mask := uint64(1)<<w - 1
	at, b := 0, p.bits
	for ; len(b) >= 8 && at+8 <= len(dst); at, b = at+8, b[w:] {
		x := binary.LittleEndian.Uint64(b)
		to := dst[at : at+8 : at+8]
		to[0] = x & mask
		to[1] = x >> (w & 63) & mask
		to[2] = x >> (2 * w & 63) & mask
		to[3] = x >> (3 * w & 63) & mask
		to[4] = x >> (4 * w & 63) & mask
		to[5] = x >> (5 * w & 63) & mask
		to[6] = x >> (6 * w & 63) & mask
		to[7] = x >> (7 * w & 63) & mask
	}
	p.unpackWide(dst[at:], at)
}

// unpackWide is unpack for numbers of 1 to 56 bits, from number from on.
func (p *packed) unpackWide(dst []uint64, from int) {
	w := uint(p.width)
	mask := uint64(1)<<w - 1
	bit, i := uint(from)*w, 0
	// As long as eight bytes are left.
	for ; i < len(dst) && int(bit>>3)+8 <= len(p.bits); i++ {
		dst[i] = binary.LittleEndian.Uint64(p.bits[bit>>3:]) >> (bit & 7) & mask
		bit += w
	}
	for ; i < len(dst); i++ {
		dst[i] = loadEnd(p.bits, bit) & mask
		bit += w
	}
}

// loadEnd returns the bits from one on, where fewer than eight bytes are left.
func loadEnd(b []byte, bit uint) (x uint64) {
	for i, c := range b[bit>>3:] {
		x |= uint64(c) << (8 * i)
	}
	return x >> (bit & 7)
}

// sum returns the sum of the numbers [from, to), which have no patches.
func (p *packed) sum(from, to int) (sum uint64) {
	w := uint(p.width)
	if w == 0 {
		return 0
	}
	if w > maxSummed {
		return p.sumEach(from, to)
	}

	// A load of eight bytes has at least 57 bits of numbers: an even number of whole ones, since
	// pairs are added.
	each := 57 / w &^ 1
	lanes := lanesOf[w]
	bit, left := uint(from)*w, to-from
	total, loads := uint64(0), 0
	for ; left >= int(each) && int(bit>>3)+8 <= len(p.bits); left -= int(each) {
		x := binary.LittleEndian.Uint64(p.bits[bit>>3:]) >> (bit & 7)
		// Each lane has twice the bits of a number: room for 2^w of them.
		total += x&lanes + x>>(w&63)&lanes
		bit += each * w
		if loads++; loads == 1<<(w-1) { //fault:columns-lanes-run-over TestPacked_sum
			sum += sumLanes(total, w)
			total, loads = 0, 0
		}
	}
	// Fewer numbers than a load has are left, or fewer than eight bytes.
	if rest := uint(left); left > 0 && left < int(each) {
		x := p.load(bit) & (1<<(rest*w) - 1)
		total += x&lanes + x>>(w&63)&lanes
		left = 0
	}
	return sum + sumLanes(total, w) + p.sumEach(to-left, to)
}

// load returns the bits from one on, 57 at least as far as there are so many.
func (p *packed) load(bit uint) uint64 {
	if int(bit>>3)+8 <= len(p.bits) {
		return binary.LittleEndian.Uint64(p.bits[bit>>3:]) >> (bit & 7)
	}
	return loadEnd(p.bits, bit)
}

// maxSummed is the widest number that a load has two pairs of.
const maxSummed = 14

// lanesOf has, for each width, the bits of every second number of those that are added at once.
var lanesOf = func() (lanes [maxSummed + 1]uint64) {
	for w := 1; w <= maxSummed; w++ {
		for i := 0; i < 57/w&^1; i += 2 {
			lanes[w] |= (1<<w - 1) << (i * w)
		}
	}
	return lanes
}()

// sumLanes returns the sum of lanes of twice w bits.
func sumLanes(lanes uint64, w uint) (sum uint64) {
	mask := uint64(1)<<(2*w) - 1
	for ; lanes != 0; lanes >>= 2 * w & 63 {
		sum += lanes & mask
	}
	return sum
}

// sumEach is sum, number by number.
func (p *packed) sumEach(from, to int) (sum uint64) {
	w := uint(p.width)
	mask := uint64(1)<<w - 1
	bit := uint(from) * w
	for i := from; i < to; i, bit = i+1, bit+w {
		sum += p.load(bit) & mask
	}
	return sum
}

// bounds returns the least and the largest of the numbers [from, to), which have no patches; there
// is at least one.
func (p *packed) bounds(from, to int) (least, most uint64) {
	w := uint(p.width)
	mask := uint64(1)<<w - 1
	bit := uint(from) * w
	least = mask
	for i := from; i < to; i, bit = i+1, bit+w {
		v := p.load(bit) & mask
		least, most = min(least, v), max(most, v)
	}
	return least, most
}
