package batch

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
)

// What a narrow batch holds is what the series batch held, on this side of a connection and on the other.
func TestNarrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem, check := checkedAllocator(t)
		defer check()
		w := NewSeriesWriter(mem)
		defer w.Release()
		for range rapid.IntRange(0, 4).Draw(t, "rows") {
			s := drawSeries(t)
			bound := rapid.SampledFrom([]uint64{1, 1 << 8, 1 << 16, 1 << 32, 1 << 63}).Draw(t, "bound")
			least := rapid.Uint64().Draw(t, "least")
			for i, b := range s.Raw.Bits {
				s.Raw.Bits[i] = least + b%bound
			}
			w.Append(&s)
		}
		r := w.Record()
		defer r.Release()
		narrow := Narrow(r, mem)
		defer narrow.Release()
		want := readAll(t, r)
		f := func(r Record) {
			if diff := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", readAll(t, r))); diff != "" {
				t.Fatalf("series batch -, narrow +: %s", diff)
			}
		}
		f(narrow)
		throughIPC(t, mem, narrow, f)
	})
}

// Numbers take the bytes that the largest difference needs, and no more.
func TestNarrow_bytes(t *testing.T) {
	const more = math.MaxInt64
	for _, c := range []struct {
		numbers []uint64
		want    string
	}{
		{nil, ""},
		{[]uint64{7}, "07 00 00 00 00 00 00 00"},
		{[]uint64{7, 7, 7}, "07 00 00 00 00 00 00 00"},
		{[]uint64{1 << 63, 1<<63 + 255}, "00 00 00 00 00 00 00 80 00 FF"},
		{[]uint64{300, 301, 556}, "2C 01 00 00 00 00 00 00 00 00 01 00 00 01"},
		{[]uint64{math.MaxUint64, 65_534}, "FF FF FF FF FF FF FF FF 00 00 FF FF"},
		{[]uint64{65_536, 0}, "00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00"},
		{[]uint64{0, 1<<32 - 1}, "00 00 00 00 00 00 00 00 00 00 00 00 FF FF FF FF"},
		{[]uint64{1, 1<<32 + 1}, "00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00"},
		{[]uint64{1 << 63, more}, "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 80 FF FF FF FF FF FF FF 7F"},
	} {
		r := narrowed(t, c.numbers)
		var got []uint64
		if err := r.At(0, new(Series)); err != nil {
			t.Errorf("%d: %v", c.numbers, err)
		}
		got, _ = widen(&got, r.narrow.Value(0), len(c.numbers))
		text := strings.ToUpper(fmt.Sprintf("% x", r.narrow.Value(0)))
		if diff := cmp.Diff(c.want, text); diff != "" || fmt.Sprint(got) != fmt.Sprint(c.numbers) {
			t.Errorf("%d: read as %d, want -, got +: %s", c.numbers, got, diff)
		}
	}

	// A difference that is found late counts, too.
	late := make([]uint64, 130)
	late[129] = 256
	if got := narrowed(t, late).narrow.Value(0); len(got) != 8+2*130 {
		t.Errorf("%d bytes for 130 numbers, one of them needs two, want 268", len(got))
	}
}

// narrowed returns a reader of a narrow batch of one row.
func narrowed(t *testing.T, numbers []uint64) *SeriesReader {
	t.Helper()
	mem, check := checkedAllocator(t)
	t.Cleanup(check)
	w := NewSeriesWriter(mem)
	defer w.Release()
	s := Series{Span: []byte{1}}
	for i, n := range numbers {
		s.Raw.Append(int64(i*i), encoding.Value{Bits: n})
	}
	w.Append(&s)
	r := w.Record()
	defer r.Release()
	narrow := Narrow(r, mem)
	t.Cleanup(narrow.Release)
	reader, err := NewSeriesReader(narrow)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

// Bytes that Narrow does not write are refused, before memory is taken for them.
func TestNarrow_refuses(t *testing.T) {
	f := func(size, n int, want string) {
		t.Helper()
		var to []uint64
		if _, err := widen(&to, bytes.Repeat([]byte{1}, size), n); err == nil || err.Error() != want || cap(to) > n+8 {
			t.Errorf("%v, and room for %d, want %s", err, cap(to), want)
		}
	}
	f(8, 0, "8 bytes for 0 numbers, want 8 and as many for each of at most 8388608")
	f(1, 0, "1 bytes for 0 numbers, want 8 and as many for each of at most 8388608")
	f(0, 1, "0 bytes for 1 numbers, want 8 and as many for each of at most 8388608")
	f(7, 1, "7 bytes for 1 numbers, want 8 and as many for each of at most 8388608")
	f(11, 2, "11 bytes for 2 numbers, want 8 and as many for each of at most 8388608")
	f(8, 8<<20+1, "8 bytes for 8388609 numbers, want 8 and as many for each of at most 8388608")
	f(14, 2, "numbers of 3 bytes, want 0, 1, 2, 4 or 8")
	f(26, 2, "numbers of 9 bytes, want 0, 1, 2, 4 or 8")
	var to []uint64
	if all, err := widen(&to, make([]byte, 8), 8<<20); err != nil || len(all) != 8<<20 {
		t.Errorf("%d numbers: %v, want the most", len(all), err)
	}

	// The error names the row.
	r := narrowed(t, []uint64{1, 2})
	r.narrow = narrowed(t, []uint64{1, 2, 3}).narrow
	err := r.At(0, new(Series))
	if err == nil || !strings.HasPrefix(err.Error(), "batch: row 0: 11 bytes for 2 numbers") {
		t.Errorf("%v, want the row and its bytes", err)
	}
}

// The columns of a narrow batch of version 3 never change, and the version before has series batches in their place.
func TestNarrowSchema_isFrozen(t *testing.T) {
	for i, f := range NarrowSchema().Fields() {
		want := SeriesSchema().Field(i)
		if i == colRawBits {
			want.Name, want.Type = "raw_narrow", f.Type
		}
		if f.Name != want.Name || f.Type != want.Type || i == colRawBits && f.Type.Name() != "binary" {
			t.Errorf("column %d is %s %s, want %s %s", i, f.Name, f.Type, want.Name, want.Type)
		}
	}
	before := AsPrevious(NarrowSchema())
	if before == nil || before != AsPrevious(SeriesSchema()) || FromPrevious(before) != SeriesSchema() {
		t.Errorf("before, narrow batches were %v", before)
	}
	if s := FromPrevious(AsPrevious(PartialSchema())); s != PartialSchema() {
		t.Errorf("the schema of partial aggregates before is that of %v now", s)
	}
	if s := FromPrevious(SeriesSchema()); s != nil {
		t.Errorf("a schema of this version is that of %v, want none", s)
	}
}
