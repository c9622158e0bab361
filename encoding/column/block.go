package column

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

const (
	// Mark is the first byte of a block. It begins no entry of an append column.
	Mark = 0xFF
	// MaxPoints is the most points of a block.
	MaxPoints = 1 << 16
	// checksumBytes is the length of the checksum at a block's end.
	checksumBytes = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Points are points of a row, as columns of equal length.
type Points struct {
	Offset []int32  // ms from the row's base time
	Raw    []uint64 // the bytes of the value, as a number
	Flags  []uint8  // type, length and form of the time
}

// Len is the number of points.
func (p *Points) Len() int { return len(p.Offset) }

// Reset empties the columns. Their memory is used again.
func (p *Points) Reset() { p.Offset, p.Raw, p.Flags = p.Offset[:0], p.Raw[:0], p.Flags[:0] }

// Append adds a point. raw has no more bytes than the flags say.
func (p *Points) Append(offset int32, flags uint8, raw uint64) {
	p.Offset, p.Raw, p.Flags = append(p.Offset, offset), append(p.Raw, raw), append(p.Flags, flags)
}

// Slice is a view of the points [i, j).
func (p *Points) Slice(i, j int) Points {
	return Points{Offset: p.Offset[i:j], Raw: p.Raw[i:j], Flags: p.Flags[i:j]}
}

// grow adds n points, which the caller sets, and returns them.
func (p *Points) grow(n int) Points {
	old := len(p.Offset)
	p.Offset = slices.Grow(p.Offset, n)[:old+n]
	p.Raw = slices.Grow(p.Raw, n)[:old+n]
	p.Flags = slices.Grow(p.Flags, n)[:old+n]
	return p.Slice(old, old+n)
}

// Encoder makes blocks. It is used again, and is for one goroutine.
type Encoder struct {
	runs     []run
	integers []int64
	floats   floatColumn
	body     []byte
}

// Append appends a block of 1 to MaxPoints points, whose times ascend within the hour and whose flags are valid.
func (e *Encoder) Append(dst []byte, p Points) []byte {
	e.runs = runsOf(e.runs[:0], p.Flags, p.Raw)
	e.split(p)

	b := binary.AppendUvarint(e.body[:0], uint64(p.Len()))
	b = appendRuns(b, e.runs)
	b = appendTimes(b, p.Offset)
	if len(e.integers) > 0 {
		b = appendIntegers(b, e.integers)
	}
	if len(e.floats.words) > 0 {
		b = e.floats.append(b)
	}
	e.body = b

	from := len(dst)
	dst = binary.AppendUvarint(append(dst, Mark), uint64(len(b)+checksumBytes))
	dst = append(dst, b...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

// split divides the values of points into integers and floats.
func (e *Encoder) split(p Points) {
	e.integers, e.floats.words, e.floats.size = e.integers[:0], e.floats.words[:0], 4
	for _, r := range e.runs {
		if r.float() && r.kind&kindMask != float4 {
			e.floats.size = 8
		}
	}
	for i, f := range p.Flags {
		switch {
		case f&FlagFloat == 0:
			e.integers = append(e.integers, signed(f, p.Raw[i]))
		case e.floats.size == 4:
			e.floats.words = append(e.floats.words, p.Raw[i])
		default:
			e.floats.words = append(e.floats.words, doubleBits(f, p.Raw[i]))
		}
	}
}

// Block is a block, whose columns are views of its bytes.
type Block struct {
	Points   int
	Times    Times
	Integers Integers // Len is 0 without
	Floats   Floats   // Len is 0 without
	runs     []byte
	kinds    kindSet
}

// kindSet has a bit for each kind that has points.
type kindSet uint16

const (
	integerKinds kindSet = 0x001F | 0x001F<<kindMillis
	float4Kinds  kindSet = 1<<float4 | 1<<(float4|kindMillis)
)

// Parse reads a block from the start of b, and returns what follows it. It fails if anything in the block is
// not as it was written.
func Parse(b []byte) (k Block, rest []byte, err error) {
	rest, err = k.Parse(b)
	return k, rest, err
}

// Parse is the function Parse for a block that is used again.
func (k *Block) Parse(b []byte) (rest []byte, err error) {
	*k = Block{}
	if len(b) == 0 || b[0] != Mark {
		return b, errorOf("first byte", b[:min(1, len(b))])
	}
	length, body, err := cutUvarint(b[1:])
	if err != nil {
		return b, err
	}
	if length < checksumBytes || length > uint64(len(body)) {
		return b, errCut
	}
	rest = body[length:]
	covered := b[:len(b)-len(rest)-checksumBytes]
	body = body[:length-checksumBytes]
	want := binary.LittleEndian.Uint32(b[len(covered):])
	if crc32.Checksum(covered, castagnoli) != want { //fault:columns-without-checksum TestFlippedByte
		return b, errorOf("checksum of the block", "another one")
	}
	if err := k.parse(body); err != nil {
		return b, err
	}
	return rest, nil
}

// Peek returns the number of points of the block at the start of b and what follows it, without looking at what
// else is in it, or whether it is damaged.
func Peek(b []byte) (points int, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != Mark {
		return 0, b, false
	}
	length, body, err := cutUvarint(b[1:])
	if err != nil || length > uint64(len(body)) {
		return 0, b, false
	}
	count, _, err := cutUvarint(body)
	return int(min(count, MaxPoints)), body[length:], err == nil
}

// BeginsWithInteger reports whether the first point of the block at the start of b is an integer, without looking at
// what else is in it, or whether it is damaged.
func BeginsWithInteger(b []byte) bool {
	if len(b) == 0 || b[0] != Mark {
		return false
	}
	_, b, err := cutUvarint(b[1:])
	if err != nil {
		return false
	}
	_, b, err = cutUvarint(b)
	return err == nil && len(b) > 0 && b[0]&kindMask < shortFloat
}

// parse reads what is between length and checksum.
func (k *Block) parse(b []byte) error {
	count, b, err := cutUvarint(b)
	if err != nil {
		return err
	}
	if count == 0 || count > MaxPoints {
		return errorOf("number of points", count)
	}
	k.Points = int(count)

	k.runs = b
	integers, floats := 0, 0
	if b, err = eachRun(b, k.Points, func(r run) {
		k.kinds |= 1 << r.kind
		if r.float() {
			floats += r.n
		} else {
			integers += r.n
		}
	}); err != nil {
		return err
	}
	if k.Times, b, err = parseTimes(b, k.Points); err != nil {
		return err
	}
	if integers > 0 {
		if k.Integers, b, err = parseIntegers(b, integers); err != nil {
			return err
		}
	}
	if floats > 0 {
		if k.Floats, b, err = parseFloats(b, floats); err != nil {
			return err
		}
	}
	if k.Floats.size == 4 && k.kinds&^(integerKinds|float4Kinds) != 0 {
		return errorOf("length of floats", k.Floats.size)
	}
	if len(b) > 0 {
		return errorOf("number of bytes behind the columns", len(b))
	}
	return nil
}

// Scratch is memory that blocks are unpacked in. Its zero value is ready.
type Scratch struct{ words, more []uint64 }

// words returns memory for n numbers.
func room(memory *[]uint64, n int) []uint64 {
	*memory = slices.Grow((*memory)[:0], n)[:n]
	return *memory
}

// OnlyIntegers reports whether all points are integers.
func (k *Block) OnlyIntegers() bool { return k.kinds&^integerKinds == 0 }

// OnlyFloats reports whether all points are floats.
func (k *Block) OnlyFloats() bool { return k.kinds&integerKinds == 0 }

// OnlyDoubles reports whether all points are floats, and Floats.Words are the bits of the doubles that they stand for.
func (k *Block) OnlyDoubles() bool {
	return k.OnlyFloats() && k.Floats.size == 8 && k.kinds&float4Kinds == 0
}

// Offsets writes the times to dst, which has an element for each point.
func (k *Block) Offsets(dst []int32, s *Scratch) (err error) {
	s.more, err = k.Times.Unpack(dst, s.more)
	return err
}

// AppendTo appends the points to p.
func (k *Block) AppendTo(p *Points, s *Scratch) error {
	before := p.Len()
	err := k.unpack(p.grow(k.Points), s)
	if err != nil {
		*p = p.Slice(0, before)
	}
	return err
}

// unpack sets points, as many as the block has.
func (k *Block) unpack(to Points, s *Scratch) error {
	if err := k.Offsets(to.Offset, s); err != nil {
		return err
	}
	words := room(&s.words, k.Integers.n+k.Floats.n)
	integers, floats := words[:k.Integers.n], words[k.Integers.n:]
	k.Integers.Unpack(integers)
	k.Floats.Words(floats)

	at := 0
	_, _ = eachRun(k.runs, k.Points, func(r run) { // parse has read them once
		from := &integers
		if r.float() {
			from = &floats
		}
		k.unpackRun(to.Slice(at, at+r.n), r.kind, (*from)[:r.n])
		*from = (*from)[r.n:]
		at += r.n
	})
	if k.Times.Seconds() {
		return nil
	}
	for i, o := range to.Offset {
		if to.Flags[i]&FlagMillis == 0 && o%1000 != 0 {
			return errorOf("time of a point in whole seconds", o)
		}
	}
	return nil
}

// unpackRun sets values and flags of points of one kind.
func (k *Block) unpackRun(to Points, kind uint8, words []uint64) {
	millis := uint8(0)
	if kind&kindMillis != 0 {
		millis = FlagMillis
	}
	for i, w := range words {
		var flags uint8
		switch kind &= kindMask; {
		case kind == shortInteger:
			flags = integerLength(int64(w))
		case kind < shortFloat:
			flags = integerFlags[kind]
		case kind == shortFloat && k.Floats.size == 8:
			flags = FlagFloat | floatLength(w)
		case kind == float8:
			flags = FlagFloat | 7
		default:
			flags = FlagFloat | 3
		}
		switch {
		case flags&FlagFloat != 0 && flags&lengthMask == 3 && k.Floats.size == 8:
			w = floatBits(w)
		case flags&FlagFloat == 0:
			w &= ^uint64(0) >> ((56 - 8*(flags&lengthMask)) & 63)
		}
		to.Raw[i], to.Flags[i] = w, flags|millis
	}
}
