package encoding

import (
	"math"
	"slices"

	"downpour/encoding/column"
)

// addBlock adds the points of the block at the start of value, and returns how many these are and what follows it.
// sealed counts the points of the cell's blocks.
func (d *RowDecoder) addBlock(value []byte, sealed *int) (points int, rest []byte, err error) {
	block := &d.block
	if rest, err = cutBlock(block, value, sealed); err != nil {
		return 0, value, err
	}
	p := column.Points{Offset: d.offset, Raw: d.raw, Flags: d.flags}
	if err := block.AppendTo(&p, &d.blocks); err != nil {
		return 0, value, err
	}
	d.offset, d.raw, d.flags = p.Offset, p.Raw, p.Flags //fault:sealed-types-lost TestSealer_sameEntries
	return block.Points, rest, nil
}

// onlyBlock reads an append column that is one block and nothing else, into d.block.
func (d *RowDecoder) onlyBlock(value []byte) bool {
	if len(value) == 0 || value[0] != column.Mark {
		return false
	}
	// A block that cannot be read is for Add, which says why.
	rest, err := d.block.Parse(value)
	return err == nil && len(rest) == 0
}

// blockOffsets are the offsets of a block's points.
func (d *RowDecoder) blockOffsets(block *column.Block) (offsets []int32, ok bool) {
	// The caller reads the row's annotations and skipped cells: it has none.
	d.Reset(0)
	d.offset = slices.Grow(d.offset, block.Points)
	offsets = d.offset[:block.Points]
	return offsets, block.Offsets(offsets, &d.blocks) == nil
}

// onlySealed is OnlyCell for an append column that is the block that onlyBlock has read.
func (d *RowDecoder) onlySealed(dst []float64) (offsets []int32, values []float64, ok bool) {
	block := &d.block
	if !block.OnlyIntegers() && !block.OnlyFloats() {
		return nil, dst, false
	}
	if offsets, ok = d.blockOffsets(block); !ok {
		return nil, dst, false
	}
	values = slices.Grow(dst[:0], block.Points)[:block.Points]
	words := d.wordsOf(block)
	switch {
	case block.OnlyIntegers():
		for i, w := range words {
			values[i] = float64(int64(w))
		}
	case block.OnlyDoubles():
		for i, w := range words {
			values[i] = math.Float64frombits(w)
		}
	case block.Floats.Size() == 4:
		for i, w := range words {
			values[i] = float64(math.Float32frombits(uint32(w)))
		}
	default:
		return nil, dst, false
	}
	return offsets, values, true
}

// onlySealedBits is OnlyBits for an append column that is the block that onlyBlock has read.
func (d *RowDecoder) onlySealedBits(dst []uint64) (offsets []int32, bits []uint64, isFloat, ok bool) {
	block := &d.block
	integers, four := block.OnlyIntegers(), block.OnlyFloats() && block.Floats.Size() == 4
	if !integers && !four && !block.OnlyDoubles() {
		return nil, dst, false, false
	}
	if offsets, ok = d.blockOffsets(block); !ok {
		return nil, dst, false, false
	}
	bits = slices.Grow(dst[:0], block.Points)[:block.Points]
	if integers {
		block.Integers.Unpack(bits)
		return offsets, bits, false, true
	}
	block.Floats.Words(bits)
	if four {
		for i, w := range bits {
			bits[i] = math.Float64bits(float64(math.Float32frombits(uint32(w))))
		}
	}
	return offsets, bits, true, true
}

// wordsOf returns the values of a block that has integers or floats alone, until the next block.
func (d *RowDecoder) wordsOf(block *column.Block) []uint64 {
	d.words = slices.Grow(d.words[:0], block.Points)[:block.Points]
	if block.OnlyIntegers() {
		block.Integers.Unpack(d.words)
	} else {
		block.Floats.Words(d.words)
	}
	return d.words
}

// evenlySpacedSealed is OnlyEvenlySpaced for a row whose append column is a sealed block, which onlyBlock
// has read.
func (d *RowDecoder) evenlySpacedSealed() (e EvenlySpaced, ok bool) {
	block := &d.block
	first, step, even := block.Times.Even()
	if !even || block.Points < 2 || !block.OnlyIntegers() {
		return e, false
	}
	d.Reset(0)
	e = EvenlySpaced{First: first, Step: step, Points: block.Points}
	within := block.Integers.Within(math.MinInt32, math.MaxInt32)
	if within && block.Integers.Summable() {
		e.sealed = &block.Integers
		return e, true
	}

	d.words = slices.Grow(d.words[:0], block.Points+1)[:block.Points+1]
	e.sums = d.words
	block.Integers.Sums(e.sums)
	for i := 0; i < block.Points && !within; i++ {
		// As with entries: sums of such integers are exact in doubles.
		if v := e.At(i); v != int64(int32(v)) {
			return EvenlySpaced{}, false
		}
	}
	return e, true
}
