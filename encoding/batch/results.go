package batch

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
)

// StreamMediaType is the media type of an Arrow IPC stream.
const StreamMediaType = "application/vnd.apache.arrow.stream"

// AggregateTagsKey is a metadata key of result batches. Its value is a JSON list of
// the tag keys that were aggregated away.
const AggregateTagsKey = "aggregateTags"

// ResultGroup is one group of an answer. Its points need not be known before Write,
// everything else must be known to NewResultWriter.
type ResultGroup struct {
	Query         int // index of the sub-query
	Metric        string
	TagKeys       []string
	TagValues     []string // parallel to TagKeys
	AggregateTags []string
	Points        encoding.Points
	NaNIsNull     bool // fill policy null: NaN is written as an Arrow null
}

// ResultOptions chooses the columns that only some answers have, and the
// compression of buffers.
type ResultOptions struct {
	Query    bool // with the column query, int32: there is more than one sub-query
	Integers bool // with the column value_int, int64: the exact value of integers, else null
	// Compression is the compression of the buffers inside the stream. A stream that
	// has it should not be compressed again as a whole.
	Compression Compression
	// Missing are the key ranges that are missing from an incomplete answer, as
	// start and stop in hex. The schema's metadata has them as JSON under
	// MissingKey.
	Missing [][2]string
	// Damaged is the number of rows that were skipped because they cannot be read; the schema's
	// metadata has it under DamagedKey.
	Damaged int64
}

// MissingKey is the metadata key that marks the stream of an incomplete answer.
const MissingKey = "missing"

// DamagedKey is the metadata key of the number of damaged rows that were skipped.
const DamagedKey = "damaged"

// Compression is a compression of Arrow buffers: "" for none, "lz4" or "zstd".
type Compression string

// Compressions are all values of Compression; clients use the same names.
var Compressions = []Compression{"", "lz4", "zstd"}

// options returns the compression as an option of Arrow's writer.
func (c Compression) options() []ipc.Option {
	switch c {
	case "lz4":
		return []ipc.Option{ipc.WithLZ4()}
	case "zstd":
		return []ipc.Option{ipc.WithZstd()}
	}
	return nil
}

// maxResultRows is the most rows of a batch; it makes batches of about 1 MiB.
const maxResultRows = 64 << 10

// fixedColumns are the names of columns that are not tags. The column of a tag key
// with one of these names is called tag_<key>.
var fixedColumns = []string{"metric", "timestamp", "value", "value_int", "query"}

// ResultWriter writes an answer as an Arrow IPC stream, one row for each point:
//
//	metric     dictionary<utf8>
//	<tag key>  dictionary<utf8>     one column for each; null where aggregated away
//	timestamp  timestamp[ms, UTC]
//	value      float64
//	value_int  int64                if ResultOptions.Integers
//	query      int32                if ResultOptions.Query
//
// Schema and dictionaries come once, before the first batch. A batch has rows of
// one or more groups in the order in which they were written; they have the same
// aggregated tag keys, which are in the batch's metadata. Close writes the end mark,
// so that a reader notices a stream that was cut. A writer is for one goroutine.
type ResultWriter struct {
	stream *resultStream
	metric dictionary
	tags   *tagTexts
	rows   *resultRows // of the next batch
}

// NewResultWriter returns a writer to w. described has all groups that will be written; their
// points are not used yet. Nothing is written before a batch is full or Flush or Close is called.
func NewResultWriter(w io.Writer, described []ResultGroup, opts ResultOptions) *ResultWriter {
	metrics := map[string]bool{}
	for i := range described {
		metrics[described[i].Metric] = true
	}
	tags := newTagTexts(len(described), func(i int) (keys, values, aggregated []string) {
		g := &described[i]
		return g.TagKeys, g.TagValues, g.AggregateTags
	})
	return &ResultWriter{
		stream: newResultStream(w, resultSchema(tags.keys, opts), opts),
		metric: newDictionary(metrics), tags: tags, rows: newResultRows(len(tags.keys), opts),
	}
}

// Write adds the points of a group, which must be among those described. It writes
// batches that become full.
func (r *ResultWriter) Write(g *ResultGroup) error {
	aggregated := aggregatedList(g.AggregateTags)
	// The aggregated tag keys are metadata of a batch: other ones need another batch.
	if r.rows.aggregated != aggregated {
		if err := r.Flush(); err != nil {
			return err
		}
		r.rows.aggregated = aggregated
	}

	indexes := r.tags.appendIndexes([]int32{r.metric.index[g.Metric]}, g.TagKeys, g.TagValues)
	for from, n := 0, g.Points.Len(); from < n; {
		to := min(n, from+maxResultRows-r.rows.len())
		r.rows.add(g, indexes, g.Points.Slice(from, to))

		if from = to; r.rows.len() == maxResultRows {
			if err := r.Flush(); err != nil {
				return err
			}
		}
	}

	return nil
}

// Flush writes the rows of the next batch, if there are any.
func (r *ResultWriter) Flush() error {
	if r.rows.len() == 0 {
		return nil
	}
	defer r.rows.reset()

	cols := []arrow.Array{r.rows.text(0, r.metric)}
	for i, d := range r.tags.dictionaries {
		cols = append(cols, r.rows.text(1+i, d))
	}
	return r.stream.write(append(cols, r.rows.numbers()...), r.rows)
}

// Close writes the last batch and the end mark.
func (r *ResultWriter) Close() error {
	if err := r.Flush(); err != nil {
		return err
	}
	return r.stream.out.Close()
}

// dictionary is the distinct values of a text column, sorted.
type dictionary struct {
	values arrow.Array
	index  map[string]int32 // the position of a value in values
}

var textType = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}

// newDictionary makes a dictionary of the names in ascending order.
func newDictionary(set map[string]bool) dictionary {
	names := slices.Sorted(maps.Keys(set))
	b := array.NewStringBuilder(memory.DefaultAllocator)
	d := dictionary{index: make(map[string]int32, len(names))}
	for i, name := range names {
		b.Append(name)
		d.index[name] = int32(i)
	}
	d.values = b.NewArray()
	return d
}

// TagColumn returns the name of a tag key's column in an answer whose rows have the tag keys.
func TagColumn(key string, tagKeys []string) string { return tagColumn(key, tagKeys, fixedColumns) }

// tagColumn returns the name of a tag key's column, which no other column has.
func tagColumn(key string, tagKeys, fixed []string) string {
	if !slices.Contains(fixed, key) {
		return key
	}
	name := "tag_" + key
	for slices.Contains(tagKeys, name) || slices.Contains(fixed, name) {
		name = "tag_" + name
	}
	return name
}

// resultSchema returns the schema for sorted tag keys.
func resultSchema(tagKeys []string, opts ResultOptions) *arrow.Schema {
	fields := []arrow.Field{{Name: "metric", Type: textType}}
	for _, k := range tagKeys {
		fields = append(fields, arrow.Field{Name: TagColumn(k, tagKeys), Type: textType, Nullable: true})
	}
	fields = append(fields,
		arrow.Field{Name: "timestamp", Type: arrow.FixedWidthTypes.Timestamp_ms},
		arrow.Field{Name: "value", Type: arrow.PrimitiveTypes.Float64, Nullable: true})
	if opts.Integers {
		fields = append(fields, arrow.Field{Name: "value_int", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	}
	if opts.Query {
		fields = append(fields, arrow.Field{Name: "query", Type: arrow.PrimitiveTypes.Int32})
	}
	return arrow.NewSchema(fields, opts.metadata())
}

// metadata returns the schema's metadata: the version, and what is missing.
func (o *ResultOptions) metadata() *arrow.Metadata {
	keys, values := []string{versionKey}, []string{resultVersion}
	if len(o.Missing) > 0 {
		text, _ := json.Marshal(o.Missing) // strings: this cannot fail
		keys, values = append(keys, MissingKey), append(values, string(text))
	}
	if o.Damaged > 0 {
		keys, values = append(keys, DamagedKey), append(values, strconv.FormatInt(o.Damaged, 10))
	}
	m := arrow.NewMetadata(keys, values)
	return &m
}
