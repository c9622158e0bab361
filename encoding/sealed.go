package encoding

import (
	"bytes"
	"fmt"

	"downpour/encoding/column"
)

// Sealer makes the compact form of the value of an append column: where times ascend, blocks of
// columns (see package column) stand in the place of entries. Three entries and a block of them:
//
//	00 00 2A | 00 A0 2B | 01 40 2C
//	FF 0D 03 00 00 00 0A 00 54 02 24 …       a block, which takes less only of more points
//
// Entries before and behind a block stay in their place, so that the sealed form says the same
// points in the same order, to the last bit. It is used again, and is for one goroutine.
type Sealer struct {
	Unsealer
	encoder column.Encoder
	all     column.Points // of the value
	block   []byte
	entries []byte
}

// IsSealed reports whether a cell is an append column that begins with a block.
func IsSealed(qualifier, value []byte) bool {
	return len(value) > 0 && value[0] == column.Mark && bytes.Equal(qualifier, AppendColumn)
}

// maxSealedPoints is the most points of one cell that are sealed: 290 a second, for an hour. A cell with more stays as
// it is. Blocks that repeat a value have some bytes for 65,536 points, so that a cell of blocks that nobody has sealed
// could fill any memory.
const maxSealedPoints = 1 << 20

// cutBlock reads the block at the start of value and returns what follows it. sealed counts the points of the blocks of
// the cell, this one included; more than Seal makes of any cell are an error.
func cutBlock(block *column.Block, value []byte, sealed *int) (rest []byte, err error) {
	if rest, err = block.Parse(value); err != nil {
		return value, err
	}
	if *sealed += block.Points; *sealed > maxSealedPoints {
		return value, fmt.Errorf("%w: blocks of one cell have %d points or more, want at most %d", column.ErrDamaged,
			*sealed, maxSealedPoints)
	}
	return rest, nil
}

// SealedPoints returns how many points the blocks at the beginning of a sealed value stand for, as they say
// themselves.
func SealedPoints(value []byte) (points int) {
	for {
		n, rest, ok := column.Peek(value)
		if !ok {
			return points
		}
		points, value = points+n, rest
	}
}

// Unsealer gives the entries back. It is used again, and is for one goroutine.
type Unsealer struct {
	scratch column.Scratch
	block   column.Block
	points  column.Points // of the block
}

// leastSealed is the bytes of entries that a block is not tried for: it would take as many.
const leastSealed = 16

// Seal appends the sealed form of a value, which may be sealed in part, to dst. ok is false, and nothing is
// appended, for a value that cannot be read, or that its sealed form would not give back byte by byte.
func (s *Sealer) Seal(dst, value []byte) (sealed []byte, ok bool) {
	s.all.Reset()
	if err := s.appendPoints(&s.all, value); err != nil || s.all.Len() > maxSealedPoints {
		return dst, false
	}

	from := len(dst)
	for p := s.all; p.Len() > 0; {
		n, most := 1, min(p.Len(), column.MaxPoints)
		for n < most && p.Offset[n] > p.Offset[n-1] {
			n++
		}
		dst = s.appendRun(dst, p.Slice(0, n))
		p = p.Slice(n, p.Len())
	}
	if !s.same(dst[from:], value) {
		return dst[:from], false
	}
	return dst, true
}

// appendRun appends points whose times ascend, as a block or as entries, whichever takes less.
func (s *Sealer) appendRun(dst []byte, p column.Points) []byte {
	s.entries = appendEntries(s.entries[:0], &p)
	if len(s.entries) >= leastSealed {
		if s.block = s.encoder.Append(s.block[:0], p); len(s.block) < len(s.entries) {
			return append(dst, s.block...)
		}
	}
	return append(dst, s.entries...)
}

// same reports whether two values have the same entries.
func (s *Sealer) same(a, b []byte) bool {
	var err error
	if s.entries, err = s.Unseal(s.entries[:0], a); err != nil {
		return false
	}
	if s.block, err = s.Unseal(s.block[:0], b); err != nil {
		return false
	}
	return bytes.Equal(s.entries, s.block)
}

// Unseal appends the entries of the value of an append column, which may be sealed in part. It fails if a block
// is not as it was written; entries it does not look at.
func (u *Unsealer) Unseal(dst, value []byte) ([]byte, error) {
	from, sealed := len(dst), 0
	for len(value) > 0 {
		if value[0] != column.Mark {
			// Where entries cannot be read, nobody knows whether a block follows. None does: a value is sealed as
			// far as it can be read.
			n := entryBytes(value)
			dst, value = append(dst, value[:n]...), value[n:]
			continue
		}
		rest, err := cutBlock(&u.block, value, &sealed)
		if err == nil {
			u.points.Reset()
			err = u.block.AppendTo(&u.points, &u.scratch)
		}
		if err != nil {
			return dst[:from], fmt.Errorf("encoding: append column: %w", err)
		}
		dst, value = appendEntries(dst, &u.points), rest
	}
	return dst, nil
}

// entryBytes returns the length of the entries that a value begins with, up to the first block.
func entryBytes(value []byte) (n int) {
	for n < len(value) && value[n] != column.Mark {
		width := QualifierWidth(value[n])
		if n+width > len(value) {
			return len(value)
		}
		n += width + int(value[n+width-1]&lengthMask) + 1
	}
	return min(n, len(value))
}

// appendEntries appends points as entries.
func appendEntries(dst []byte, p *column.Points) []byte {
	raws, flags := p.Raw[:len(p.Offset)], p.Flags[:len(p.Offset)]
	for i, o := range p.Offset {
		f := uint32(flags[i] & flagMask)
		if flags[i]&column.FlagMillis == 0 {
			q := uint32(o)/1000<<flagBits | f
			dst = append(dst, byte(q>>8), byte(q))
		} else {
			q := uint32(milliFlag)<<24 | uint32(o)<<milliShift | f
			dst = append(dst, byte(q>>24), byte(q>>16), byte(q>>8), byte(q))
		}
		dst = appendRaw(dst, raws[i], int(f&lengthMask)+1)
	}
	return dst
}

// appendPoints appends the points of a value in the order of its entries and blocks.
func (u *Unsealer) appendPoints(p *column.Points, value []byte) error {
	sealed := 0
	for len(value) > 0 {
		if value[0] == column.Mark {
			rest, err := cutBlock(&u.block, value, &sealed)
			if err == nil {
				err = u.block.AppendTo(p, &u.scratch)
			}
			if err != nil {
				return err
			}
			value = rest
			continue
		}

		q, rest, err := ParseQualifier(value)
		if err != nil {
			return err
		}
		if len(rest) < q.Width || !validWidth(q.Width, q.Float) {
			return fmt.Errorf(
				"encoding: append column: value is said to have %d bytes, want %s and at most the %d left",
				q.Width, widthsWanted(q.Float), len(rest))
		}
		flags := valueFlags(q.Float, q.Width)
		if q.Milli {
			flags |= column.FlagMillis
		}
		p.Append(q.OffsetMS, flags, readRaw(rest, q.Width))
		value = rest[q.Width:]
	}
	return nil
}
