package batch

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// A partial batch carries what one part of whole hours found of some groups: not
// the series' values but partial aggregates, one row for each group:
//
//	group      binary          tag values of the plan's GroupBy, see scanplan
//	real       list<bool>      by bucket of the part: a member has a point in it;
//	                           empty if that is so in all buckets
//	live       list<int32>     by bucket: members that are between their first and
//	                           last point
//	n          list<int32>     by bucket: values counted; empty if equal to live, or
//	                           unused
//	a, b       list<float64>   by bucket: the aggregator's accumulators; empty if
//	                           unused
//	low, high  list<int16>     by bucket: proof of a sum in a: its addends are
//	                           multiples of 2^low and their absolute values sum
//	                           to less than 2^high; empty if nothing is proven,
//	                           or if live is at most 1 and a is the addend
//	spans      binary          all members, ascending, packed: see names.go
//	flags      list<uint8>     for each span: Edge bits
//	edge_time  list<int64>     ms: for each flagged edge, in the order of spans,
//	edge_value list<float64>   first point before last
//	note_span  list<int32>     for each annotation: the index of its span
//	notes      list<binary>    annotations, JSON
//
// An edge is shipped if the neighbouring part needs it to interpolate: a span's first
// point if the plan has rows before the part and the point is not in the part's first
// bucket, and its last point likewise. See package aggregate for the accumulators and
// the proof.

// Edge bits of a span.
const (
	EdgeFirst           = 1 << iota // edge_time and edge_value have its first point
	EdgeLast                        // and its last point
	EdgeAnnotationsOnly             // it has annotations and no points
)

const (
	colGroup = iota
	colReal
	colLive
	colN
	colA
	colB
	colLow
	colHigh
	colSpans
	colFlags
	colEdgeTime
	colEdgeValue
	colNoteSpan
	colPartNotes
)

var partialSchema = arrow.NewSchema([]arrow.Field{
	colGroup:     {Name: "group", Type: arrow.BinaryTypes.Binary},
	colReal:      {Name: "real", Type: arrow.ListOfNonNullable(arrow.FixedWidthTypes.Boolean)},
	colLive:      {Name: "live", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)},
	colN:         {Name: "n", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)},
	colA:         {Name: "a", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float64)},
	colB:         {Name: "b", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float64)},
	colLow:       {Name: "low", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int16)},
	colHigh:      {Name: "high", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int16)},
	colSpans:     {Name: "spans", Type: arrow.BinaryTypes.Binary},
	colFlags:     {Name: "flags", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Uint8)},
	colEdgeTime:  {Name: "edge_time", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	colEdgeValue: {Name: "edge_value", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float64)},
	colNoteSpan:  {Name: "note_span", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)},
	colPartNotes: {Name: "notes", Type: arrow.ListOfNonNullable(arrow.BinaryTypes.Binary)},
}, metadata(Version))

// PartialSchema is the schema of partial batches.
func PartialSchema() *arrow.Schema { return partialSchema }

// IsPartial reports whether a record is a partial batch.
func IsPartial(r Record) bool {
	s := r.Schema()
	return s.NumFields() > 0 && s.Field(0).Name == partialSchema.Field(0).Name
}

// Partial is the row of one group. Slices from a reader are views into the record;
// Real, Spans and Notes are valid until the reader's next call only; the names in Spans
// live on.
type Partial struct {
	Group     []byte
	Real      []bool
	Live, N   []int32
	A, B      []float64
	Low, High []int16
	Spans     [][]byte
	Flags     []uint8
	EdgeTime  []int64
	EdgeValue []float64
	NoteSpan  []int32
	Notes     [][]byte
}

// PartialWriter collects groups and makes records of them. It is for one
// goroutine.
type PartialWriter struct {
	b     *array.RecordBuilder
	names []byte
}

// NewPartialWriter returns an empty writer.
func NewPartialWriter(mem Allocator) *PartialWriter {
	return &PartialWriter{b: array.NewRecordBuilder(mem, partialSchema)}
}

// Append copies the row of one group into the batch under construction.
func (w *PartialWriter) Append(p *Partial) {
	f := w.b.Field
	f(colGroup).(*array.BinaryBuilder).Append(p.Group)
	appendList(f(colReal), p.Real, (*array.BooleanBuilder).AppendValues)
	appendList(f(colLive), p.Live, (*array.Int32Builder).AppendValues)
	appendList(f(colN), p.N, (*array.Int32Builder).AppendValues)
	appendList(f(colA), p.A, (*array.Float64Builder).AppendValues)
	appendList(f(colB), p.B, (*array.Float64Builder).AppendValues)
	appendList(f(colLow), p.Low, (*array.Int16Builder).AppendValues)
	appendList(f(colHigh), p.High, (*array.Int16Builder).AppendValues)
	w.names = appendNames(w.names[:0], p.Spans)
	f(colSpans).(*array.BinaryBuilder).Append(w.names)
	appendList(f(colFlags), p.Flags, (*array.Uint8Builder).AppendValues)
	appendList(f(colEdgeTime), p.EdgeTime, (*array.Int64Builder).AppendValues)
	appendList(f(colEdgeValue), p.EdgeValue, (*array.Float64Builder).AppendValues)
	appendList(f(colNoteSpan), p.NoteSpan, (*array.Int32Builder).AppendValues)
	appendList(f(colPartNotes), p.Notes, (*array.BinaryBuilder).AppendValues)
}

// Record returns what was appended since the last call as one record.
func (w *PartialWriter) Record() Record { return w.b.NewRecord() }

// Release frees what was appended since the last record.
func (w *PartialWriter) Release() { w.b.Release() }

// PartialReader reads a partial record. It does not own the record.
type PartialReader struct {
	group, spans      *array.Binary
	real, notes       *array.List
	live, n, noteSpan listOf[int32]
	a, b, edgeValue   listOf[float64]
	low, high         listOf[int16]
	edgeTime          listOf[int64]
	flags             listOf[uint8]

	// The lists of the present row that cannot be views; their memory is used
	// again for the next row.
	reals              []bool
	spanIDs, noteTexts [][]byte
}

// NewPartialReader checks a record's schema and returns a reader over it.
func NewPartialReader(r Record) (*PartialReader, error) {
	if err := checkSchema(r, partialSchema); err != nil {
		return nil, err
	}
	return &PartialReader{
		group:     r.Column(colGroup).(*array.Binary),
		real:      r.Column(colReal).(*array.List),
		live:      lists(r, colLive, (*array.Int32).Int32Values),
		n:         lists(r, colN, (*array.Int32).Int32Values),
		a:         lists(r, colA, (*array.Float64).Float64Values),
		b:         lists(r, colB, (*array.Float64).Float64Values),
		low:       lists(r, colLow, (*array.Int16).Int16Values),
		high:      lists(r, colHigh, (*array.Int16).Int16Values),
		spans:     r.Column(colSpans).(*array.Binary),
		flags:     lists(r, colFlags, (*array.Uint8).Uint8Values),
		edgeTime:  lists(r, colEdgeTime, (*array.Int64).Int64Values),
		edgeValue: lists(r, colEdgeValue, (*array.Float64).Float64Values),
		noteSpan:  lists(r, colNoteSpan, (*array.Int32).Int32Values),
		notes:     r.Column(colPartNotes).(*array.List),
	}, nil
}

// Len is the number of groups.
func (r *PartialReader) Len() int { return r.group.Len() }

// At fills p with row i. It fails for a row that no PartialWriter writes.
func (r *PartialReader) At(i int, p *Partial) error {
	r.reals = appendBools(r.reals[:0], r.real, i)

	var err error
	if r.spanIDs, err = parseNames(r.spanIDs, r.spans.Value(i)); err != nil {
		return fmt.Errorf("batch: row %d: %w", i, err)
	}

	r.noteTexts = appendBinaries(r.noteTexts[:0], r.notes, i)
	*p = Partial{
		Group: r.group.Value(i), Real: r.reals, Live: r.live.at(i), N: r.n.at(i), A: r.a.at(i), B: r.b.at(i),
		Low: r.low.at(i), High: r.high.at(i),
		Spans: r.spanIDs, Flags: r.flags.at(i), EdgeTime: r.edgeTime.at(i), EdgeValue: r.edgeValue.at(i),
		NoteSpan: r.noteSpan.at(i), Notes: r.noteTexts,
	}
	return p.check(i)
}

// check returns an error unless the lists of a row have lengths that fit each other and
// annotations name spans that exist: the merge uses them as indexes.
func (p *Partial) check(row int) error {
	for _, l := range [...]struct {
		name string
		n    int
	}{{"real", len(p.Real)}, {"n", len(p.N)}, {"a", len(p.A)}, {"b", len(p.B)}, {"low", len(p.Low)},
		{"high", len(p.High)}} {
		// A column that is not used, or follows from the others, is not sent.
		if l.n != 0 && l.n != len(p.Live) {
			return fmt.Errorf("batch: row %d has %d elements of %s, want none or %d as of live", row, l.n, l.name,
				len(p.Live))
		}
	}

	edges := 0 // EdgeFirst is bit 0, EdgeLast bit 1
	for _, f := range p.Flags {
		edges += int(f&EdgeFirst) + int(f&EdgeLast)>>1
	}

	switch {
	case len(p.Low) != len(p.High):
		return fmt.Errorf("batch: row %d has %d elements of low and %d of high, want as many", row, len(p.Low),
			len(p.High))
	case len(p.Flags) != len(p.Spans):
		return fmt.Errorf("batch: row %d has %d flags, want %d as spans", row, len(p.Flags), len(p.Spans))
	case len(p.EdgeTime) != edges || len(p.EdgeValue) != edges:
		return fmt.Errorf("batch: row %d has %d edge times and %d edge values, want %d as flagged", row,
			len(p.EdgeTime), len(p.EdgeValue), edges)
	case len(p.Notes) != len(p.NoteSpan):
		return fmt.Errorf("batch: row %d has %d annotations of %d spans, want as many", row, len(p.Notes),
			len(p.NoteSpan))
	}

	// A reader of the row walks spans and annotations side by side, and would miss
	// an annotation of a span that it has passed.
	if !slices.IsSorted(p.NoteSpan) {
		return fmt.Errorf("batch: row %d has annotations of spans %v, want them ascending", row, p.NoteSpan)
	}
	for _, s := range p.NoteSpan {
		if s < 0 || int(s) >= len(p.Spans) {
			return fmt.Errorf("batch: row %d has an annotation of span %d, want less than %d", row, s, len(p.Spans))
		}
	}

	return nil
}
