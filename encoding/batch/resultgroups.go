package batch

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"downpour/encoding"
)

// ResultColumns are the columns in which answers differ.
type ResultColumns struct {
	TagKeys []string
	Query   bool // there is a column query
}

// ResultReader reads a stream of a ResultWriter back as groups. It is for one goroutine.
type ResultReader struct {
	// Columns are those of the stream. A tag key is called as its column: see TagColumn.
	Columns ResultColumns
	in      *records
	texts   []int // the places of the columns metric and of the tags

	// Scratch.
	columns resultColumns
	group   ResultGroup
}

// resultColumns are the columns of a batch.
type resultColumns struct {
	texts    []*array.Dictionary
	times    *array.Timestamp
	values   *array.Float64
	integers *array.Int64 // nil if the stream has none
	queries  *array.Int32 // nil if there is one sub-query
}

// NewResultReader reads the beginning of a stream. Each has to be called then.
func NewResultReader(r io.Reader) (*ResultReader, error) {
	in, err := newRecords(r)
	if err != nil {
		return nil, err
	}
	out := &ResultReader{in: in}
	for i, f := range in.Schema().Fields() {
		switch {
		case f.Name == "query":
			out.Columns.Query = true
		case arrow.TypeEqual(f.Type, textType):
			out.texts = append(out.texts, i)
			if f.Name != "metric" {
				out.Columns.TagKeys = append(out.Columns.TagKeys, f.Name)
			}
		}
	}
	return out, nil
}

// Each calls f with the rows of each group, or of a piece of it where a batch ends, to the end of the stream. The group
// is valid until f returns, and its texts after that, too. NaNIsNull is set if the piece has a null; aggregated tags
// are not read. Without integers in the stream every value is a float. Each returns ErrCut, an error of f, or one of
// the stream.
func (r *ResultReader) Each(f func(*ResultGroup) error) error {
	return r.in.readAll(func(rec arrow.Record) error {
		if err := r.look(rec); err != nil {
			return err
		}
		for from, n := 0, int(rec.NumRows()); from < n; {
			to := from + 1
			for to < n && r.columns.alike(from, to) {
				to++
			}
			r.describe(from)
			r.points(from, to)
			if err := f(&r.group); err != nil {
				return err
			}
			from = to
		}
		return nil
	})
}

// look finds the columns of a batch.
func (r *ResultReader) look(rec arrow.Record) error {
	c := resultColumns{texts: r.columns.texts[:0]}
	for i, f := range rec.Schema().Fields() {
		switch column := rec.Column(i).(type) {
		case *array.Dictionary:
			if slices.Contains(r.texts, i) {
				c.texts = append(c.texts, column)
			}
		case *array.Timestamp:
			c.times = column
		case *array.Float64:
			c.values = column
		case *array.Int64:
			c.integers = column
		case *array.Int32:
			if f.Name == "query" {
				c.queries = column
			}
		}
	}
	if c.times == nil || c.values == nil || len(c.texts) != 1+len(r.Columns.TagKeys) ||
		r.Columns.Query != (c.queries != nil) {
		return fmt.Errorf("batch: cannot read results: got the columns %v, want metric, timestamp and value",
			rec.Schema().Fields())
	}
	r.columns = c
	return nil
}

// alike reports whether two rows are of one group.
func (c *resultColumns) alike(i, j int) bool {
	if c.queries != nil && c.queries.Value(i) != c.queries.Value(j) {
		return false
	}
	for _, t := range c.texts {
		if t.IsNull(i) != t.IsNull(j) || !t.IsNull(i) && t.GetValueIndex(i) != t.GetValueIndex(j) {
			return false
		}
	}
	return true
}

// describe sets the group to that of a row, without points.
func (r *ResultReader) describe(row int) {
	text := func(i int) string {
		c := r.columns.texts[i]
		return strings.Clone(c.Dictionary().ValueStr(c.GetValueIndex(row)))
	}
	g := ResultGroup{Metric: text(0), Points: r.group.Points}
	if r.columns.queries != nil {
		g.Query = int(r.columns.queries.Value(row))
	}
	for i, k := range r.Columns.TagKeys {
		if !r.columns.texts[1+i].IsNull(row) {
			g.TagKeys, g.TagValues = append(g.TagKeys, k), append(g.TagValues, text(1+i))
		}
	}
	r.group = g
}

// points sets the points of the group to those of some rows.
func (r *ResultReader) points(from, to int) {
	p := &r.group.Points
	p.Reset()
	for i := from; i < to; i++ {
		v := encoding.FloatValue(r.columns.values.Value(i))
		switch c := r.columns.integers; {
		case c != nil && !c.IsNull(i):
			v = encoding.IntValue(c.Value(i))
		case r.columns.values.IsNull(i):
			v, r.group.NaNIsNull = encoding.FloatValue(math.NaN()), true
		}
		p.Append(int64(r.columns.times.Value(i)), v)
	}
}
