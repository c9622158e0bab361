package aggregate

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"downpour/encoding/scanplan"
)

// TestBuckets_equalOneByOne: buckets that a function computes in one call have the same bits as
// buckets that are computed one after the other, whatever their sizes and values.
func TestBuckets_equalOneByOne(t *testing.T) {
	value := rapid.OneOf(rapid.Float64(),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, 0.1, 1e300, math.Inf(1), math.Inf(-1), math.NaN()}))
	rapid.Check(t, func(t *rapid.T) {
		even := rapid.IntRange(0, 5).Draw(t, "size of all")
		var values []float64
		var ends []int32
		for range rapid.IntRange(0, 14).Draw(t, "buckets") {
			size := even
			if size == 0 || rapid.IntRange(0, 5).Draw(t, "other") == 0 {
				size = rapid.IntRange(1, 5).Draw(t, "size")
			}
			if rapid.IntRange(0, 3).Draw(t, "plain") > 0 {
				for range size {
					values = append(values, rapid.Float64Range(-1, 1).Draw(t, "value"))
				}
			} else {
				values = append(values, rapid.SliceOfN(value, size, size).Draw(t, "values")...)
			}
			ends = append(ends, int32(len(values)))
		}
		for _, name := range Names() {
			f, _ := Lookup(scanplan.Aggregator(name))
			checkBuckets(t, f, values, ends)
		}
	})
}

func checkBuckets(t *rapid.T, f *Function, values []float64, ends []int32) {
	var s, one State
	f.Reset(&s)
	got := f.Buckets(&s, []float64{7}, values, ends)
	if len(got) != len(ends)+1 || got[0] != 7 {
		t.Fatalf("%s: %d values behind %v, want %d behind 7", f.Name, len(got)-1, got[0], len(ends))
	}
	// Its state is that before any value.
	f.Reset(&one)
	f.Update(&s, []float64{3})
	f.Update(&one, []float64{3})
	if got, want := f.Value(&s), f.Value(&one); got != want && (got == got || want == want) {
		t.Fatalf("%s of 3 behind buckets: got %v, want %v", f.Name, got, want)
	}
	from := int32(0)
	for i, end := range ends {
		f.Reset(&one)
		f.Update(&one, values[from:end])
		want := f.Value(&one)
		if math.Float64bits(got[i+1]) != math.Float64bits(want) && (got[i+1] == got[i+1] || want == want) {
			t.Fatalf("%s of %v: got %v, want %v", f.Name, values[from:end], got[i+1], want)
		}
		from = end
	}
}
