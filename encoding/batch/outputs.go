package batch

import (
	"io"

	"github.com/apache/arrow/go/v15/arrow"
)

// AliasKey is a metadata key of the column of an output: the name that its request gives it in
// addition to its id.
const AliasKey = "alias"

// Output is an output of an expression query. Its id is the name of its column.
type Output struct{ ID, Alias string }

// OutputSeries is one series of some outputs. Its columns need not be known before
// Write, everything else must be known to NewOutputWriter.
type OutputSeries struct {
	TagKeys       []string
	TagValues     []string // parallel to TagKeys
	AggregateTags []string
	// Columns are those of the outputs, in their order, without rows where an output does
	// not have the series.
	Columns []OutputColumn
}

// OutputColumn is the values of an output's series.
type OutputColumn struct {
	Time  []int64 // ms, ascending
	Value []float64
}

// OutputWriter writes an expression query's answer as an Arrow IPC stream, one row for
// each time of a series:
//
//	<tag key>  dictionary<utf8>     one column for each; null where aggregated away
//	timestamp  timestamp[ms, UTC]
//	<output>   float64              one column for each; null where it has no row
//
// A tag key that an output or timestamp is called by has the column tag_<key>. All else
// is as in a ResultWriter.
type OutputWriter struct {
	stream *resultStream
	tags   *tagTexts
	limit  int // rows of a batch

	// The next batch. Only the tags and times of rows are used.
	rows   *resultRows
	values []nullable[float64]
}

// batchBytes is about the size of a batch of outputs.
const batchBytes = 1 << 20

// NewOutputWriter returns a writer to w. described are all series that will be written.
func NewOutputWriter(w io.Writer, outputs []Output, described []OutputSeries, opts ResultOptions) *OutputWriter {
	tags := newTagTexts(len(described), func(i int) (keys, values, aggregated []string) {
		s := &described[i]
		return s.TagKeys, s.TagValues, s.AggregateTags
	})
	// A value takes 8 bytes. A batch has at least 1024 rows, however many outputs there are, and at
	// most as many as nullable has bits.
	return &OutputWriter{
		stream: newResultStream(w, outputSchema(tags.keys, outputs, opts), opts), tags: tags,
		limit: min(maxResultRows, max(1024, batchBytes/(8*(len(outputs)+len(tags.keys)+1)))),
		rows:  newResultRows(len(tags.keys), opts), values: make([]nullable[float64], len(outputs)),
	}
}

// outputSchema returns the schema for sorted tag keys and the outputs. A tag key's column must not
// be called as an output's, or timestamp.
func outputSchema(tagKeys []string, outputs []Output, opts ResultOptions) *arrow.Schema {
	fixed := []string{"timestamp"}
	for _, o := range outputs {
		fixed = append(fixed, o.ID)
	}

	var fields []arrow.Field
	for _, k := range tagKeys {
		fields = append(fields, arrow.Field{Name: tagColumn(k, tagKeys, fixed), Type: textType, Nullable: true})
	}
	fields = append(fields, arrow.Field{Name: "timestamp", Type: arrow.FixedWidthTypes.Timestamp_ms})
	for _, o := range outputs {
		f := arrow.Field{Name: o.ID, Type: arrow.PrimitiveTypes.Float64, Nullable: true}
		if o.Alias != "" {
			f.Metadata = arrow.NewMetadata([]string{AliasKey}, []string{o.Alias})
		}
		fields = append(fields, f)
	}
	return arrow.NewSchema(fields, opts.metadata())
}

// Write adds the rows of a series, at all times that one of its columns has. It writes
// batches that become full.
func (o *OutputWriter) Write(s *OutputSeries) error {
	aggregated := aggregatedList(s.AggregateTags)
	// The aggregated tag keys are metadata of a batch: other ones need another batch.
	if o.rows.aggregated != aggregated {
		if err := o.Flush(); err != nil {
			return err
		}
		o.rows.aggregated = aggregated
	}

	tags := o.tags.appendIndexes(nil, s.TagKeys, s.TagValues)
	next := make([]int, len(s.Columns)) // the row of each column that comes next
	for {
		ms, ok := s.nextTime(next)
		if !ok {
			return nil
		}

		o.addTags(tags)
		o.rows.times = append(o.rows.times, ms)

		for i := range o.values {
			c := &s.Columns[i]
			if next[i] < len(c.Time) && c.Time[next[i]] == ms {
				o.values[i].append(c.Value[next[i]])
				next[i]++
			} else {
				o.values[i].appendNulls(1)
			}
		}

		if o.rows.len() == o.limit {
			if err := o.Flush(); err != nil {
				return err
			}
		}
	}
}

// nextTime returns the earliest time that columns have from their rows in next on.
func (s *OutputSeries) nextTime(next []int) (ms int64, ok bool) {
	for i := range s.Columns {
		if times := s.Columns[i].Time; next[i] < len(times) && (!ok || times[next[i]] < ms) {
			ms, ok = times[next[i]], true
		}
	}
	return ms, ok
}

// addTags adds the tags of one row, as indexes into their dictionaries.
func (o *OutputWriter) addTags(indexes []int32) {
	for i, index := range indexes {
		// The first text of the rows is the metric, which outputs do not have.
		if text := &o.rows.texts[1+i]; index == absent {
			text.appendNulls(1)
		} else {
			text.append(index)
		}
	}
}

// Flush writes the rows of the next batch, if there are any.
func (o *OutputWriter) Flush() error {
	n := o.rows.len()
	if n == 0 {
		return nil
	}
	defer o.reset()

	var cols []arrow.Array
	for i, d := range o.tags.dictionaries {
		cols = append(cols, o.rows.text(1+i, d))
	}
	cols = append(cols, column(arrow.FixedWidthTypes.Timestamp_ms, arrow.Int64Traits.CastToBytes(o.rows.times), nil, 0,
		n))
	for i := range o.values {
		v := &o.values[i]
		cols = append(cols, column(arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes(v.values), v.valid,
			v.nulls, n))
	}
	return o.stream.write(cols, o.rows)
}

// reset begins the next batch.
func (o *OutputWriter) reset() {
	o.rows.reset()
	for i := range o.values {
		o.values[i].reset()
	}
}

// Close writes the last batch and the end mark.
func (o *OutputWriter) Close() error {
	if err := o.Flush(); err != nil {
		return err
	}
	return o.stream.out.Close()
}
