package batch

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"downpour/encoding"
)

// A histogram batch carries the histograms that a part found, added up by group and
// time. A group may have any number of rows, and a time any number of histograms among
// them: the reader adds them up.
//
//	group      binary          the group's key: tag values of the plan's GroupBy, see
//	                           scanplan; with per-series aggregation the span
//	spans      binary          members that no earlier row has named, packed: names.go
//	time       list<int64>     ms: of each histogram
//	underflow  list<int64>     the counts of each
//	overflow   list<int64>
//	buckets    list<int32>     the number of buckets of each
//	lower      list<float32>   of all buckets, one histogram after the other
//	upper      list<float32>
//	count      list<int64>
//	note_span  list<binary>    for each annotation: its span
//	notes      list<binary>    annotations, JSON
const (
	colHistGroup = iota
	colHistSpans
	colHistTime
	colUnderflow
	colOverflow
	colBuckets
	colLower
	colUpper
	colCount
	colHistNoteSpan
	colHistNotes
)

var histogramSchema = arrow.NewSchema([]arrow.Field{
	colHistGroup:    {Name: "group", Type: arrow.BinaryTypes.Binary},
	colHistSpans:    {Name: "spans", Type: arrow.BinaryTypes.Binary},
	colHistTime:     {Name: "time", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	colUnderflow:    {Name: "underflow", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	colOverflow:     {Name: "overflow", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	colBuckets:      {Name: "buckets", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)},
	colLower:        {Name: "lower", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float32)},
	colUpper:        {Name: "upper", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float32)},
	colCount:        {Name: "count", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)},
	colHistNoteSpan: {Name: "note_span", Type: arrow.ListOfNonNullable(arrow.BinaryTypes.Binary)},
	colHistNotes:    {Name: "notes", Type: arrow.ListOfNonNullable(arrow.BinaryTypes.Binary)},
}, metadata(Version))

// HistogramSchema is the schema of histogram batches.
func HistogramSchema() *arrow.Schema { return histogramSchema }

// Histograms is a row of a histogram batch. Slices from a reader are views into the
// record; Spans, NoteSpan and Notes are valid until the reader's next call only.
type Histograms struct {
	Group               []byte
	Spans               [][]byte
	Time                []int64
	Underflow, Overflow []int64
	Buckets             []int32
	Lower, Upper        []float32
	Count               []int64
	NoteSpan, Notes     [][]byte
}

// Add adds a histogram at a time to the row.
func (h *Histograms) Add(t int64, of *encoding.Histogram) {
	h.Time = append(h.Time, t)
	h.Underflow, h.Overflow = append(h.Underflow, of.Underflow), append(h.Overflow, of.Overflow)
	h.Buckets = append(h.Buckets, int32(len(of.Buckets)))
	for _, b := range of.Buckets {
		h.Lower, h.Upper, h.Count = append(h.Lower, b.Lower), append(h.Upper, b.Upper), append(h.Count, b.Count)
	}
}

// Reset empties the row.
func (h *Histograms) Reset() {
	*h = Histograms{
		Time:      h.Time[:0],
		Underflow: h.Underflow[:0],
		Overflow:  h.Overflow[:0],
		Buckets:   h.Buckets[:0],
		Lower:     h.Lower[:0],
		Upper:     h.Upper[:0],
		Count:     h.Count[:0],
		Spans:     h.Spans[:0],
		NoteSpan:  h.NoteSpan[:0],
		Notes:     h.Notes[:0],
	}
}

// At calls each with every histogram of the row and its time. The histogram is valid
// until each returns.
func (h *Histograms) At(each func(t int64, of *encoding.Histogram) error) error {
	var one encoding.Histogram
	from := 0
	for i, t := range h.Time {
		one.Underflow, one.Overflow, one.Buckets = h.Underflow[i], h.Overflow[i], one.Buckets[:0]
		for j := from; j < from+int(h.Buckets[i]); j++ {
			one.Buckets = append(one.Buckets,
				encoding.HistogramBucket{Lower: h.Lower[j], Upper: h.Upper[j], Count: h.Count[j]})
		}
		from += int(h.Buckets[i])
		if err := each(t, &one); err != nil {
			return err
		}
	}
	return nil
}

// HistogramWriter collects rows and makes records of them. It is for one goroutine.
type HistogramWriter struct {
	b     *array.RecordBuilder
	names []byte
}

// NewHistogramWriter returns an empty writer.
func NewHistogramWriter(mem Allocator) *HistogramWriter {
	return &HistogramWriter{b: array.NewRecordBuilder(mem, histogramSchema)}
}

// Append copies a row into the batch under construction.
func (w *HistogramWriter) Append(h *Histograms) {
	f := w.b.Field
	f(colHistGroup).(*array.BinaryBuilder).Append(h.Group)
	w.names = appendNames(w.names[:0], h.Spans)
	f(colHistSpans).(*array.BinaryBuilder).Append(w.names)
	appendList(f(colHistTime), h.Time, (*array.Int64Builder).AppendValues)
	appendList(f(colUnderflow), h.Underflow, (*array.Int64Builder).AppendValues)
	appendList(f(colOverflow), h.Overflow, (*array.Int64Builder).AppendValues)
	appendList(f(colBuckets), h.Buckets, (*array.Int32Builder).AppendValues)
	appendList(f(colLower), h.Lower, (*array.Float32Builder).AppendValues)
	appendList(f(colUpper), h.Upper, (*array.Float32Builder).AppendValues)
	appendList(f(colCount), h.Count, (*array.Int64Builder).AppendValues)
	appendList(f(colHistNoteSpan), h.NoteSpan, (*array.BinaryBuilder).AppendValues)
	appendList(f(colHistNotes), h.Notes, (*array.BinaryBuilder).AppendValues)
}

// Record returns what was appended since the last call as one record.
func (w *HistogramWriter) Record() Record { return w.b.NewRecord() }

// Release frees what was appended since the last record.
func (w *HistogramWriter) Release() { w.b.Release() }

// HistogramReader reads a histogram record. It does not own the record.
type HistogramReader struct {
	group, spans              *array.Binary
	time, underflow, overflow listOf[int64]
	buckets                   listOf[int32]
	lower, upper              listOf[float32]
	count                     listOf[int64]
	noteSpan, notes           *array.List

	// The lists of the present row that cannot be views; their memory is used again
	// for the next row.
	spanIDs, noteSpans, noteTexts [][]byte
}

// NewHistogramReader checks a record's schema and returns a reader over it.
func NewHistogramReader(r Record) (*HistogramReader, error) {
	if err := checkSchema(r, histogramSchema); err != nil {
		return nil, err
	}
	return &HistogramReader{
		group:     r.Column(colHistGroup).(*array.Binary),
		spans:     r.Column(colHistSpans).(*array.Binary),
		time:      lists(r, colHistTime, (*array.Int64).Int64Values),
		underflow: lists(r, colUnderflow, (*array.Int64).Int64Values),
		overflow:  lists(r, colOverflow, (*array.Int64).Int64Values),
		buckets:   lists(r, colBuckets, (*array.Int32).Int32Values),
		lower:     lists(r, colLower, (*array.Float32).Float32Values),
		upper:     lists(r, colUpper, (*array.Float32).Float32Values),
		count:     lists(r, colCount, (*array.Int64).Int64Values),
		noteSpan:  r.Column(colHistNoteSpan).(*array.List),
		notes:     r.Column(colHistNotes).(*array.List),
	}, nil
}

// Len is the number of rows.
func (r *HistogramReader) Len() int { return r.group.Len() }

// At fills h with row i. It fails for a row that no HistogramWriter writes.
func (r *HistogramReader) At(i int, h *Histograms) error {
	var err error
	if r.spanIDs, err = parseNames(r.spanIDs, r.spans.Value(i)); err != nil {
		return fmt.Errorf("batch: row %d: %w", i, err)
	}

	r.noteSpans = appendBinaries(r.noteSpans[:0], r.noteSpan, i)
	r.noteTexts = appendBinaries(r.noteTexts[:0], r.notes, i)
	*h = Histograms{
		Group:     r.group.Value(i),
		Spans:     r.spanIDs,
		Time:      r.time.at(i),
		Underflow: r.underflow.at(i),
		Overflow:  r.overflow.at(i),
		Buckets:   r.buckets.at(i),
		Lower:     r.lower.at(i),
		Upper:     r.upper.at(i),
		Count:     r.count.at(i),
		NoteSpan:  r.noteSpans,
		Notes:     r.noteTexts,
	}
	return h.check(i)
}

// check returns an error unless the lists of a row have lengths that fit each other: the merge uses
// them as indexes.
func (h *Histograms) check(row int) error {
	total := 0
	for _, n := range h.Buckets {
		if n < 0 || int(n) > len(h.Count)-total {
			return fmt.Errorf("batch: row %d has a histogram of %d buckets, want 0 to %d", row, n, len(h.Count)-total)
		}
		total += int(n)
	}

	for _, l := range [...]struct {
		name      string
		got, want int
	}{
		{"underflow", len(h.Underflow), len(h.Time)}, {"overflow", len(h.Overflow), len(h.Time)},
		{"buckets", len(h.Buckets), len(h.Time)},
		{"lower", len(h.Lower), total}, {"upper", len(h.Upper), total}, {"count", len(h.Count), total},
		{"note_span", len(h.NoteSpan), len(h.Notes)},
	} {
		if l.got != l.want {
			return fmt.Errorf("batch: row %d has %d elements of %s, want %d", row, l.got, l.name, l.want)
		}
	}
	return nil
}
