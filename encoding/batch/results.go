package batch

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
)

// StreamMediaType is the media type of an Arrow IPC stream.
const StreamMediaType = "application/vnd.apache.arrow.stream"

// AggregateTagsKey is the metadata key of a result batch under which a JSON
// list names the tag keys that were aggregated away.
const AggregateTagsKey = "aggregateTags"

// ResultGroup is one group of an answer. What describes it must be known when
// the writer is made; its points only when it is written.
type ResultGroup struct {
	Query         int // index of the sub-query
	Metric        string
	TagKeys       []string
	TagValues     []string // parallel to TagKeys
	AggregateTags []string
	Points        encoding.Points
	NaNIsNull     bool // fill policy null: NaN is an Arrow null
}

// ResultOptions chooses the columns that not every answer has, and how buffers
// are compressed.
type ResultOptions struct {
	Query    bool // query int32: more than one sub-query was asked
	Integers bool // value_int int64: the exact value of integers, else null
	// Compression is that of the buffers inside the stream. A stream with it
	// should not be compressed as a whole, too.
	Compression Compression
	// Missing are the key ranges that lack of an incomplete answer, hex; they
	// stand in the schema's metadata under MissingKey as JSON.
	Missing [][2]string
}

// MissingKey is the metadata key that marks a stream whose rows are not all that
// the query asked for.
const MissingKey = "missing"

// Compression is one that Arrow has for buffers: "" for none, "lz4", "zstd".
type Compression string

// Compressions are all that are known, as clients name them.
var Compressions = []Compression{"", "lz4", "zstd"}

func (c Compression) options() []ipc.Option {
	switch c {
	case "lz4":
		return []ipc.Option{ipc.WithLZ4()}
	case "zstd":
		return []ipc.Option{ipc.WithZstd()}
	}
	return nil
}

// maxResultRows keeps batches near 1 MiB.
const maxResultRows = 64 << 10

// fixedColumns are names that a tag key gives way to, as tag_<key>.
var fixedColumns = []string{"metric", "timestamp", "value", "value_int", "query"}

// ResultWriter writes an answer as an Arrow IPC stream, one row per point:
//
//	metric dictionary<utf8> | one dictionary<utf8> per tag key, null where
//	aggregated | timestamp[ms, UTC] | value float64 | value_int int64 | query int32
//
// The last two by option. The schema and the dictionaries stand before the first
// batch and hold for all. A batch has rows of one group or of several that
// follow each other, and their aggregated tag keys in its metadata. A stream that
// Close has not ended lacks its end mark, so that a reader can notice. It is for
// one goroutine.
type ResultWriter struct {
	out     *ipc.Writer
	stream  *streamWriter
	schema  *arrow.Schema
	tagKeys []string
	metric  dictionary
	tags    []dictionary
	rows    *resultRows // of the batch to come
}

// NewResultWriter returns a writer for groups that are described and whose points
// are still to come. Nothing is written before a batch is full, Flush or Close.
func NewResultWriter(w io.Writer, described []ResultGroup, opts ResultOptions) *ResultWriter {
	r := &ResultWriter{stream: &streamWriter{w: w}}
	r.dictionaries(described)
	r.schema = resultSchema(r.tagKeys, opts)
	r.rows = newResultRows(len(r.tagKeys), opts)
	r.out = ipc.NewWriterWithPayloadWriter(r.stream, append(opts.Compression.options(), ipc.WithSchema(r.schema))...)
	return r
}

// dictionaries collects the names of all groups: they are sent once.
func (r *ResultWriter) dictionaries(groups []ResultGroup) {
	metrics := map[string]bool{}
	values := map[string]map[string]bool{}
	know := func(k string) map[string]bool {
		if values[k] == nil {
			values[k] = map[string]bool{}
			r.tagKeys = append(r.tagKeys, k)
		}
		return values[k]
	}
	for i := range groups {
		g := &groups[i]
		metrics[g.Metric] = true
		for j, k := range g.TagKeys {
			know(k)[g.TagValues[j]] = true
		}
		for _, k := range g.AggregateTags {
			know(k)
		}
	}
	slices.Sort(r.tagKeys)
	r.metric = newDictionary(metrics)
	for _, k := range r.tagKeys {
		r.tags = append(r.tags, newDictionary(values[k]))
	}
}

// Write adds a group's points, those of the group described under the same tags.
// It writes the batches that are full.
func (r *ResultWriter) Write(g *ResultGroup) error {
	aggregated, err := json.Marshal(append([]string{}, g.AggregateTags...))
	if err != nil {
		return err
	}
	if r.rows.aggregated != string(aggregated) {
		if err := r.Flush(); err != nil {
			return err
		}
		r.rows.aggregated = string(aggregated)
	}
	indexes := r.indexes(g)
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

// absent is the index of a tag that a group does not have.
const absent = -1

// indexes are the group's metric and tags as positions in the dictionaries.
func (r *ResultWriter) indexes(g *ResultGroup) []int32 {
	indexes := []int32{r.metric.index[g.Metric]}
	for i, k := range r.tagKeys {
		if at := slices.Index(g.TagKeys, k); at >= 0 {
			indexes = append(indexes, r.tags[i].index[g.TagValues[at]])
		} else {
			indexes = append(indexes, absent)
		}
	}
	return indexes
}

// Flush writes the rows that are waiting, if any.
func (r *ResultWriter) Flush() error {
	if r.rows.len() == 0 {
		return nil
	}
	r.stream.metadata = [][2]string{{AggregateTagsKey, r.rows.aggregated}}
	rec := r.record()
	defer rec.Release()
	defer r.rows.reset()
	if err := r.out.Write(rec); err != nil {
		return fmt.Errorf("batch: results: %w", err)
	}
	return nil
}

// Close writes what is waiting and ends the stream.
func (r *ResultWriter) Close() error {
	if err := r.Flush(); err != nil {
		return err
	}
	return r.out.Close()
}

// record is the waiting rows, seen in place.
func (r *ResultWriter) record() arrow.Record {
	cols := []arrow.Array{r.rows.text(0, r.metric)}
	for i := range r.tagKeys {
		cols = append(cols, r.rows.text(1+i, r.tags[i]))
	}
	cols = append(cols, r.rows.numbers()...)
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	return array.NewRecord(r.schema, cols, int64(r.rows.len()))
}

// Release gives back the dictionaries.
func (r *ResultWriter) Release() {
	r.metric.values.Release()
	for _, d := range r.tags {
		d.values.Release()
	}
}

// dictionary is the values of a text column.
type dictionary struct {
	values arrow.Array
	index  map[string]int32
}

var textType = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}

func newDictionary(set map[string]bool) dictionary {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	d := dictionary{index: make(map[string]int32, len(names))}
	for i, name := range names {
		b.Append(name)
		d.index[name] = int32(i)
	}
	d.values = b.NewArray()
	return d
}

// tagColumn is the name of a tag key's column: that of no other column.
func tagColumn(key string, tagKeys []string) string {
	if !slices.Contains(fixedColumns, key) {
		return key
	}
	name := "tag_" + key
	for slices.Contains(tagKeys, name) {
		name = "tag_" + name
	}
	return name
}

func resultSchema(tagKeys []string, opts ResultOptions) *arrow.Schema {
	fields := []arrow.Field{{Name: "metric", Type: textType}}
	for _, k := range tagKeys {
		fields = append(fields, arrow.Field{Name: tagColumn(k, tagKeys), Type: textType, Nullable: true})
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

func (o *ResultOptions) metadata() *arrow.Metadata {
	if len(o.Missing) == 0 {
		return metadata(resultVersion)
	}
	text, _ := json.Marshal(o.Missing) // strings
	m := arrow.NewMetadata([]string{versionKey, MissingKey}, []string{resultVersion, string(text)})
	return &m
}
