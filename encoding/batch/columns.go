package batch

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// A writer collects its columns in its own slices and copies each into Arrow's memory
// in one step. The slices are used again for the next record. Arrow's builders check
// validity and capacity of every column for every row, which costs more than the data
// itself.

// offsets are the ends of a column's lists, in elements.
type offsets []int32

// end ends a list at element n.
func (o *offsets) end(n int) { *o = append(*o, int32(n)) }

// varColumn is a column of byte strings.
type varColumn struct {
	ends  offsets
	bytes []byte
}

// append adds one byte string.
func (c *varColumn) append(b []byte) {
	c.bytes = append(c.bytes, b...)
	c.ends.end(len(c.bytes))
}

func (c *varColumn) len() int { return len(c.ends) }
func (c *varColumn) reset()   { c.ends, c.bytes = c.ends[:0], c.bytes[:0] }

// bitColumn is a column of booleans, eight in a byte, the first in the lowest bit.
type bitColumn struct {
	bytes []byte
	n     int // booleans
}

// append adds booleans.
func (c *bitColumn) append(all []bool) {
	for _, v := range all {
		if c.n%8 == 0 {
			c.bytes = append(c.bytes, 0)
		}
		if v {
			c.bytes[c.n/8] |= 1 << (c.n % 8)
		}
		c.n++
	}
}

func (c *bitColumn) reset() { c.bytes, c.n = c.bytes[:0], 0 }

// columns makes Arrow columns without nulls, in the allocator's memory.
type columns struct {
	mem   Allocator
	owned []arrow.ArrayData // released once a record holds them
}

// buffer returns a copy of bytes.
func (c *columns) buffer(from []byte) *memory.Buffer {
	b := memory.NewResizableBuffer(c.mem)
	b.Resize(len(from))
	copy(b.Bytes(), from)
	return b
}

// ends returns a copy of offsets with a zero before them: Arrow has the start of
// the first list too.
func (c *columns) ends(o offsets) *memory.Buffer {
	b := memory.NewResizableBuffer(c.mem)
	b.Resize(arrow.Int32Traits.BytesRequired(len(o) + 1))
	to := arrow.Int32Traits.CastFromBytes(b.Bytes())
	to[0] = 0
	copy(to[1:], o)
	return b
}

// data makes a column of buffers, whose ownership it takes, and of a column of
// elements, if it is a list. The column belongs to c.
func (c *columns) data(t arrow.DataType, n int, buffers []*memory.Buffer, elements ...arrow.ArrayData) arrow.ArrayData {
	// The first buffer would be the bitmap of nulls: there are none.
	d := array.NewData(t, n, append([]*memory.Buffer{nil}, buffers...), elements, 0, 0)
	for _, b := range buffers {
		b.Release()
	}

	c.owned = append(c.owned, d)
	return d
}

// flat makes a column of n values of fixed width. It copies them.
func (c *columns) flat(t arrow.DataType, n int, values []byte) arrow.ArrayData {
	return c.data(t, n, []*memory.Buffer{c.buffer(values)})
}

// binary makes a column of byte strings.
func (c *columns) binary(v *varColumn) arrow.ArrayData {
	return c.data(arrow.BinaryTypes.Binary, v.len(), []*memory.Buffer{c.ends(v.ends), c.buffer(v.bytes)})
}

// list makes the list column for a field of the schema.
func (c *columns) list(schema *arrow.Schema, field int, o offsets, elements arrow.ArrayData) arrow.ArrayData {
	return c.data(schema.Field(field).Type, len(o), []*memory.Buffer{c.ends(o)}, elements)
}

// record makes a record of n rows and releases all columns of c: the record holds
// them now.
func (c *columns) record(schema *arrow.Schema, n int, all []arrow.ArrayData) Record {
	arrays := make([]arrow.Array, len(all))
	for i, d := range all {
		arrays[i] = array.MakeFromData(d)
	}
	r := array.NewRecord(schema, arrays, int64(n))

	for _, a := range arrays {
		a.Release()
	}
	for _, d := range c.owned {
		d.Release()
	}

	return r
}
