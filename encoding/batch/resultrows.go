package batch

import (
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
)

// resultRows are the rows of a result batch under construction, as columns. Their
// memory is used again for the next batch.
type resultRows struct {
	opts       ResultOptions
	aggregated string // the tag keys aggregated away, the same for all rows: a JSON list

	texts    []nullable[int32] // metric, then tags: indexes into dictionaries
	times    []int64
	values   nullable[float64]
	integers nullable[int64]
	queries  []int32
}

// nullable is a column with nulls.
type nullable[T any] struct {
	values []T
	valid  []byte // one bit for each of maxResultRows rows; nil until the first null
	nulls  int
}

func newResultRows(tags int, opts ResultOptions) *resultRows {
	return &resultRows{opts: opts, texts: make([]nullable[int32], 1+tags)}
}

func (r *resultRows) len() int { return len(r.times) }

// reset empties the columns for the next batch, and keeps their memory.
func (r *resultRows) reset() {
	for i := range r.texts {
		r.texts[i].reset()
	}
	r.times, r.queries = r.times[:0], r.queries[:0]
	r.values.reset()
	r.integers.reset()
}

// reset empties the column. All rows count as valid until appendNulls and nullAt
// clear their bits.
func (c *nullable[T]) reset() {
	c.values, c.nulls = c.values[:0], 0
	memory.Set(c.valid, 0xFF)
}

func (c *nullable[T]) append(v T) { c.values = append(c.values, v) }

// appendMany adds the same value n times.
func (c *nullable[T]) appendMany(v T, n int) { c.values = repeat(c.values, v, n) }

// repeat appends v n times. It copies what it has written so far, twice as much
// each time, which is faster than writing each element.
func repeat[T any](dst []T, v T, n int) []T {
	if n == 0 {
		return dst
	}
	from := len(dst)
	dst = slices.Grow(dst, n)[:from+n]
	added := dst[from:]
	added[0] = v
	for done := 1; done < n; done *= 2 {
		copy(added[done:], added[:done])
	}
	return dst
}

// appendNulls adds n nulls.
func (c *nullable[T]) appendNulls(n int) {
	bitutil.SetBitsTo(c.bits(), int64(len(c.values)), int64(n), false)
	c.values = append(c.values, make([]T, n)...)
	c.nulls += n
}

// nullAt makes row i null, which had a value.
func (c *nullable[T]) nullAt(i int) {
	bitutil.ClearBit(c.bits(), i)
	c.nulls++
}

// bits returns the column of validity bits, which it makes if there is none.
func (c *nullable[T]) bits() []byte {
	if c.valid == nil {
		c.valid = make([]byte, maxResultRows/8)
		memory.Set(c.valid, 0xFF)
	}
	return c.valid
}

// add appends points of a group. indexes are the group's texts as indexes into the
// dictionaries, absent for a tag that it does not have.
func (r *resultRows) add(g *ResultGroup, indexes []int32, p encoding.Points) {
	for i, index := range indexes {
		if index == absent {
			r.texts[i].appendNulls(p.Len())
			continue
		}
		r.texts[i].appendMany(index, p.Len())
	}

	r.times = append(r.times, p.Time...)
	r.addValues(p, g.NaNIsNull)
	if r.opts.Integers {
		r.addIntegers(p)
	}
	if r.opts.Query {
		r.queries = repeat(r.queries, int32(g.Query), p.Len())
	}
}

// addValues appends the column value.
func (r *resultRows) addValues(p encoding.Points, nanIsNull bool) {
	c := &r.values
	from := len(c.values)
	c.values = p.AppendDoubles(c.values)
	if !nanIsNull {
		return
	}

	for i, v := range c.values[from:] {
		if math.IsNaN(v) {
			c.nullAt(from + i)
		}
	}
}

// addIntegers appends the column value_int, null where the value is a float.
func (r *resultRows) addIntegers(p encoding.Points) {
	for i := range p.Len() {
		if _, v := p.At(i); v.Float {
			r.integers.appendNulls(1)
		} else {
			r.integers.append(v.Int())
		}
	}
}

// text returns text column i over its dictionary.
func (r *resultRows) text(i int, d dictionary) arrow.Array {
	c := &r.texts[i]
	indexes := column(arrow.PrimitiveTypes.Int32, arrow.Int32Traits.CastToBytes(c.values), c.valid, c.nulls, r.len())
	return array.NewDictionaryArray(textType, indexes, d.values)
}

// numbers returns the columns after the texts, in the schema's order.
func (r *resultRows) numbers() []arrow.Array {
	cols := []arrow.Array{
		column(arrow.FixedWidthTypes.Timestamp_ms, arrow.Int64Traits.CastToBytes(r.times), nil, 0, r.len()),
		column(arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes(r.values.values), r.values.valid,
			r.values.nulls, r.len()),
	}
	if r.opts.Integers {
		c := &r.integers
		cols = append(cols, column(arrow.PrimitiveTypes.Int64, arrow.Int64Traits.CastToBytes(c.values), c.valid,
			c.nulls, r.len()))
	}
	if r.opts.Query {
		cols = append(cols, column(arrow.PrimitiveTypes.Int32, arrow.Int32Traits.CastToBytes(r.queries), nil, 0,
			r.len()))
	}
	return cols
}

// column returns an array that is a view of bytes of the rows: it must be used
// before the rows are reset.
func column(t arrow.DataType, values, valid []byte, nulls, n int) arrow.Array {
	buffers := []*memory.Buffer{nil, memory.NewBufferBytes(values)}
	// Without a bitmap all rows are valid: the bits of a column without nulls are not read.
	if nulls > 0 {
		buffers[0] = memory.NewBufferBytes(valid[:bitutil.BytesForBits(int64(n))])
	}
	data := array.NewData(t, n, buffers, nil, nulls, 0)
	return array.MakeFromData(data)
}
