package batch

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// A writer collects its columns in slices of its own, which it keeps from record to
// record, and copies them at once: Arrow's builders look at validity and room of
// every column for every row, which costs more than the data do.

// offsets are the ends of a column's lists, in elements.
type offsets []int32

func (o *offsets) end(n int) { *o = append(*o, int32(n)) }

// varColumn is a column of byte strings.
type varColumn struct {
	ends  offsets
	bytes []byte
}

func (c *varColumn) append(b []byte) {
	c.bytes = append(c.bytes, b...)
	c.ends.end(len(c.bytes))
}

func (c *varColumn) len() int { return len(c.ends) }
func (c *varColumn) reset()   { c.ends, c.bytes = c.ends[:0], c.bytes[:0] }

// bitColumn is a column of booleans, eight a byte, the first the lowest bit.
type bitColumn struct {
	bytes []byte
	n     int
}

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

// columns makes Arrow's columns, without a null, in an allocator's memory.
type columns struct {
	mem   Allocator
	owned []arrow.ArrayData // to be released once a record holds them
}

// buffer copies bytes.
func (c *columns) buffer(from []byte) *memory.Buffer {
	b := memory.NewResizableBuffer(c.mem)
	b.Resize(len(from))
	copy(b.Bytes(), from)
	return b
}

// ends copies ends, with the zero before them that Arrow wants.
func (c *columns) ends(o offsets) *memory.Buffer {
	b := memory.NewResizableBuffer(c.mem)
	b.Resize(arrow.Int32Traits.BytesRequired(len(o) + 1))
	to := arrow.Int32Traits.CastFromBytes(b.Bytes())
	to[0] = 0
	copy(to[1:], o)
	return b
}

// data makes a column of buffers, which it takes over, and of a column of elements.
func (c *columns) data(t arrow.DataType, n int, buffers []*memory.Buffer, elements ...arrow.ArrayData) arrow.ArrayData {
	d := array.NewData(t, n, append([]*memory.Buffer{nil}, buffers...), elements, 0, 0)
	for _, b := range buffers {
		b.Release()
	}
	c.owned = append(c.owned, d)
	return d
}

func (c *columns) flat(t arrow.DataType, n int, values []byte) arrow.ArrayData {
	return c.data(t, n, []*memory.Buffer{c.buffer(values)})
}

func (c *columns) binary(v *varColumn) arrow.ArrayData {
	return c.data(arrow.BinaryTypes.Binary, v.len(), []*memory.Buffer{c.ends(v.ends), c.buffer(v.bytes)})
}

// list makes the list column of a schema's field.
func (c *columns) list(schema *arrow.Schema, field int, o offsets, elements arrow.ArrayData) arrow.ArrayData {
	return c.data(schema.Field(field).Type, len(o), []*memory.Buffer{c.ends(o)}, elements)
}

// record makes the record of n rows and gives up all columns.
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
