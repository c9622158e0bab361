package encoding

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding/seedtest"
)

// drawHistogram returns a histogram of any bounds and counts.
func drawHistogram(r *rand.Rand) Histogram {
	bounds := []float32{0, float32(math.Copysign(0, -1)), 0.1, 1.75, -10, 1e30, float32(math.Inf(1)),
		float32(math.Inf(-1)), float32(math.NaN())}
	counts := []int64{0, 1, 127, 128, 16383, 16384, 1 << 31, 1<<56 - 1, 1 << 56, math.MaxInt64, -1, math.MinInt64}
	var buckets []HistogramBucket
	for range r.IntN(6) {
		buckets = append(buckets,
			HistogramBucket{bounds[r.IntN(len(bounds))], bounds[r.IntN(len(bounds))], counts[r.IntN(len(counts))]})
	}
	return NewHistogram(buckets, counts[r.IntN(len(counts))], counts[r.IntN(len(counts))])
}

// sameHistogram compares bounds as CompareBounds does, so that NaN equals NaN.
var sameHistogram = cmp.Comparer(func(a, b Histogram) bool {
	return a.SameBounds(&b) && a.Underflow == b.Underflow && a.Overflow == b.Overflow &&
		bytes.Equal(AppendHistogram(nil, &a), AppendHistogram(nil, &b))
})

// Histograms are read from the bytes that OpenTSDB 2.4.1 wrote, and written as the same bytes.
func TestHistogram_bytes(t *testing.T) {
	f := func(text string, want Histogram) {
		t.Helper()
		body, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		var got Histogram
		if err := ParseHistogram(body, &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, sameHistogram); diff != "" {
			t.Errorf("%s: want -, got +: %s", text, diff)
		}
		if again := AppendHistogram(nil, &want); !bytes.Equal(again, body) {
			t.Errorf("%+v is % x, want %s", want, again, text)
		}
	}
	f("0000 00 00", Histogram{})
	f("0002 00000000 3fe00000 9b03 3fe00000 40600000 01 00 05",
		Histogram{[]HistogramBucket{{0, 1.75, 411}, {1.75, 3.5, 1}}, 0, 5})
	f("0001 c1200000 00000000 ffffffffffffffffff 808080808080808080 ffffffffffffffff7f",
		Histogram{[]HistogramBucket{{-10, 0, -1}}, math.MinInt64, math.MaxInt64})
}

// A histogram is read as it was written, whatever is in it and with a byte behind it. A histogram
// that is cut short is refused.
func TestHistogram_roundTrip(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 20_000 {
		want := drawHistogram(r)
		body := AppendHistogram(nil, &want)
		got := drawHistogram(r) // its memory is reused
		if err := ParseHistogram(append(body, 7), &got); err != nil {
			t.Fatalf("seed %d: %+v: %v", seed, want, err)
		}
		if diff := cmp.Diff(want, got, sameHistogram); diff != "" {
			t.Fatalf("seed %d: want -, got +: %s", seed, diff)
		}
		for cut := range body {
			if err := ParseHistogram(body[:cut], &got); err == nil {
				t.Fatalf("seed %d: the first %d bytes of % x were read as a histogram", seed, cut, body)
			}
		}
	}
}

// Parsing takes buckets in any order and sorts them by their bounds. If several have the same
// bounds, the last one counts.
func TestHistogram_order(t *testing.T) {
	unsorted := Histogram{Buckets: []HistogramBucket{{5, 6, 1}, {0, 2, 2}, {0, 1, 3}, {5, 6, 4}}}
	var got Histogram
	if err := ParseHistogram(AppendHistogram(nil, &unsorted), &got); err != nil {
		t.Fatal(err)
	}
	want := Histogram{Buckets: []HistogramBucket{{0, 1, 3}, {0, 2, 2}, {5, 6, 4}}}
	if diff := cmp.Diff(want, got, sameHistogram); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}

	zero, minus, nan := float32(0), float32(math.Copysign(0, -1)), float32(math.NaN())
	ascending := []float32{float32(math.Inf(-1)), -2, -1, minus, zero, 1, 2, float32(math.Inf(1)), nan}
	for i, a := range ascending {
		for j, b := range ascending {
			x, y := HistogramBucket{Lower: a}, HistogramBucket{Lower: b}
			if a != a {
				x.Lower = -a // with its sign, which Java does not see
			}
			if got := x.CompareBounds(&y); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("bounds %v and %v compare as %d, want their order in the list", a, b, got)
			}
		}
	}
}

// Damaged bytes are refused, and no number of buckets in them makes ParseHistogram allocate more
// than the bytes can hold.
func TestParseHistogram_bounds(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		body, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		var h Histogram
		if err := ParseHistogram(body, &h); err == nil || !strings.Contains(err.Error(), want) ||
			cap(h.Buckets) > len(body) {
			t.Errorf("%s: %v with room for %d buckets, want %q", text, err, cap(h.Buckets), want)
		}
	}
	f("", "of 0 bytes")
	f("7fff 00 00", "said to have 32767 buckets")
	f("8000 00 00", "said to have 32768 buckets")
	f("0001 00000000 3fe00000 80", "count 80 is cut short")
	f("0001 00000000 3fe00000", "said to have 1 buckets, want at most 0")
	f("0002 00000000 3fe00000 8001 3fe00000 40600000", "bucket 1 of 2: the count  is cut short")
	f("0002 00000000 3fe00000 808001 3fe00000 406000", "ends in bucket 1 of 2")
	f("0000 00", "overflow")
	f("0000", "underflow")
}

// A histogram of as many buckets as there can be is read.
func TestParseHistogram_most(t *testing.T) {
	var h Histogram
	for i := range MaxHistogramBuckets {
		h.Buckets = append(h.Buckets, HistogramBucket{Lower: float32(i), Upper: float32(i + 1), Count: 1})
	}
	var got Histogram
	if err := ParseHistogram(AppendHistogram(nil, &h), &got); err != nil || len(got.Buckets) != MaxHistogramBuckets {
		t.Errorf("%d buckets, error %v, want %d", len(got.Buckets), err, MaxHistogramBuckets)
	}
	h.Buckets = append(h.Buckets, HistogramBucket{Lower: math.MaxInt16, Upper: math.MaxInt16 + 1})
	if err := ParseHistogram(AppendHistogram(nil, &h), &got); err == nil {
		t.Errorf("%d buckets are read, want %d at most", len(h.Buckets), MaxHistogramBuckets)
	}
}

// The sum of histograms does not depend on order and grouping, counts wrap around, and adding
// does not change what is added.
func TestHistogram_add(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 2))
	sum := func(all []Histogram) (total Histogram) {
		for i := range all {
			total.Add(&all[i])
		}
		return total
	}
	for range 3000 {
		all := make([]Histogram, 1+r.IntN(5))
		var before [][]byte
		for i := range all {
			all[i] = drawHistogram(r)
			before = append(before, AppendHistogram(nil, &all[i]))
		}
		want := sum(all)

		// Without Add: each bucket of a summand is in the sum, and has the sum of all its counts.
		for i := range all {
			for _, b := range all[i].Buckets {
				if !slices.ContainsFunc(want.Buckets,
					func(o HistogramBucket) bool { return o.CompareBounds(&b) == 0 }) {
					t.Fatalf("seed %d: the sum has no bucket %v", seed, b)
				}
			}
		}
		for _, b := range want.Buckets {
			count := int64(0)
			for i := range all {
				count += all[i].Count(&b)
			}
			if count != b.Count {
				t.Fatalf("seed %d: bucket %v has %d, want %d", seed, b, b.Count, count)
			}
		}
		var under, over int64
		for i := range all {
			under, over = under+all[i].Underflow, over+all[i].Overflow
		}
		if want.Underflow != under || want.Overflow != over {
			t.Fatalf("seed %d: %d below and %d above, want %d and %d", seed, want.Underflow, want.Overflow, under, over)
		}
		twice := sum([]Histogram{want, want})
		for i, b := range want.Buckets {
			if twice.Buckets[i].Count != 2*b.Count {
				t.Fatalf("seed %d: bucket %v, added to itself, has %d", seed, b, twice.Buckets[i].Count)
			}
		}
		at := r.IntN(len(all) + 1)
		left, right := sum(all[:at]), sum(all[at:])
		right.Add(&left)
		if diff := cmp.Diff(want, right, sameHistogram); diff != "" {
			t.Fatalf("seed %d: in two parts: want -, got +: %s", seed, diff)
		}
		for i := range all {
			if !bytes.Equal(before[i], AppendHistogram(nil, &all[i])) {
				t.Fatalf("seed %d: adding has changed histogram %d", seed, i)
			}
		}
	}
}

func TestHistogram_percentile(t *testing.T) {
	f := func(h Histogram, p, want float64) {
		t.Helper()
		if got := h.Percentile(p); got != want {
			t.Errorf("%+v: percentile %v is %v, want %v", h, p, got, want)
		}
	}
	h := Histogram{[]HistogramBucket{{0, 0.1, 1}, {0.1, 0.25, 2}, {0.25, 1, 1}}, 1000, 1000}
	f(h, 1, 0.05000000074505806)
	f(h, 25, 0.05000000074505806)
	f(h, 25.5, 0.17499999701976776) // the middle is computed in 32 bits
	f(h, 75, 0.17499999701976776)
	f(h, 100, 0.625)
	f(h, 0.999, -1)
	f(h, 0, -1)
	f(Histogram{Underflow: 3, Overflow: 4}, 50, 0)
	f(Histogram{Buckets: []HistogramBucket{{0, 1, 0}}}, 50, 0)
	// OpenTSDB cuts counts to 32 bits: 2^32 becomes 0.
	f(Histogram{Buckets: []HistogramBucket{{0, 1, 1 << 32}, {2, 4, 1}}}, 50, 3)
	// The sum of counts wraps around to a negative number, and so no bucket has 50 % of it.
	f(Histogram{Buckets: []HistogramBucket{{0, 1, math.MaxInt32}, {2, 4, 1}}}, 50, 0)
}

func TestHistogramQualifier(t *testing.T) {
	f := func(text string, offsetMS int32, milli bool) {
		t.Helper()
		q, _ := hex.DecodeString(text)
		got, gotMilli, err := ParseHistogramQualifier(q)
		if err != nil || got != offsetMS || gotMilli != milli || !IsHistogram(q) {
			t.Errorf("%s: %d %t %v, want %d %t", text, got, gotMilli, err, offsetMS, milli)
		}
		if again := AppendHistogramQualifier(nil, offsetMS, milli); !bytes.Equal(again, q) {
			t.Errorf("%d %t is % x, want %s", offsetMS, milli, again, text)
		}
	}
	f("06003c", 60_000, false)
	f("060e0f", 3_599_000, false)
	f("060000eb5a", 60_250, true)
	f("0600000000", 0, true)
	f("060036ee7f", 3_599_999, true) // the last one of a row

	for _, text := range []string{"060e10", "060036ee80", "0600", "05003c", "06003c00"} {
		q, _ := hex.DecodeString(text)
		if at, _, err := ParseHistogramQualifier(q); err == nil {
			t.Errorf("%s is a histogram at %d", text, at)
		}
	}
	if IsHistogram([]byte{0x06, 0x01}) || IsHistogram(nil) {
		t.Error("a point or nothing is taken for a histogram")
	}
}

func FuzzHistogram(f *testing.F) {
	for _, text := range []string{"00000000", "000200000000 3fe00000 9b03 3fe00000 40600000 01 00 05",
		"0001c120000000000000ffffffffffffffffff0000"} {
		b, _ := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var h, again Histogram
		if err := ParseHistogram(body, &h); err != nil {
			return
		}
		if err := ParseHistogram(AppendHistogram(nil, &h), &again); err != nil {
			t.Fatalf("% x parses to %+v, whose bytes do not: %v", body, h, err)
		}
		if diff := cmp.Diff(h, again, sameHistogram); diff != "" {
			t.Errorf("% x: want -, got +: %s", body, diff)
		}
		h.Percentile(50)
		h.Add(&again)
	})
}
