package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/iotest"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
)

// sampleGroups has the hard cases for a reader: an integer beyond 2^53, NaN, a tag key that is
// also the name of a column, and a tag that only one of the groups has aggregated away.
func sampleGroups() []ResultGroup {
	var a, b encoding.Points
	a.Append(1356998400000, encoding.IntValue(1<<53+1))
	a.Append(1356998400250, encoding.FloatValue(math.NaN()))
	b.Append(1356998460000, encoding.FloatValue(-0.5))
	return []ResultGroup{
		{Query: 0, Metric: "sys.cpu", TagKeys: []string{"host", "value"}, TagValues: []string{"web01", "x"}, Points: a},
		{
			Query:         1,
			Metric:        "sys.mem",
			TagKeys:       []string{"dc"},
			TagValues:     []string{"lga"},
			AggregateTags: []string{"host"},
			Points:        b,
			NaNIsNull:     true,
		},
	}
}

func TestWriteResults(t *testing.T) {
	var buf bytes.Buffer
	write(t, &buf, sampleGroups(), ResultOptions{Query: true, Integers: true})
	for _, text := range []string{AggregateTagsKey, "[]",
		`["host"]`} { // Arrow's reader does not give the metadata of batches
		if !bytes.Contains(buf.Bytes(), []byte(text)) {
			t.Errorf("the stream has no %s", text)
		}
	}
	r, err := ipc.NewReader(&buf)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var names []string
	for _, f := range r.Schema().Fields() {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"metric", "dc", "host", "tag_value", "timestamp", "value", "value_int", "query"},
		names); diff != "" {
		t.Error(diff)
	}
	var rows []string
	for r.Next() {
		rec := r.Record()
		for i := range int(rec.NumRows()) {
			row := ""
			for _, c := range rec.Columns() {
				if d, ok := c.(*array.Dictionary); ok && !c.IsNull(i) {
					row += d.Dictionary().ValueStr(d.GetValueIndex(i)) + " "
				} else {
					row += c.ValueStr(i) + " "
				}
			}
			rows = append(rows, row)
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	want := []string{
		"sys.cpu (null) web01 x 2013-01-01 00:00:00Z 9.007199254740992e+15 9007199254740993 0 ",
		"sys.cpu (null) web01 x 2013-01-01 00:00:00.25Z NaN (null) 0 ",
		"sys.mem lga (null) (null) 2013-01-01 00:01:00Z -0.5 (null) 1 ",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

func write(t testing.TB, w io.Writer, groups []ResultGroup, opts ResultOptions) {
	t.Helper()
	out := NewResultWriter(w, groups, opts)
	for i := range groups {
		if err := out.Write(&groups[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// resultRow is one row read back.
type resultRow struct {
	metric, host, dc string // "" for null
	ms               int64
	value            string
}

// readResults reads rows and the number of batches.
func readResults(t *testing.T, r io.Reader) (rows []resultRow, batches int) {
	t.Helper()
	in, err := ipc.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Release()
	text := func(rec arrow.Record, name string, i int) string {
		at := in.Schema().FieldIndices(name)
		if len(at) == 0 || rec.Column(at[0]).IsNull(i) {
			return ""
		}
		d := rec.Column(at[0]).(*array.Dictionary)
		return d.Dictionary().ValueStr(d.GetValueIndex(i))
	}
	for in.Next() {
		rec := in.Record()
		batches++
		times := rec.Column(in.Schema().FieldIndices("timestamp")[0]).(*array.Timestamp)
		values := rec.Column(in.Schema().FieldIndices("value")[0])
		for i := range int(rec.NumRows()) {
			rows = append(rows, resultRow{
				metric: text(rec, "metric", i), host: text(rec, "host", i), dc: text(rec, "dc", i),
				ms: int64(times.Value(i)), value: values.ValueStr(i),
			})
		}
	}
	if in.Err() != nil {
		t.Fatal(in.Err())
	}
	return rows, batches
}

// Groups of every size, with and without tags, points and nulls, are read back row by row,
// however they were cut into batches and compressed.
func TestResultWriter_random(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3 {
		var groups []ResultGroup
		var want []resultRow
		total := 0
		for range 1 + r.IntN(20) {
			g, rows := randomGroup(r)
			groups, want = append(groups, g), append(want, rows...)
			total += g.Points.Len()
		}
		for _, c := range Compressions {
			var buf bytes.Buffer
			write(t, &buf, groups, ResultOptions{Compression: c})
			got, batches := readResults(t, &buf)
			if !slices.Equal(want, got) {
				t.Fatalf("seed %d, compression %q: %.2000s", seed, c,
					cmp.Diff(want, got, cmp.AllowUnexported(resultRow{})))
			}
			if most := len(groups) + total/maxResultRows; batches > most {
				t.Errorf(
					"seed %d: %d batches for %d groups and %d rows, want at most one for each group and full batch",
					seed, batches, len(groups), total)
			}
		}
	}
}

func randomGroup(r *rand.Rand) (g ResultGroup, rows []resultRow) {
	g = ResultGroup{Metric: fmt.Sprint("m", r.IntN(2)), NaNIsNull: r.IntN(2) == 0}
	row := resultRow{metric: g.Metric}
	if r.IntN(3) > 0 {
		row.host = fmt.Sprint("web", r.IntN(50))
		g.TagKeys, g.TagValues = append(g.TagKeys, "host"), append(g.TagValues, row.host)
	}
	if r.IntN(3) > 0 {
		row.dc = fmt.Sprint("dc", r.IntN(3))
		g.TagKeys, g.TagValues = append(g.TagKeys, "dc"), append(g.TagValues, row.dc)
	}
	n := r.IntN(200)
	if r.IntN(20) == 0 {
		n = r.IntN(3 * maxResultRows)
	}
	for i := range n {
		row.ms = int64(1356998400000 + 1000*i)
		v := encoding.IntValue(r.Int64N(1 << 40))
		if r.IntN(2) == 0 {
			v = encoding.FloatValue(r.NormFloat64())
		}
		row.value = strconv.FormatFloat(v.Double(), 'g', -1, 64)
		if r.IntN(10) == 0 {
			v = encoding.FloatValue(math.NaN())
			row.value = map[bool]string{false: "NaN", true: "(null)"}[g.NaNIsNull]
		}
		g.Points.Append(row.ms, v)
		rows = append(rows, row)
	}
	return g, rows
}

// Many small groups share batches, unless their aggregated tags differ.
func TestResultWriter_batches(t *testing.T) {
	small := func(n int, aggregated ...string) (groups []ResultGroup) {
		for i := range n {
			g := ResultGroup{
				Metric:        "m",
				TagKeys:       []string{"host"},
				TagValues:     []string{fmt.Sprint(i)},
				AggregateTags: aggregated,
			}
			g.Points.Append(int64(i), encoding.IntValue(1))
			groups = append(groups, g)
		}
		return groups
	}
	f := func(groups []ResultGroup, want int) {
		t.Helper()
		var buf bytes.Buffer
		write(t, &buf, groups, ResultOptions{})
		if rows, batches := readResults(t, &buf); batches != want || len(rows) != len(groups) {
			t.Errorf("%d rows in %d batches, want %d in %d", len(rows), batches, len(groups), want)
		}
	}
	f(nil, 0)
	f(small(1000), 1)
	f(slices.Concat(small(10), small(10, "dc"), small(10)), 3)
}

// Flush sends a group before the next one is written, and a stream has no end mark until it is
// closed.
func TestResultWriter_unfinished(t *testing.T) {
	groups := sampleGroups()
	var buf bytes.Buffer
	out := NewResultWriter(&buf, groups, ResultOptions{Query: true})
	if err := out.Write(&groups[0]); err != nil || buf.Len() > 0 {
		t.Fatalf("%d bytes were sent before the batch is full or flushed, want none, error %v", buf.Len(), err)
	}
	if err := out.Flush(); err != nil || buf.Len() == 0 || bytes.HasSuffix(buf.Bytes(), endMark) {
		t.Fatalf("flushed %d bytes, end mark %v, error %v, want bytes without end mark", buf.Len(),
			bytes.HasSuffix(buf.Bytes(), endMark), err)
	}
	if err := out.Close(); err != nil || !bytes.HasSuffix(buf.Bytes(), endMark) {
		t.Fatalf("closed, but the stream has no end mark; error %v", err)
	}
}

// The schema's metadata says what is missing from an answer, and only that.
func TestResultOptions_metadata(t *testing.T) {
	missing := [][2]string{{"00", "01"}}
	for _, c := range []struct {
		of   ResultOptions
		want map[string]string
	}{
		{ResultOptions{}, map[string]string{versionKey: "1"}},
		{ResultOptions{Missing: missing}, map[string]string{versionKey: "1", MissingKey: `[["00","01"]]`}},
		{ResultOptions{Damaged: 7}, map[string]string{versionKey: "1", DamagedKey: "7"}},
		{ResultOptions{Missing: missing, Damaged: 1},
			map[string]string{versionKey: "1", MissingKey: `[["00","01"]]`, DamagedKey: "1"}},
	} {
		if diff := cmp.Diff(c.want, c.of.metadata().ToMap()); diff != "" {
			t.Errorf("%+v: want -, got +: %s", c.of, diff)
		}
	}
}

// ReadResults yields times and values in the order of the stream, and fails on a stream that was
// cut, wherever that is.
func TestReadResults(t *testing.T) {
	groups := sampleGroups()
	for _, c := range Compressions {
		var buf bytes.Buffer
		write(t, &buf, groups, ResultOptions{Query: true, Integers: true, Compression: c})
		whole := buf.Bytes()
		var times []int64
		var values []float64
		each := func(ts []int64, vs []float64) error {
			times, values = append(times, ts...), append(values, vs...)
			return nil
		}
		if err := ReadResults(bytes.NewReader(whole), each); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(times, []int64{1356998400000, 1356998400250, 1356998460000}) || values[0] != 1<<53 ||
			!math.IsNaN(values[1]) || values[2] != -0.5 {
			t.Errorf("compression %q: times %v, values %v, want those of sampleGroups", c, times, values)
		}
		for n := range len(whole) {
			if c != "" {
				break // cutting compressed streams takes long and tries the same code
			}
			if err := ReadResults(bytes.NewReader(whole[:n]), each); err == nil {
				t.Fatalf("compression %q: cut after %d of %d bytes, no error", c, n, len(whole))
			}
		}
	}
}

// An error of the stream's reader is the error of ReadResults.
func TestReadResults_fails(t *testing.T) {
	var buf bytes.Buffer
	write(t, &buf, sampleGroups(), ResultOptions{})
	failed := errors.New("the connection is lost")
	err := ReadResults(io.MultiReader(bytes.NewReader(buf.Bytes()[:buf.Len()-8]), iotest.ErrReader(failed)),
		func([]int64, []float64) error { return nil })
	if !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
}

// rowsOf prints the points of a group, a row each.
func rowsOf(g *ResultGroup) (rows []string) {
	for i := range g.Points.Len() {
		ms, v := g.Points.At(i)
		value := v.String()
		if g.NaNIsNull && value == "NaN" {
			value = "null"
		}
		rows = append(rows, fmt.Sprintf("%d %s %s %s %d %s", g.Query, g.Metric, g.TagKeys, g.TagValues, ms, value))
	}
	return rows
}

// ResultReader gives back the groups that were written, each point as the integer or float that it was, NaN and null
// apart, and fails on a stream that was cut.
func TestResultReader(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3 {
		var groups []ResultGroup
		var want []string
		for range 1 + r.IntN(20) {
			g, _ := randomGroup(r)
			slices.Reverse(g.TagKeys) // sorted: dc, host
			slices.Reverse(g.TagValues)
			g.Query = r.IntN(3)
			groups, want = append(groups, g), append(want, rowsOf(&g)...)
		}
		var buf bytes.Buffer
		write(t, &buf, groups, ResultOptions{Query: true, Integers: true})
		in, err := NewResultReader(&buf)
		if err != nil {
			t.Fatal(err)
		}
		if !in.Columns.Query {
			t.Error("no column query, want it")
		}
		var got []string
		if err := in.Each(func(g *ResultGroup) error {
			got = append(got, rowsOf(g)...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d: %.2000s", seed, cmp.Diff(want, got))
		}
	}
}

// A tag key is called as its column, integers are floats without their column, an error of the function ends the
// reading, and wherever a stream is cut it is an error.
func TestResultReader_columns(t *testing.T) {
	var buf bytes.Buffer
	write(t, &buf, sampleGroups(), ResultOptions{})
	whole := buf.Bytes()
	read := func(data []byte, each func(*ResultGroup) error) (ResultColumns, error) {
		in, err := NewResultReader(bytes.NewReader(data))
		if err != nil {
			return ResultColumns{}, err
		}
		return in.Columns, in.Each(each)
	}
	var got []string
	pieces := 0
	columns, err := read(whole, func(g *ResultGroup) error {
		pieces++
		got = append(got, rowsOf(g)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pieces != 2 {
		t.Errorf("%d pieces of two groups, want one of each", pieces)
	}
	if diff := cmp.Diff(ResultColumns{TagKeys: []string{"dc", "host", "tag_value"}}, columns); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"0 sys.cpu [host tag_value] [web01 x] 1356998400000 9.007199254740992e+15",
		"0 sys.cpu [host tag_value] [web01 x] 1356998400250 NaN", "0 sys.mem [dc] [lga] 1356998460000 -0.5",
	}, got); diff != "" {
		t.Error(diff)
	}
	enough := errors.New("enough")
	if _, err := read(whole, func(*ResultGroup) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v, want %v", err, enough)
	}
	for n := range len(whole) {
		if _, err := read(whole[:n], func(*ResultGroup) error { return nil }); err == nil {
			t.Fatalf("cut after %d of %d bytes, no error", n, len(whole))
		}
	}
}

// Rows of two groups are apart if these differ in one thing alone, even in the same batch: the sub-query, or that one
// has a tag. Those of one group are together.
func TestResultReader_apart(t *testing.T) {
	var p encoding.Points
	p.Append(1, encoding.IntValue(1))
	p.Append(2, encoding.IntValue(2))
	group := func(query int, tags ...string) ResultGroup {
		return ResultGroup{Query: query, Metric: "m", TagKeys: tags, TagValues: tags, Points: p}
	}
	groups := []ResultGroup{group(0), group(1), group(1, "dc"), group(1, "dc", "host"), group(1, "host")}
	var buf bytes.Buffer
	write(t, &buf, groups, ResultOptions{Query: true})
	in, err := NewResultReader(&buf)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, g := range groups {
		want = append(want, fmt.Sprint(g.Query, g.TagKeys, g.Points.Len()))
	}
	if err := in.Each(func(g *ResultGroup) error {
		got = append(got, fmt.Sprint(g.Query, g.TagKeys, g.Points.Len()))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// stumbling is a client to which one write fails, that after some bytes.
type stumbling struct {
	left   int
	failed bool
}

func (s *stumbling) Write(p []byte) (int, error) {
	if s.left -= len(p); s.left < 0 && !s.failed {
		s.failed = true
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// Whichever write fails, also that of the end mark, a call of the writer returns its error.
func TestResultWriter_failed(t *testing.T) {
	groups := sampleGroups()
	var buf bytes.Buffer
	write(t, &buf, groups, ResultOptions{})
	for n := range buf.Len() {
		out := NewResultWriter(&stumbling{left: n}, groups, ResultOptions{})
		errs := []error{out.Write(&groups[0]), out.Write(&groups[1]), out.Close()}
		if err := errors.Join(errs...); !errors.Is(err, io.ErrClosedPipe) {
			t.Fatalf("failed after %d of %d bytes: got %v, want %v", n, buf.Len(), err, io.ErrClosedPipe)
		}
	}
}

// fieldsOf returns the fields of a record batch message as text, by Arrow's Message.fbs.
func fieldsOf(message []byte) (fields, metadata []string) {
	m := rootTable(message)
	table := func(t flatbuffers.Table, slot flatbuffers.VOffsetT) flatbuffers.Table {
		return flatbuffers.Table{Bytes: message, Pos: t.Indirect(t.Pos + flatbuffers.UOffsetT(t.Offset(slot)))}
	}
	header := table(m, messageHeader)
	fields = append(fields, fmt.Sprint("version ", m.GetInt16Slot(messageVersion, -1), ", type ", messageType(message),
		", body ", m.GetInt64Slot(messageBodyLength, -1), ", rows ", header.GetInt64Slot(batchLength, -1)))
	for _, slot := range []flatbuffers.VOffsetT{batchNodes, batchBuffers} {
		o := flatbuffers.UOffsetT(header.Offset(slot))
		for i := range 2 * header.VectorLen(o) {
			fields = append(fields, fmt.Sprint(slot, " ", i, ": ",
				header.GetInt64(header.Vector(o)+flatbuffers.UOffsetT(8*i))))
		}
	}
	if header.Offset(batchCompression) != 0 {
		c := table(header, batchCompression)
		fields = append(fields, fmt.Sprint("codec ", c.GetByteSlot(compressionCodec, 0),
			", method ", c.GetByteSlot(6, 0)))
	}
	if o := flatbuffers.UOffsetT(m.Offset(12)); o != 0 {
		for i := range m.VectorLen(o) {
			pair := flatbuffers.Table{Bytes: message, Pos: m.Indirect(m.Vector(o) + flatbuffers.UOffsetT(4*i))}
			for _, slot := range []flatbuffers.VOffsetT{4, 6} {
				metadata = append(metadata, string(pair.ByteVector(flatbuffers.UOffsetT(pair.Offset(slot))+pair.Pos)))
			}
		}
	}
	return fields, metadata
}

// copying keeps record batch messages as Arrow has made them.
type copying struct{ messages [][]byte }

func (c *copying) Start() error { return nil }
func (c *copying) Close() error { return nil }
func (c *copying) WritePayload(p ipc.Payload) error {
	if m := p.Meta().Bytes(); messageType(m) == recordBatchType {
		c.messages = append(c.messages, bytes.Clone(m))
	}
	return nil
}

// A message with metadata has all that it had without, in each compression, and its pairs.
func TestWithMetadata(t *testing.T) {
	for _, c := range Compressions {
		var kept copying
		out := NewResultWriter(io.Discard, sampleGroups(), ResultOptions{})
		opts := append(c.options(), ipc.WithSchema(out.stream.schema))
		out.stream.out = ipc.NewWriterWithPayloadWriter(&kept, opts...)
		g := sampleGroups()[0]
		if err := errors.Join(out.Write(&g), out.Flush()); err != nil || len(kept.messages) != 1 {
			t.Fatalf("compression %q: %d messages, error %v, want one", c, len(kept.messages), err)
		}
		want, none := fieldsOf(kept.messages[0])
		got, pairs := fieldsOf(withMetadata(kept.messages[0], [][2]string{{"a", "first"}, {"b", ""}}))
		if diff := cmp.Diff(want, got); diff != "" || none != nil {
			t.Errorf("compression %q: -before +with metadata\n%s", c, diff)
		}
		if diff := cmp.Diff([]string{"a", "first", "b", ""}, pairs); diff != "" {
			t.Errorf("compression %q: pairs -want +got\n%s", c, diff)
		}
	}
}

// BenchmarkResultWriter writes 10 M points of 1,000 groups, and reports the bytes of the stream.
func BenchmarkResultWriter(b *testing.B) {
	groups := make([]ResultGroup, 1000)
	for i := range groups {
		groups[i] = ResultGroup{Metric: "m", TagKeys: []string{"host"}, TagValues: []string{fmt.Sprint(i)}}
		for j := range 10_000 {
			groups[i].Points.Append(int64(j)*1000, encoding.FloatValue(float64(j)))
		}
	}
	for b.Loop() {
		var n counter
		write(b, &n, groups, ResultOptions{})
		b.SetBytes(int64(n))
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }
