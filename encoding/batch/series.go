// Package batch holds the Arrow schemas that Downpour's data travels in, and is
// the only place below the gateway that knows Arrow. The same record batch is
// handed over in process and sent over Arrow Flight.
//
// A series batch carries what one part of a scan plan found of some spans (a
// span is a series under one salt), one row per span:
//
//	span      binary           salt, metric, tags: a row key without its time
//	time      list<int64>      bucket starts, ms, ascending: whole buckets of
//	value     list<float64>    a downsampling plan, and their values
//	raw_time  list<int64>      ms, ascending: points as stored, of a plan that
//	raw_bits  list<int64>      does not downsample, or of buckets that may have
//	raw_float list<bool>       points outside the part too
//	notes     list<binary>     annotations of the span's rows, JSON
//
// Times at even distances are only the first two, see even.go.
// raw_bits is an integer, or the bits of a double where raw_float is true. A
// span may stand in several batches of a part; they follow each other in time.
// The buckets of one batch row lie without exception between its raw points
// before and its raw points after them.
package batch

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
)

// Version is the wire version of series and partial batches, in the metadata of
// their schemas. Version 2 has times at even distances as their first two, proofs
// of sums, and packed names.
const Version = "2"

// resultVersion is that of results.
const resultVersion = "1"

const versionKey = "downpour.batch"

// Record is one batch. Who receives a record releases it.
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

func metadata(version string) *arrow.Metadata {
	m := arrow.NewMetadata([]string{versionKey}, []string{version})
	return &m
}

// checkSchema refuses a record of another schema, or of another version: Arrow's
// Equal leaves out the metadata, where that stands.
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

// Series is one span's data: whole buckets and raw points. A reader's slices are
// views into the record.
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
	b *array.RecordBuilder
}

// NewSeriesWriter returns an empty writer.
func NewSeriesWriter(mem Allocator) *SeriesWriter {
	return &SeriesWriter{b: array.NewRecordBuilder(mem, seriesSchema)}
}

// Append copies one span's data into the batch under construction.
func (w *SeriesWriter) Append(s *Series) {
	w.b.Field(colSpan).(*array.BinaryBuilder).Append(s.Span)
	appendList(w.b.Field(colTime), sparse(s.Time), (*array.Int64Builder).AppendValues)
	appendList(w.b.Field(colValue), s.Value, (*array.Float64Builder).AppendValues)
	appendList(w.b.Field(colRawTime), sparse(s.Raw.Time), (*array.Int64Builder).AppendValues)
	appendList(w.b.Field(colRawBits), signed(s.Raw.Bits), (*array.Int64Builder).AppendValues)
	appendList(w.b.Field(colRawFloat), s.Raw.Float, (*array.BooleanBuilder).AppendValues)
	appendList(w.b.Field(colNotes), s.Notes, (*array.BinaryBuilder).AppendValues)
}

// Record returns what was appended since the last call as one record.
func (w *SeriesWriter) Record() Record { return w.b.NewRecord() }

// Release frees what was appended and not yet made a record.
func (w *SeriesWriter) Release() { w.b.Release() }

// SeriesReader reads a series record. It does not own the record.
type SeriesReader struct {
	span     *array.Binary
	time     listOf[int64]
	value    listOf[float64]
	rawTime  listOf[int64]
	rawBits  listOf[int64]
	rawFloat *array.List
	notes    *array.List
	floats   []bool
	// Times of the present row, where they were sent as two.
	times, rawTimes []int64
}

// NewSeriesReader checks a record's schema and returns a reader over it.
func NewSeriesReader(r Record) (*SeriesReader, error) {
	if err := checkSchema(r, seriesSchema); err != nil {
		return nil, err
	}
	return &SeriesReader{
		span:     r.Column(colSpan).(*array.Binary),
		time:     lists(r, colTime, (*array.Int64).Int64Values),
		value:    lists(r, colValue, (*array.Float64).Float64Values),
		rawTime:  lists(r, colRawTime, (*array.Int64).Int64Values),
		rawBits:  lists(r, colRawBits, (*array.Int64).Int64Values),
		rawFloat: r.Column(colRawFloat).(*array.List),
		notes:    r.Column(colNotes).(*array.List),
	}, nil
}

// Len is the number of rows.
func (r *SeriesReader) Len() int { return r.span.Len() }

// At fills s with views of row i; times and s.Raw.Float are valid until the next
// call.
func (r *SeriesReader) At(i int, s *Series) error {
	s.Span, s.Value, s.Raw.Bits = r.span.Value(i), r.value.at(i), unsigned(r.rawBits.at(i))
	s.Time = spread(&r.times, r.time.at(i), len(s.Value))
	s.Raw.Time = spread(&r.rawTimes, r.rawTime.at(i), len(s.Raw.Bits))
	r.floats = appendBools(r.floats[:0], r.rawFloat, i)
	s.Raw.Float, s.Notes = r.floats, appendBinaries(nil, r.notes, i)
	if len(s.Time) != len(s.Value) || len(s.Raw.Time) != len(s.Raw.Bits) || len(s.Raw.Time) != len(s.Raw.Float) {
		return fmt.Errorf("batch: row %d has lists of %d, %d and %d, %d, %d elements, want equal lengths", i,
			len(s.Time), len(s.Value), len(s.Raw.Time), len(s.Raw.Bits), len(s.Raw.Float))
	}
	return nil
}
