package aggregate

import (
	"math"
	"slices"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
)

// at applies a group's function to values of one time.
func at(t *testing.T, name scanplan.Aggregator, values ...encoding.Value) encoding.Value {
	t.Helper()
	fn, ok := Lookup(name)
	if !ok {
		t.Fatalf("no function %s", name)
	}
	var members []Series
	for _, v := range values {
		members = append(members, Series{Time: []int64{1000}, Bits: []uint64{v.Bits}, Float: []bool{v.Float}})
	}
	var g Group
	var out encoding.Points
	if err := g.Aggregate(fn, Query{To: 3600, End: 5000}, members, &out); err != nil || out.Len() != 1 {
		t.Fatalf("%s: %d points, %v", name, out.Len(), err)
	}
	_, v := out.At(0)
	return v
}

// TestIntegerQuirks: integers are aggregated by those of OpenTSDB's rules that few recorded
// answers show.
func TestIntegerQuirks(t *testing.T) {
	f := func(name scanplan.Aggregator, want int64, values ...int64) {
		t.Helper()
		var in []encoding.Value
		for _, v := range values {
			in = append(in, encoding.IntValue(v))
		}
		if got := at(t, name, in...); got != encoding.IntValue(want) {
			t.Errorf("%s of %v: got %v, want %d", name, values, got, want)
		}
	}
	f("sum", math.MinInt64, math.MaxInt64, 1) // wraps
	f("avg", -3, -5, -2)                      // -3.5 toward zero
	f("mult", -2, math.MaxInt64, 2)
	f("squareSum", 25, 3, -4)
	f("median", 3, 1, 2, 3, 4) // the upper one
	f("dev", 4, 0, 9)          // 4.5
	f("diff", 7, 1, 100, 8)
	f("diff", 0, 5)
	f("ep75r3", 4, 6, 5, 4, 3, 2, 1) // 4.5 rounds to the even 4
	f("ep75r7", 4, 6, 5, 4, 3, 2, 1) // position 4.75 is 4.75
	f("p75", 5, 6, 5, 4, 3, 2, 1)    // position 5.25 is 5.25
	f("p50", math.MaxInt64, math.MaxInt64, math.MaxInt64)
	f("p999", 3, 1, 3, 2)
	f("ep50r3", 1, 1, 3) // position 1
}

// Of 0.0 and -0.0 the first one stays the minimum and the maximum, also within a bucket.
func TestScalar_zeros(t *testing.T) {
	negative := math.Copysign(0, -1)
	for _, name := range []scanplan.Aggregator{"min", "max"} {
		for _, values := range [][]float64{{0, negative}, {negative, 0}} {
			var s State
			f, _ := Lookup(name)
			f.Reset(&s)
			f.Update(&s, values)
			if got := f.Value(&s); math.Signbit(got) != math.Signbit(values[0]) {
				t.Errorf("%s of %v: got %v, want the first", name, values, got)
			}
		}
	}
}

// TestDoubleQuirks: doubles are aggregated by OpenTSDB's rules for NaN, infinity and the sign of
// zero.
func TestDoubleQuirks(t *testing.T) {
	nan, inf, minus := math.NaN(), math.Inf(1), math.Copysign(0, -1)
	f := func(name scanplan.Aggregator, want float64, values ...float64) {
		t.Helper()
		var in []encoding.Value
		for _, v := range values {
			in = append(in, encoding.FloatValue(v))
		}
		got := at(t, name, in...).Double()
		if math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
			t.Errorf("%s of %v: got %v, want %v", name, values, got, want)
		}
	}
	f("sum", 3, 1, nan, 2)
	f("sum", nan, nan, nan)
	f("sum", 0, minus) // begins at +0.0
	f("min", 0, 0, minus)
	f("min", minus, minus, 0)
	f("min", 4, nan, 4)
	f("min", nan, inf, inf)
	f("max", nan, -inf)
	f("mult", nan, 2, nan)
	f("count", 0, nan, nan)
	f("count", 1, nan, 7)
	f("first", nan, nan, 1)
	f("last", nan, 1, nan)
	f("diff", 2, nan, 1, 3)
	f("diff", nan, 1, nan)
	f("diff", 2, 1, nan, 3)
	f("dev", 0, nan, 5, nan)
	f("dev", 1, 1, nan, 3)
	f("median", 0, minus, 0)
	f("ep75r3", 5.25, 6, 5, 4, 3, 2, 1) // the name's estimation type is ignored: as p75
	f("ep75r7", 5.25, 6, 5, 4, 3, 2, 1)
	f("p95", nan, nan)
}

// TestKth: kth selects the right value also from columns that partitioning is slow for: equal
// values, and values that rise and fall.
func TestKth(t *testing.T) {
	for _, n := range []int{1, 2, 25, 100, 1000, 5000} {
		for _, k := range []int{0, n / 3, n / 2, n - 1} {
			same, saw := make([]int64, n), make([]int64, n)
			for i := range saw {
				saw[i] = int64(min(i, n-1-i))
			}
			if got := kth(same, k); got != 0 {
				t.Errorf("%d equal values: got %d, want 0", n, got)
			}
			if got, want := kth(saw, k), int64(k/2); got != want {
				t.Errorf("index %d of %d: got %d, want %d", k, n, got, want)
			}
		}
	}
}

// Merged members are counted together, whatever the function.
func TestMerge_live(t *testing.T) {
	for i := range table {
		f := &table[i]
		if f.merging == nil {
			continue
		}
		p, src := f.NewPartial(1), f.NewPartial(1)
		p.Live[0], p.N[0], src.Live[0], src.N[0] = 3, 3, 4, 4
		if f.Merge(p, 0, src); p.Live[0] != 7 {
			t.Errorf("%s: %d members of 3 and 4", f.Name, p.Live[0])
		}
	}
}

// The first value is its own mean and has no distance from it, also if it is infinite.
func TestWelford_first(t *testing.T) {
	for _, v := range []float64{2, math.Inf(1)} {
		if mean, squares := welford(0, 0, v, 1); mean != v || squares != 0 {
			t.Errorf("of %v: mean %v, squares %v, want itself and 0", v, mean, squares)
		}
	}
}

// Three parts give what the whole group gives, whichever two of them are merged first, also where a part has only NaN
// or one value.
func TestMerge_grouping(t *testing.T) {
	pieces := [][]float64{{3}, {7, -2}, {math.NaN()}, {math.NaN(), 5}, {1, 4, 9}}
	for i := range table {
		f := &table[i]
		if m, ok := f.Mergeability(); !ok || m.AllAtOnce {
			continue
		}
		partial := func(pieces ...[]float64) *Partial {
			p := f.NewPartial(1)
			for _, v := range slices.Concat(pieces...) {
				f.AddValues(p, 0, []float64{v})
			}
			return p
		}
		merged := func(p, src *Partial) *Partial {
			f.Merge(p, 0, src)
			return p
		}
		value := func(p *Partial) float64 {
			var out [1]float64
			f.Finish(p, 0, out[:])
			return out[0]
		}
		for _, a := range pieces {
			for _, b := range pieces {
				for _, c := range pieces {
					want := value(partial(a, b, c))
					first := value(merged(merged(partial(a), partial(b)), partial(c)))
					last := value(merged(partial(a), merged(partial(b), partial(c))))
					for _, got := range []float64{first, last} {
						if !(math.Abs(got-want) < 1e-9) && !(got != got && want != want) {
							t.Errorf("%s of %v, %v and %v: got %v, the first two merged first, and %v, want %v",
								f.Name, a, b, c, first, last, want)
						}
					}
				}
			}
		}
	}
}

// kth is what sorting says of drawn values, few or many of them equal, and leaves no larger one before index k.
func TestKth_drawn(t *testing.T) {
	r := seedtest.Rand(t)
	for range 3000 {
		values := make([]int64, 1+r.IntN(120))
		distinct := []int64{2, 5, 1000}[r.IntN(3)]
		for i := range values {
			values[i] = r.Int64N(distinct)
		}
		k := r.IntN(len(values))
		sorted := slices.Sorted(slices.Values(values))
		if got := kth(values, k); got != sorted[k] || slices.Max(values[:k+1]) != got || slices.Min(values[k:]) != got {
			t.Fatalf("index %d of %v: got %d in %v", k, sorted, got, values)
		}
	}
}

// A column of times covers another exactly if it has all of its times.
func TestCovers(t *testing.T) {
	r := seedtest.Rand(t)
	draw := func() (times []int64) {
		for ms := range int64(8) {
			if r.IntN(3) > 0 || ms == 7 && len(times) == 0 {
				times = append(times, ms)
			}
		}
		return times
	}
	for range 3000 {
		u, s := draw(), draw()
		want := true
		for _, ms := range s {
			want = want && slices.Contains(u, ms)
		}
		if got := covers(u, s); got != want {
			t.Fatalf("%v covers %v: %t, want %t", u, s, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	for v, want := range map[float64]int64{1e19: math.MaxInt64, -1e19: math.MinInt64, 1 << 63: math.MaxInt64,
		-1.9: -1, 3 << 61: 3 << 61, -1 << 63: math.MinInt64} {
		if got := truncate(v); got != want {
			t.Errorf("%v: got %d, want %d", v, got, want)
		}
	}
	if got := truncate(math.NaN()); got != 0 {
		t.Errorf("NaN: got %d, want 0", got)
	}
}

// A column covers the begin of itself, and not what goes on after it.
func TestCovers_shared(t *testing.T) {
	all := []int64{1, 2, 3}
	if !covers(all, all[:2]) || covers(all[:2], all) {
		t.Error("of columns that share memory the shorter one covers the longer one, or is not covered")
	}
}
