package batch

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"downpour/encoding"
)

// checkedAllocator fails the test for memory that is not released at its end.
// rapid.T and testing.T both fit.
func checkedAllocator(t interface {
	Errorf(string, ...any)
	Helper()
}) (mem *memory.CheckedAllocator, check func()) {
	mem = memory.NewCheckedAllocator(dirty{memory.NewGoAllocator()})
	return mem, func() { mem.AssertSize(t, 0) }
}

// dirty is an allocator whose memory was used before.
type dirty struct{ memory.Allocator }

func (d dirty) Allocate(n int) []byte {
	b := d.Allocator.Allocate(n)
	memory.Set(b, 0xA5)
	return b
}

func drawSeries(t *rapid.T) (s Series) {
	s.Span = rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "span")
	s.Time = drawTimes(t, rapid.IntRange(0, 9).Draw(t, "buckets"))
	for range s.Time {
		s.Value = append(s.Value, rapid.Float64().Draw(t, "value"))
	}
	for _, ms := range drawTimes(t,
		rapid.IntRange(0, 70).Draw(t, "raw points")) { // beyond one byte of the float bitmap
		s.Raw.Append(ms, encoding.Value{Float: rapid.Bool().Draw(t, "float"), Bits: rapid.Uint64().Draw(t, "bits")})
	}
	s.Notes = rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 9), 0, 3).Draw(t, "notes")
	return s
}

// drawTimes draws n times: any, or at equal distances, where the last one may be 1 late.
func drawTimes(t *rapid.T, n int) []int64 {
	if rapid.Bool().Draw(t, "any times") {
		return rapid.SliceOfN(rapid.Int64(), n, n).Draw(t, "times")
	}
	first, step, last := rapid.Int64().Draw(t, "first"), rapid.Int64().Draw(t, "step"),
		rapid.Int64Range(0, 1).Draw(t, "last")
	var times []int64
	for i := range int64(n) {
		times = append(times, first+i*step)
	}
	if n > 0 {
		times[n-1] += last
	}
	return times
}

// readAll copies what a record holds.
func readAll(t interface{ Fatal(...any) }, r Record) (all []Series) {
	reader, err := NewSeriesReader(r)
	if err != nil {
		t.Fatal(err)
	}
	var s Series
	for i := range reader.Len() {
		if err := reader.At(i, &s); err != nil {
			t.Fatal(err)
		}
		c := Series{Span: bytes.Clone(s.Span), Time: slices.Clone(s.Time), Value: slices.Clone(s.Value)}
		c.Raw.AppendPoints(s.Raw)
		for _, n := range s.Notes {
			c.Notes = append(c.Notes, bytes.Clone(n))
		}
		all = append(all, c)
	}
	return all
}

// throughIPC sends a record through Arrow's stream form, as Flight does.
func throughIPC(t interface{ Fatal(...any) }, mem Allocator, r Record, use func(Record)) {
	var wire bytes.Buffer
	w := ipc.NewWriter(&wire, ipc.WithSchema(r.Schema()), ipc.WithAllocator(mem))
	if err := w.Write(r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := ipc.NewReader(&wire, ipc.WithAllocator(mem))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	if !reader.Next() {
		t.Fatal("no record on the wire", reader.Err())
	}
	use(reader.Record())
}

var sameSeries = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateNaNs()}

// Series are read as they were written: from the record, from the record after it went through
// Arrow's stream form, and from a slice of it. All memory is released.
func TestSeries_roundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem, check := checkedAllocator(t)
		defer check()
		w := NewSeriesWriter(mem)
		defer w.Release()
		for range rapid.IntRange(1, 3).Draw(t, "records") {
			want := rapid.SliceOfN(rapid.Custom(drawSeries), 0, 8).Draw(t, "series")
			for i := range want {
				w.Append(&want[i])
			}
			r := w.Record()
			compare := func(r Record) {
				if diff := cmp.Diff(want, readAll(t, r), sameSeries); diff != "" {
					t.Errorf("(-written +read)\n%s", diff)
				}
			}
			compare(r)
			throughIPC(t, mem, r, compare)
			compareSlice(t, r, want)
			r.Release()
		}
	})
}

func compareSlice(t *rapid.T, r Record, want []Series) {
	from := rapid.IntRange(0, len(want)).Draw(t, "from")
	slice := r.NewSlice(int64(from), int64(len(want)))
	defer slice.Release()
	if diff := cmp.Diff(want[from:], readAll(t, slice), sameSeries); diff != "" {
		t.Errorf("slice from %d (-written +read)\n%s", from, diff)
	}
}

func TestSeries_emptyLists(t *testing.T) {
	mem, check := checkedAllocator(t)
	defer check()
	w := NewSeriesWriter(mem)
	defer w.Release()
	want := []Series{{}, {Span: []byte{1}}, {Notes: [][]byte{nil, []byte("{}")}}}
	for i := range want {
		w.Append(&want[i])
	}
	r := w.Record()
	defer r.Release()
	throughIPC(t, mem, r, func(r Record) {
		if diff := cmp.Diff(want, readAll(t, r), sameSeries); diff != "" {
			t.Error(diff)
		}
	})
	empty := w.Record()
	defer empty.Release()
	throughIPC(t, mem, empty, func(r Record) {
		if got := readAll(t, r); len(got) != 0 {
			t.Errorf("an empty record holds %v", got)
		}
	})
}

// A writer that is released with rows in it leaks no memory.
func TestWriters_release(t *testing.T) {
	mem, check := checkedAllocator(t)
	defer check()
	series := NewSeriesWriter(mem)
	series.Append(&Series{Span: []byte{1}, Time: []int64{1}, Value: []float64{2}})
	series.Release()
	aligned := NewAlignedWriter(mem)
	aligned.Append(&Aligned{Time: []int64{1}, Bits: []uint64{2}})
	aligned.Release()
	partial := NewPartialWriter(mem)
	partial.Append(&Partial{Live: []int32{1}, A: []float64{2}})
	partial.Release()
	histograms := NewHistogramWriter(mem)
	histograms.Append(&Histograms{Group: []byte{1}})
	histograms.Release()
}

// Of three times and more at equal distances the first two travel.
func TestSparse(t *testing.T) {
	for _, c := range []struct{ times, want []int64 }{
		{nil, nil}, {[]int64{5}, []int64{5}}, {[]int64{5, 7}, []int64{5, 7}}, {[]int64{5, 7, 9}, []int64{5, 7}},
		{[]int64{5, 7, 10}, []int64{5, 7, 10}},
	} {
		if got := sparse(c.times); !slices.Equal(got, c.want) {
			t.Errorf("of %v travel %v, want %v", c.times, got, c.want)
		}
	}
}

func TestSeriesReader_refuses(t *testing.T) {
	mem, check := checkedAllocator(t)
	defer check()
	f := func(wantInError string, schema *arrow.Schema) {
		t.Helper()
		b := array.NewRecordBuilder(mem, schema)
		defer b.Release()
		r := b.NewRecord()
		defer r.Release()
		if _, err := NewSeriesReader(r); err == nil || !strings.Contains(err.Error(), wantInError) {
			t.Errorf("%v, want an error with %q", err, wantInError)
		}
	}
	fields := seriesSchema.Fields()
	f("has schema", arrow.NewSchema(fields[:3], metadata(Version)))
	f("want downpour.batch 3", arrow.NewSchema(fields, nil))
	other := arrow.NewMetadata([]string{versionKey}, []string{"1"})
	f("want downpour.batch 3", arrow.NewSchema(fields, &other))
}

func TestSeriesReader_refusesUnequalLists(t *testing.T) {
	mem, check := checkedAllocator(t)
	defer check()
	f := func(s Series) {
		t.Helper()
		w := NewSeriesWriter(mem)
		defer w.Release()
		w.Append(&s)
		r := w.Record()
		defer r.Release()
		reader, err := NewSeriesReader(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.At(0, new(Series)); err == nil || !strings.Contains(err.Error(), "want equal lengths") {
			t.Errorf("%+v: %v, want an error with \"want equal lengths\"", s, err)
		}
	}
	f(Series{Time: []int64{1}})
	f(Series{Raw: encoding.Points{Time: []int64{1}, Bits: []uint64{1}}})
	f(Series{Raw: encoding.Points{Time: []int64{1}, Float: []bool{true}}})
}

// The columns of a series batch of version 3 never change. Other columns need a new version.
func TestSeriesSchema_isFrozen(t *testing.T) {
	var got []string
	for _, f := range SeriesSchema().Fields() {
		got = append(got, f.Name+" "+f.Type.String())
	}
	want := []string{
		"span binary",
		"time list<item: int64>",
		"value list<item: float64>",
		"raw_time list<item: int64>",
		"raw_bits list<item: int64>",
		"raw_float list<item: bool>",
		"notes list<item: binary>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if Version != "3" || resultVersion != "1" || versionKey != "downpour.batch" {
		t.Errorf("version %s under key %s, want 3 under downpour.batch, and version 1 of results", Version, versionKey)
	}
}

// Eight booleans are one byte.
func TestBitColumn(t *testing.T) {
	var c bitColumn
	c.append(make([]bool, 9))
	if len(c.bytes) != 2 {
		t.Errorf("9 booleans are %d bytes, want 2", len(c.bytes))
	}
}
