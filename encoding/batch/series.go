// Package batch holds the Arrow schemas of the data that gateway and pushdown servers
// exchange, and of answers to clients. The same record batch is passed on inside a
// process and sent over Arrow Flight.
//
// A series batch carries what one part of a scan plan found of some spans, one row
// for each. A span is a series under one salt.
//
//	span      binary           salt, metric, tags: a row key without its time
//	time      list<int64>      starts of whole buckets, ms, ascending,
//	value     list<float64>    and their values, if the plan downsamples
//	raw_time  list<int64>      ms, ascending: points as they are stored, if the
//	raw_bits  list<int64>      plan does not downsample, and those of buckets
//	raw_float list<bool>       that may have points outside the part too
//	notes     list<binary>     annotations of the span's rows, JSON
//
// On its way to another process raw_bits is smaller, see narrow.go.
//
// If times have equal distances, only the first two are sent, see even.go. raw_bits is
// an integer, or the bits of a double if raw_float is true. A span may be in several
// batches of a part, in the order of time. Within a row all buckets are adjacent: raw
// points come before the first and after the last of them, never between.
package batch

import (
	"slices"

	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
)

// Version is the wire version of series and partial batches, in the metadata of their
// schemas. Version 2 added times as their first two, proofs of sums, and packed names;
// version 3 added aligned and narrow batches.
const Version = "3"

// resultVersion is the wire version of results and live rows.
const resultVersion = "1"

const versionKey = "downpour.batch"

// Record is one batch. Its receiver releases it.
type Record = arrow.Record

// Allocator provides the memory of batches.
type Allocator = memory.Allocator

// Columns of the series schema.
const (
	colSpan = iota
	colTime
	colValue
	colRawTime
	colRawBits
	colRawFloat
	colNotes
)

var seriesSchema = arrow.NewSchema([]arrow.Field{
	colSpan:     {Name: "span", Type: arrow.BinaryTypes.Binary},
	colTime:     {Name: "time", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	colValue:    {Name: "value", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float64)},
	colRawTime:  {Name: "raw_time", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	colRawBits:  {Name: "raw_bits", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	colRawFloat: {Name: "raw_float", Type: arrow.ListOfNonNullable(arrow.FixedWidthTypes.Boolean)},
	colNotes:    {Name: "notes", Type: arrow.ListOfNonNullable(arrow.BinaryTypes.Binary)},
}, metadata(Version))

// metadata returns a schema's metadata.
func metadata(version string) *arrow.Metadata {
	m := arrow.NewMetadata([]string{versionKey}, []string{version})
	return &m
}

// checkSchema returns an error for a record of another schema or version. The version is checked
// separately, because Arrow's Equal does not compare metadata.
func checkSchema(r Record, want *arrow.Schema) error {
	if !r.Schema().Equal(want) {
		return fmt.Errorf("batch: record has schema %v, want %v", r.Schema(), want)
	}

	m := r.Schema().Metadata()
	if at := m.FindKey(versionKey); at < 0 || m.Values()[at] != Version {
		return fmt.Errorf("batch: record has metadata %v, want %s %s", m, versionKey, Version)
	}
	return nil
}

// SeriesSchema is the schema of series batches.
func SeriesSchema() *arrow.Schema { return seriesSchema }

// Series is the row of one span: whole buckets and raw points. Slices from a reader
// are views into the record.
type Series struct {
	Span  []byte
	Time  []int64
	Value []float64
	Raw   encoding.Points
	Notes [][]byte
}

// SeriesWriter collects spans and makes records of them. It is for one
// goroutine.
type SeriesWriter struct {
	mem   Allocator
	spans varColumn
	// Ends of lists, and the elements of all lists of a column one after the other.
	time, rawTime, rawBits, value offsets
	times, rawTimes               []int64
	bits                          []int64
	values                        []float64
	rawFloat                      offsets
	floats                        bitColumn
	notes                         offsets
	texts                         varColumn
}

// NewSeriesWriter returns an empty writer.
func NewSeriesWriter(mem Allocator) *SeriesWriter { return &SeriesWriter{mem: mem} }

// Grow makes room for so many buckets and points at once. Without it the columns grow as rows are appended.
func (w *SeriesWriter) Grow(buckets, points int) {
	w.values = slices.Grow(w.values, buckets)
	w.bits = slices.Grow(w.bits, points)
}

// Append copies the row of one span into the batch under construction.
func (w *SeriesWriter) Append(s *Series) {
	w.spans.append(s.Span)
	// sparse keeps the first two of times at equal distances; SeriesReader.At restores the others.
	w.times = append(w.times, sparse(s.Time)...)
	w.values = append(w.values, s.Value...)
	w.rawTimes = append(w.rawTimes, sparse(s.Raw.Time)...)
	w.bits = append(w.bits, signed(s.Raw.Bits)...)
	w.floats.append(s.Raw.Float)
	for _, n := range s.Notes {
		w.texts.append(n)
	}

	w.time.end(len(w.times))
	w.value.end(len(w.values))
	w.rawTime.end(len(w.rawTimes))
	w.rawBits.end(len(w.bits))
	w.rawFloat.end(w.floats.n)
	w.notes.end(w.texts.len())
}

// Record returns what was appended since the last call as one record.
func (w *SeriesWriter) Record() Record {
	c := columns{mem: w.mem}
	r := c.record(seriesSchema, w.spans.len(), []arrow.ArrayData{
		colSpan: c.binary(&w.spans),
		colTime: c.list(seriesSchema, colTime, w.time,
			c.flat(arrow.PrimitiveTypes.Int64, len(w.times), arrow.Int64Traits.CastToBytes(w.times))),
		colValue: c.list(seriesSchema, colValue, w.value,
			c.flat(arrow.PrimitiveTypes.Float64, len(w.values), arrow.Float64Traits.CastToBytes(w.values))),
		colRawTime: c.list(seriesSchema, colRawTime, w.rawTime,
			c.flat(arrow.PrimitiveTypes.Int64, len(w.rawTimes), arrow.Int64Traits.CastToBytes(w.rawTimes))),
		colRawBits: c.list(seriesSchema, colRawBits, w.rawBits,
			c.flat(arrow.PrimitiveTypes.Int64, len(w.bits), arrow.Int64Traits.CastToBytes(w.bits))),
		colRawFloat: c.list(seriesSchema, colRawFloat, w.rawFloat,
			c.flat(arrow.FixedWidthTypes.Boolean, w.floats.n, w.floats.bytes)),
		colNotes: c.list(seriesSchema, colNotes, w.notes, c.binary(&w.texts)),
	})
	w.reset()
	return r
}

// reset empties the columns. Their memory is used again.
func (w *SeriesWriter) reset() {
	w.spans.reset()
	w.texts.reset()
	w.floats.reset()
	w.times, w.rawTimes, w.bits, w.values = w.times[:0], w.rawTimes[:0], w.bits[:0], w.values[:0]
	for _, o := range []*offsets{&w.time, &w.value, &w.rawTime, &w.rawBits, &w.rawFloat, &w.notes} {
		*o = (*o)[:0]
	}
}

// Release frees what was appended since the last record.
func (w *SeriesWriter) Release() { *w = SeriesWriter{mem: w.mem} }

// SeriesReader reads a series record. It does not own the record.
type SeriesReader struct {
	span     *array.Binary
	time     listOf[int64]
	value    listOf[float64]
	rawTime  listOf[int64]
	rawBits  listOf[int64]
	narrow   *array.Binary // in the place of rawBits if the batch is narrow
	rawFloat *array.List
	notes    *array.List
	floats   []bool
	// Memory for the times of the present row, if only two of them were sent, and for its numbers, if they were narrow.
	times, rawTimes []int64
	bits            []uint64
}

// NewSeriesReader checks a record's schema and returns a reader over it. It reads narrow batches, too.
func NewSeriesReader(r Record) (*SeriesReader, error) {
	schema, narrow := seriesSchema, r.Schema().Equal(narrowSchema)
	if narrow {
		schema = narrowSchema
	}
	if err := checkSchema(r, schema); err != nil {
		return nil, err
	}
	reader := &SeriesReader{
		span:     r.Column(colSpan).(*array.Binary),
		time:     lists(r, colTime, (*array.Int64).Int64Values),
		value:    lists(r, colValue, (*array.Float64).Float64Values),
		rawTime:  lists(r, colRawTime, (*array.Int64).Int64Values),
		rawFloat: r.Column(colRawFloat).(*array.List),
		notes:    r.Column(colNotes).(*array.List),
	}
	if narrow {
		reader.narrow = r.Column(colRawBits).(*array.Binary)
	} else {
		reader.rawBits = lists(r, colRawBits, (*array.Int64).Int64Values)
	}
	return reader, nil
}

// Len is the number of rows.
func (r *SeriesReader) Len() int { return r.span.Len() }

// At fills s with row i. s.Time and s.Raw are valid until the next call, the other slices as long as the record. It
// fails for a row whose lists have different lengths.
func (r *SeriesReader) At(i int, s *Series) (err error) {
	s.Span, s.Value = r.span.Value(i), r.value.at(i)
	r.floats = appendBools(r.floats[:0], r.rawFloat, i)
	s.Raw.Float, s.Notes = r.floats, appendBinaries(nil, r.notes, i)
	if r.narrow == nil {
		s.Raw.Bits = unsigned(r.rawBits.at(i))
	} else if s.Raw.Bits, err = widen(&r.bits, r.narrow.Value(i), len(s.Raw.Float)); err != nil {
		return fmt.Errorf("batch: row %d: %w", i, err)
	}
	s.Time = spread(&r.times, r.time.at(i), len(s.Value))
	s.Raw.Time = spread(&r.rawTimes, r.rawTime.at(i), len(s.Raw.Bits))

	if len(s.Time) != len(s.Value) || len(s.Raw.Time) != len(s.Raw.Bits) || len(s.Raw.Time) != len(s.Raw.Float) {
		return fmt.Errorf("batch: row %d has lists of %d, %d and %d, %d, %d elements, want equal lengths", i,
			len(s.Time), len(s.Value), len(s.Raw.Time), len(s.Raw.Bits), len(s.Raw.Float))
	}
	return nil
}
