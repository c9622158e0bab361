// Package pointfile writes points as a Parquet file, one row each, in the columns of an Arrow answer:
//
//	metric     string
//	<tag key>  string             one column for each, sorted; null where the series has no such tag
//	timestamp  timestamp[ms, UTC]
//	value      double             an integer as the nearest double; null where a fill policy says so
//	value_int  int64              the integer itself; null where the value is a float
//	query      int32              if there are several sub-queries
//
// A file is written from its beginning to its end, so it may go to a pipe. Points wait until a row group is full.
// Memory does not grow with their number, except for the footer, which has an entry for each column of each group. The
// footer comes last, and no reader takes a file without it: one that was cut is not complete by mistake.
//
// The library's column writers are used, and not its bridge from Arrow's arrays, which would make the program a third
// larger.
package pointfile

import (
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/gateway/write"
)

const (
	// groupRows is the number of points of a row group. Readers hold a group or more.
	groupRows = 128 << 10
	// groupNames bounds the bytes of names that a group waits with. Only points of very many series reach it first.
	groupNames = 8 << 20
	// groupBytes is about what a group takes in all: names, numbers, and the pages of one column at a time.
	groupBytes = 40 << 20
	// chunkBytes is about what the footer takes for a column of a group.
	chunkBytes = 1 << 10
)

// Writer writes a file. It is for one goroutine, and after an error it is of no use.
type Writer struct {
	out     *sink
	file    *file.Writer
	columns batch.ResultColumns
	column  map[string]int // of a tag key, in those of columns
	groups  int

	// The points of the next group. Runs are what one series has of them.
	points encoding.Points
	runs   []run
	names  int // bytes of the names of runs

	// Scratch.
	texts   []parquet.ByteArray
	numbers []int64
	doubles []float64
	queries []int32
	levels  []int16
}

// Series is what points of one series have in common.
type Series struct {
	Metric string
	Tags   []write.Tag
	// Query is the sub-query that the points are an answer to, in a file that has the column, and NaNIsNull that of its
	// groups: the fill policy is null.
	Query     int
	NaNIsNull bool
}

// run is points of one series that follow each other.
type run struct {
	Series
	rows int
}

// New returns a writer to w of points whose tag keys are among those of columns, sorted.
func New(w io.Writer, columns batch.ResultColumns) *Writer {
	p := &Writer{out: &sink{Writer: w}, columns: columns, column: map[string]int{}}
	for i, k := range columns.TagKeys {
		p.column[k] = i
	}
	p.file = file.NewParquetWriter(p.out, layout(columns), file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithDictionaryFor("timestamp", false),
		parquet.WithEncodingFor("timestamp", parquet.Encodings.DeltaBinaryPacked),
		// Values seldom repeat. They have no smallest and largest one: readers do not agree where NaN stands.
		parquet.WithDictionaryFor("value", false),
		parquet.WithStatsFor("value", false),
		parquet.WithDictionaryFor("value_int", false),
	)))
	return p
}

// layout returns the columns.
func layout(of batch.ResultColumns) *schema.GroupNode {
	text := func(name string, repetition parquet.Repetition) schema.Node {
		return schema.MustPrimitive(schema.NewPrimitiveNodeLogical(name, repetition, schema.StringLogicalType{},
			parquet.Types.ByteArray, 0, -1))
	}
	columns := schema.FieldList{text("metric", parquet.Repetitions.Required)}
	for _, k := range of.TagKeys {
		columns = append(columns, text(batch.TagColumn(k, of.TagKeys), parquet.Repetitions.Optional))
	}
	columns = append(columns,
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("timestamp", parquet.Repetitions.Required,
			schema.NewTimestampLogicalType(true, schema.TimeUnitMillis), parquet.Types.Int64, 0, -1)),
		schema.NewFloat64Node("value", parquet.Repetitions.Optional, -1),
		schema.NewInt64Node("value_int", parquet.Repetitions.Optional, -1))
	if of.Query {
		columns = append(columns, schema.NewInt32Node("query", parquet.Repetitions.Required, -1))
	}
	return schema.MustGroup(schema.NewGroupNode("schema", parquet.Repetitions.Required, columns, -1))
}

// Bytes is about the most memory that the writer has taken and will take for the next group.
func (w *Writer) Bytes() int64 {
	return groupBytes + int64(w.groups+1)*int64(w.file.NumColumns())*chunkBytes
}

// Add adds points of a series. Its tags are kept until they are written; the points are copied.
func (w *Writer) Add(of Series, points encoding.Points) error {
	if points.Len() == 0 {
		return nil
	}
	cost := 64 + len(of.Metric)
	for _, t := range of.Tags {
		if _, ok := w.column[t.K]; !ok {
			return fmt.Errorf("tag key %q is new: it had no points when the export began, "+
				"and the columns of a Parquet file cannot change; run it again", t.K)
		}
		cost += 64 + len(t.K) + len(t.V)
	}

	for from, n := 0, points.Len(); from < n; {
		to := min(n, from+groupRows-w.points.Len())
		w.points.AppendPoints(points.Slice(from, to))
		w.runs = append(w.runs, run{Series: of, rows: to - from})
		w.names += cost
		from = to
		if w.points.Len() == groupRows || w.names >= groupNames {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close writes the last group and the footer.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.file.Close(); err != nil {
		return err
	}
	return w.out.err
}

// flush writes the points that wait as a row group, a column after another.
func (w *Writer) flush() error {
	if w.points.Len() == 0 {
		return nil
	}
	g := w.file.AppendRowGroup()
	w.texts = w.texts[:0]
	for _, r := range w.runs {
		w.texts = appendTimes(w.texts, parquet.ByteArray(r.Metric), r.rows)
	}
	if err := writeColumn(g, w.texts, nil); err != nil {
		return err
	}
	for _, k := range w.columns.TagKeys {
		w.tag(k)
		if err := writeColumn(g, w.texts, w.levels); err != nil {
			return err
		}
	}

	if err := writeColumn(g, w.points.Time, nil); err != nil {
		return err
	}
	w.values()
	if err := writeColumn(g, w.doubles, w.levels); err != nil {
		return err
	}
	w.integers()
	if err := writeColumn(g, w.numbers, w.levels); err != nil {
		return err
	}
	if w.columns.Query {
		w.queries = w.queries[:0]
		for _, r := range w.runs {
			w.queries = appendTimes(w.queries, int32(r.Query), r.rows)
		}
		if err := writeColumn(g, w.queries, nil); err != nil {
			return err
		}
	}
	if err := g.Close(); err != nil {
		return err
	}

	w.groups++
	clear(w.runs) // lets go of the names
	w.runs, w.names = w.runs[:0], 0
	w.points.Reset()
	return w.out.err
}

// The definition levels of a column that may be null.
const (
	absent  = 0
	present = 1
)

// tag makes the texts of a tag's column, and its levels: a null has a level alone.
func (w *Writer) tag(key string) {
	w.texts, w.levels = w.texts[:0], w.levels[:0]
	for _, r := range w.runs {
		level := int16(absent)
		for _, t := range r.Tags {
			if t.K == key {
				level = present
				w.texts = appendTimes(w.texts, parquet.ByteArray(t.V), r.rows)
			}
		}
		w.levels = appendTimes(w.levels, level, r.rows)
	}
}

// values makes the doubles of value and its levels.
func (w *Writer) values() {
	w.doubles, w.levels = w.points.AppendDoubles(w.doubles[:0]), w.levels[:0]
	kept := w.doubles[:0]
	at := 0
	for _, r := range w.runs {
		for _, v := range w.doubles[at : at+r.rows] {
			if r.NaNIsNull && math.IsNaN(v) {
				w.levels = append(w.levels, absent)
				continue
			}
			w.levels = append(w.levels, present)
			kept = append(kept, v) // never beyond the one that was just read
		}
		at += r.rows
	}
	w.doubles = kept
}

// integers makes the numbers of value_int and its levels.
func (w *Writer) integers() {
	w.numbers, w.levels = w.numbers[:0], w.levels[:0]
	for i, isFloat := range w.points.Float {
		if isFloat {
			w.levels = append(w.levels, absent)
			continue
		}
		w.levels = append(w.levels, present)
		w.numbers = append(w.numbers, int64(w.points.Bits[i]))
	}
}

// appendTimes appends a value n times.
func appendTimes[V any](dst []V, v V, n int) []V {
	for range n {
		dst = append(dst, v)
	}
	return dst
}

// writeColumn writes the next column of a group; levels is nil if it has no nulls.
func writeColumn[V any](g file.SerialRowGroupWriter, values []V, levels []int16) error {
	c, err := g.NextColumn()
	if err != nil {
		return err
	}
	_, err = c.(interface {
		WriteBatch(values []V, definition, repetition []int16) (int64, error)
	}).WriteBatch(values, levels, nil)
	return err
}

// sink remembers the first error, and after it takes everything and writes nothing: the library does not pass on the
// error of each of its writes, and panics at some.
type sink struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	if s.err == nil {
		_, s.err = s.Writer.Write(p)
	}
	return len(p), nil
}
