package batch

import (
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
)

// A record of histograms that was encoded and decoded has the rows that were written.
func TestHistogramBatch(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	w := NewHistogramWriter(mem)
	defer w.Release()

	type at struct {
		Time int64
		Of   encoding.Histogram
	}
	want := []at{{1000, encoding.Histogram{
		Buckets:   []encoding.HistogramBucket{{Lower: 0, Upper: 1, Count: 5}, {Lower: 1, Upper: 2, Count: -6}},
		Underflow: 1,
		Overflow:  2,
	}},
		{2000, encoding.Histogram{}},
		{3000, encoding.Histogram{Buckets: []encoding.HistogramBucket{{Lower: 7, Upper: 8, Count: 9}}}}}
	row := Histograms{
		Group:    []byte("g"),
		Spans:    [][]byte{[]byte("a"), []byte("bc")},
		NoteSpan: [][]byte{[]byte("a")},
		Notes:    [][]byte{[]byte("{}")},
	}
	for _, x := range want {
		row.Add(x.Time, &x.Of)
	}
	w.Append(&Histograms{Group: []byte("empty")})
	w.Append(&row)
	rec := w.Record()
	encoded, err := Encode(rec)
	rec.Release()
	if err != nil {
		t.Fatal(err)
	}
	rec, err = Decode(encoded, mem)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()

	r, err := NewHistogramReader(rec)
	if err != nil || r.Len() != 2 {
		t.Fatalf("%d rows, want 2: %v", r.Len(), err)
	}
	var got Histograms
	if err := r.At(1, &got); err != nil {
		t.Fatal(err)
	}
	var read []at
	if err := got.At(func(t int64, of *encoding.Histogram) error {
		read = append(read, at{t,
			encoding.Histogram{
				Buckets:   append([]encoding.HistogramBucket(nil), of.Buckets...),
				Underflow: of.Underflow,
				Overflow:  of.Overflow,
			}})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
	if diff := cmp.Diff([]any{row.Group, row.Spans, row.NoteSpan, row.Notes},
		[]any{got.Group, got.Spans, got.NoteSpan, got.Notes}); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
}

// A row is refused if the lengths of its lists do not fit each other: it would be read beyond its
// end.
func TestHistogramBatch_damaged(t *testing.T) {
	f := func(change func(*Histograms), want string) {
		t.Helper()
		row := Histograms{Group: []byte("g")}
		row.Add(1, &encoding.Histogram{Buckets: make([]encoding.HistogramBucket, 2)})
		change(&row)
		w := NewHistogramWriter(memory.NewGoAllocator())
		defer w.Release()
		w.Append(&row)
		rec := w.Record()
		defer rec.Release()
		r, err := NewHistogramReader(rec)
		if err != nil {
			t.Fatal(err)
		}
		var got Histograms
		if err := r.At(0, &got); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	f(func(h *Histograms) { h.Buckets[0] = 3 }, "histogram of 3 buckets, want 0 to 2")
	f(func(h *Histograms) { h.Buckets = []int32{1, 2} }, "histogram of 2 buckets, want 0 to 1")
	f(func(h *Histograms) { h.Buckets[0] = -1 }, "histogram of -1 buckets")
	f(func(h *Histograms) { h.Buckets[0] = 1 }, "2 elements of lower, want 1")
	f(func(h *Histograms) { h.Underflow = nil }, "0 elements of underflow, want 1")
	f(func(h *Histograms) { h.Time = append(h.Time, 2) }, "want 2")
	f(func(h *Histograms) { h.Upper = h.Upper[:1] }, "1 elements of upper, want 2")
	f(func(h *Histograms) { h.Notes = [][]byte{{1}} }, "0 elements of note_span, want 1")
}
