package batch

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"downpour/encoding"
)

// An aligned batch carries finished aggregates of groups whose series have points at the same
// times, one row for each group:
//
//	group      binary       tag values of the plan's GroupBy, see scanplan
//	time       list<int64>  ms, ascending; of equal distances only the first two, see even.go
//	bits       list<int64>  the value at each time. Of a plan with a rate the first has no
//	                        meaning: that rate needs the part before
//	kind       uint8        Aligned bits
//	spans      binary       all members, ascending, packed: see names.go
//	flags      list<uint8>  for each span: Span bits
//	edge_bits  list<int64>  with a rate, for each span with points: its first point if that is
//	                        at the first time, and its last point if that is at the last one;
//	edge_float list<uint8>  1 if it is a double
//	note_span  list<int32>  for each annotation: the index of its span
//	notes      list<binary> annotations, JSON
//
// A part that finds series with points at other times answers with one row without spans
// that has AlignedNot: the plan must be executed per series.

// Bits of an aligned row.
const (
	AlignedFloat = 1 << iota // values are doubles, else integers
	AlignedNot               // the part's series have points at different times
)

// Bits of a span of an aligned row.
const (
	SpanLate            = 1 << iota // it has no points in the first rows of the group
	SpanEarly                       // it has none in the last ones
	SpanAnnotationsOnly             // it has annotations and no points
)

const (
	colAlignedGroup = iota
	colAlignedTime
	colAlignedBits
	colAlignedKind
	colAlignedSpans
	colAlignedFlags
	colAlignedEdgeBits
	colAlignedEdgeFloat
	colAlignedNoteSpan
	colAlignedNotes
)

var alignedSchema = arrow.NewSchema([]arrow.Field{
	colAlignedGroup:     {Name: "aligned_group", Type: arrow.BinaryTypes.Binary},
	colAlignedTime:      {Name: "time", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	colAlignedBits:      {Name: "bits", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	colAlignedKind:      {Name: "kind", Type: arrow.PrimitiveTypes.Uint8},
	colAlignedSpans:     {Name: "spans", Type: arrow.BinaryTypes.Binary},
	colAlignedFlags:     {Name: "flags", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Uint8)},
	colAlignedEdgeBits:  {Name: "edge_bits", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	colAlignedEdgeFloat: {Name: "edge_float", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Uint8)},
	colAlignedNoteSpan:  {Name: "note_span", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)},
	colAlignedNotes:     {Name: "notes", Type: arrow.ListOfNonNullable(arrow.BinaryTypes.Binary)},
}, metadata(Version))

// AlignedSchema is the schema of aligned batches.
func AlignedSchema() *arrow.Schema { return alignedSchema }

// IsAligned reports whether a record is an aligned batch.
func IsAligned(r Record) bool {
	s := r.Schema()
	return s.NumFields() > 0 && s.Field(0).Name == alignedSchema.Field(0).Name
}

// Aligned is the row of one group. Slices from a reader are views into the record; Time,
// Spans and Notes are valid until the reader's next call only.
type Aligned struct {
	Group     []byte
	Time      []int64
	Bits      []uint64
	Kind      uint8
	Spans     [][]byte
	Flags     []uint8
	EdgeBits  []uint64
	EdgeFloat []uint8
	NoteSpan  []int32
	Notes     [][]byte
}

// AddEdge adds an edge of a span, see edge_bits: rates between two parts are computed from these.
func (a *Aligned) AddEdge(v encoding.Value) {
	isFloat := uint8(0)
	if v.Float {
		isFloat = 1
	}
	a.EdgeBits, a.EdgeFloat = append(a.EdgeBits, v.Bits), append(a.EdgeFloat, isFloat)
}

// Edge is edge i.
func (a *Aligned) Edge(i int) encoding.Value {
	return encoding.Value{Float: a.EdgeFloat[i] != 0, Bits: a.EdgeBits[i]}
}

// AlignedWriter collects groups and makes records of them. It is for one goroutine.
type AlignedWriter struct {
	b     *array.RecordBuilder
	names []byte
}

// NewAlignedWriter returns an empty writer.
func NewAlignedWriter(mem Allocator) *AlignedWriter {
	return &AlignedWriter{b: array.NewRecordBuilder(mem, alignedSchema)}
}

// Append copies the row of one group into the batch under construction.
func (w *AlignedWriter) Append(a *Aligned) {
	f := w.b.Field
	f(colAlignedGroup).(*array.BinaryBuilder).Append(a.Group)
	appendList(f(colAlignedTime), sparse(a.Time), (*array.Int64Builder).AppendValues)
	appendList(f(colAlignedBits), signed(a.Bits), (*array.Int64Builder).AppendValues)
	f(colAlignedKind).(*array.Uint8Builder).Append(a.Kind)
	w.names = appendNames(w.names[:0], a.Spans)
	f(colAlignedSpans).(*array.BinaryBuilder).Append(w.names)
	appendList(f(colAlignedFlags), a.Flags, (*array.Uint8Builder).AppendValues)
	appendList(f(colAlignedEdgeBits), signed(a.EdgeBits), (*array.Int64Builder).AppendValues)
	appendList(f(colAlignedEdgeFloat), a.EdgeFloat, (*array.Uint8Builder).AppendValues)
	appendList(f(colAlignedNoteSpan), a.NoteSpan, (*array.Int32Builder).AppendValues)
	appendList(f(colAlignedNotes), a.Notes, (*array.BinaryBuilder).AppendValues)
}

// Record returns what was appended since the last call as one record.
func (w *AlignedWriter) Record() Record { return w.b.NewRecord() }

// Release frees what was appended since the last record.
func (w *AlignedWriter) Release() { w.b.Release() }

// AlignedReader reads an aligned record. It does not own the record.
type AlignedReader struct {
	group, spans         *array.Binary
	time, bits, edgeBits listOf[int64]
	kind                 []uint8
	flags, edgeFloat     listOf[uint8]
	noteSpan             listOf[int32]
	notes                *array.List

	// The lists of the present row that cannot be views; their memory is used again.
	times              []int64
	spanIDs, noteTexts [][]byte
}

// NewAlignedReader checks a record's schema and returns a reader over it.
func NewAlignedReader(r Record) (*AlignedReader, error) {
	if err := checkSchema(r, alignedSchema); err != nil {
		return nil, err
	}
	return &AlignedReader{
		group:     r.Column(colAlignedGroup).(*array.Binary),
		time:      lists(r, colAlignedTime, (*array.Int64).Int64Values),
		bits:      lists(r, colAlignedBits, (*array.Int64).Int64Values),
		kind:      r.Column(colAlignedKind).(*array.Uint8).Uint8Values(),
		spans:     r.Column(colAlignedSpans).(*array.Binary),
		flags:     lists(r, colAlignedFlags, (*array.Uint8).Uint8Values),
		edgeBits:  lists(r, colAlignedEdgeBits, (*array.Int64).Int64Values),
		edgeFloat: lists(r, colAlignedEdgeFloat, (*array.Uint8).Uint8Values),
		noteSpan:  lists(r, colAlignedNoteSpan, (*array.Int32).Int32Values),
		notes:     r.Column(colAlignedNotes).(*array.List),
	}, nil
}

// Len is the number of groups.
func (r *AlignedReader) Len() int { return r.group.Len() }

// At fills a with row i. It fails for a row that no AlignedWriter writes.
func (r *AlignedReader) At(i int, a *Aligned) (err error) {
	if r.spanIDs, err = parseNames(r.spanIDs, r.spans.Value(i)); err != nil {
		return fmt.Errorf("batch: row %d: %w", i, err)
	}
	r.noteTexts = appendBinaries(r.noteTexts[:0], r.notes, i)
	bits := unsigned(r.bits.at(i))
	*a = Aligned{
		Group: r.group.Value(i), Time: spread(&r.times, r.time.at(i), len(bits)), Bits: bits, Kind: r.kind[i],
		Spans: r.spanIDs, Flags: r.flags.at(i), EdgeBits: unsigned(r.edgeBits.at(i)), EdgeFloat: r.edgeFloat.at(i),
		NoteSpan: r.noteSpan.at(i), Notes: r.noteTexts,
	}
	return a.check(i)
}

// check returns an error unless the lists of a row fit each other: the merge uses them as indexes.
func (a *Aligned) check(row int) error {
	edges := 0
	for _, f := range a.Flags {
		edges += Edges(f)
	}

	switch {
	case len(a.Time) != len(a.Bits):
		return fmt.Errorf("batch: row %d has %d times and %d values, want as many", row, len(a.Time), len(a.Bits))
	case len(a.Flags) != len(a.Spans):
		return fmt.Errorf("batch: row %d has %d flags, want %d as spans", row, len(a.Flags), len(a.Spans))
	case len(a.EdgeBits) != len(a.EdgeFloat) || len(a.EdgeBits) != 0 && len(a.EdgeBits) != edges:
		return fmt.Errorf("batch: row %d has %d edges and %d types of edges, want none or %d as flagged", row,
			len(a.EdgeBits), len(a.EdgeFloat), edges)
	case len(a.Notes) != len(a.NoteSpan):
		return fmt.Errorf("batch: row %d has %d annotations of %d spans, want as many", row, len(a.Notes),
			len(a.NoteSpan))
	case !slices.IsSorted(a.NoteSpan):
		return fmt.Errorf("batch: row %d has annotations of spans %v, want them ascending", row, a.NoteSpan)
	}
	for _, s := range a.NoteSpan {
		if s < 0 || int(s) >= len(a.Spans) {
			return fmt.Errorf("batch: row %d has an annotation of span %d, want less than %d", row, s, len(a.Spans))
		}
	}
	for i, t := range a.Time[min(1, len(a.Time)):] {
		if t <= a.Time[i] {
			return fmt.Errorf("batch: row %d has time %d after %d, want ascending times", row, t, a.Time[i])
		}
	}
	return nil
}

// Edges is the number of edges that a row has of a span with the given bits, if its plan has
// a rate.
func Edges(flags uint8) (n int) {
	switch {
	case flags&SpanAnnotationsOnly != 0:
		return 0
	case flags&SpanLate == 0:
		n++
	}
	if flags&SpanEarly == 0 {
		n++
	}
	return n
}
