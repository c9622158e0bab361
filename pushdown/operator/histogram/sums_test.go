package histogram_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/pushdown/operator/histogram"
)

// of returns a histogram with a count of 1 in each bucket.
func of(lower ...float32) *encoding.Histogram {
	h := &encoding.Histogram{}
	for _, l := range lower {
		h.Buckets = append(h.Buckets, encoding.HistogramBucket{Lower: l, Upper: l + 1, Count: 1})
	}
	return h
}

// Histograms of one time take the memory of their sum, in whatever order they are added.
func TestSums_bytes(t *testing.T) {
	var all, ascending, descending histogram.Sums
	all.Group([]byte("a")).Add(7, of(1, 2, 3, 4, 5))
	for i := range 5 {
		ascending.Group([]byte("a")).Add(7, of(float32(1+i)))
		descending.Group([]byte("a")).Add(7, of(float32(5-i)))
		descending.Group([]byte("a")).Add(7, of(float32(5-i))) // its bucket is there
	}
	if a, b, c := all.Bytes(), ascending.Bytes(), descending.Bytes(); a == 0 || a != b || a != c {
		t.Errorf("at once %d bytes, ascending %d, descending %d, want the same", a, b, c)
	}
	one := all.Bytes()
	if all.Group([]byte("a")).Add(8, of(1, 2)); all.Bytes() <= one {
		t.Errorf("another time takes no memory: %d, %d", one, all.Bytes())
	}
	if all.Reset(); all.Bytes() != 0 {
		t.Errorf("empty: %d bytes", all.Bytes())
	}
}

// Groups come in the order of their keys, and times ascend, however they were added.
func TestSums_order(t *testing.T) {
	var s histogram.Sums
	h := of(1)
	for _, at := range []int64{9, 7, 8, 7} {
		s.Group([]byte{byte(at % 2)}).Add(at, h)
	}
	h.Buckets[0].Count = 100 // what is kept is a copy
	got := map[string]map[int64]int64{}
	var keys []string
	for _, g := range s.Sorted() {
		keys = append(keys, g.Key)
		got[g.Key] = map[int64]int64{}
		if times := g.Times(); !slices.IsSorted(times) {
			t.Errorf("times are %d", times)
		}
		for _, at := range g.Times() {
			got[g.Key][at] = g.At(at).Buckets[0].Count
		}
	}
	want := map[string]map[int64]int64{"\x00": {8: 1}, "\x01": {7: 2, 9: 1}}
	if d := cmp.Diff(want, got); d != "" || !slices.IsSorted(keys) {
		t.Errorf("groups %q: -want +got\n%s", keys, d)
	}
}
