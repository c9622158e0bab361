package aggregate

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Members that are added to a partial aggregate one by one give what the group of them gives, at the
// times at which one of them has a point.
func TestPartial_equalsGroup(t *testing.T) {
	grid := []int64{0, 10, 20, 30, 40, 50, 60, 70}
	rapid.Check(t, func(t *rapid.T) {
		f := &table[rapid.IntRange(0, len(table)-1).Draw(t, "function")]
		if !f.Mergeable() {
			return
		}
		members := make([]Series, rapid.IntRange(1, 4).Draw(t, "members"))
		p, scratch := f.NewPartial(len(grid)), []float64(nil)
		for i := range members {
			s := &members[i]
			for _, ms := range grid {
				if rapid.Bool().Draw(t, "point") {
					s.Time, s.Value = append(s.Time, ms),
						append(s.Value, rapid.Float64Range(-100, 100).Draw(t, "value"))
				}
			}
			scratch = f.AddMember(p, grid, *s, scratch)
		}
		var g Group
		var got, want encoding.Points
		if err := g.Aggregate(f, Query{To: 7200, End: 1 << 40}, members, &want); err != nil {
			t.Fatal(err)
		}
		values := make([]float64, len(grid))
		f.Finish(p, 0, values)
		for i, ms := range grid {
			if p.Real[i] {
				got.Append(ms, encoding.FloatValue(values[i]))
			}
		}
		if d := diff(got, want); d != "" {
			t.Fatalf("%s: %s", f.Name, d)
		}
	})
}

// summed returns the partial aggregate, at one time, of addends that the named function has added
// in order.
func summed(name string, addends ...float64) *Partial {
	f := byName[scanplan.Aggregator(name)]
	p := f.NewPartial(1)
	for _, x := range addends {
		f.AddValues(p, 0, []float64{x})
	}
	return p
}

func TestLowestBit(t *testing.T) {
	f := func(x float64, want int16) {
		t.Helper()
		if got := lowestBit(x); got != want {
			t.Errorf("lowest bit of %v: %d, want %d", x, got, want)
		}
	}
	f(1, 0)
	f(-1, 0)
	f(12, 2)
	f(0.1, -55)
	f(1.5, -1)
	f(1<<53-1, 0)
	f(1<<53, 53)
	f(math.SmallestNonzeroFloat64, -1074)
	f(0x1.8p-1022, -1023)
	f(0x1p-1022, -1022)
	f(0x1p1023, 1023)
	f(math.MaxFloat64, 971)
}

// A sum is exact if its addends are multiples of 2^k and their absolute values sum to less than
// 2^(53+k), see Proof; these are sums at both sides of that bound.
//
//fault:one-bit-too-many < => <=
func TestProof_exact(t *testing.T) {
	f := func(name string, want bool, addends ...float64) {
		t.Helper()
		p := summed("sum", addends...)
		if got := p.Exact(0); got != want {
			t.Errorf("%s: exact is %t, want %t: multiples of 2^%d, together %g", name, got, want, p.Low[0], p.Bound[0])
		}
	}
	zero, inf := math.Copysign(0, -1), math.Inf(1)
	f("nothing", true)
	f("zeros", true, 0, zero)
	f("not a number", true, nan)
	f("one value", true, 0.1)
	f("integers", true, 1, -2, 3, 1<<40)
	f("just below", true, 1<<53-2, 1)
	f("just there", false, 1<<53-1, 1)
	f("a tie, rounded down", false, 1<<53, 1)
	f("both signs count", false, 1<<52, -1<<52, 1)
	f("decimals", false, 0.1, 1000)
	f("as many bits elsewhere", true, 0x1p-1074, 0x1p-1022)
	f("largest", true, math.MaxFloat64)
	f("too large", false, math.MaxFloat64, 0x1p971)
	f("large and small", false, 0x1p1023, 1)
	f("infinite", false, inf)
	f("infinite among others", false, 1, -inf)
	squares := summed("squareSum", 3, -5)
	if !squares.Exact(0) || squares.Bound[0] != 34 || summed("squareSum", 1<<26, 1).Bound[0] != 1<<52+1 ||
		summed("squareSum", 1<<27, 1).Exact(0) {
		t.Errorf("squares %+v, want the proof of the squares, which are what is added", squares.Proof)
	}
}

// The proofs that the example in partial-batch.md ships.
func TestProof_example(t *testing.T) {
	p, other := summed("sum", 3, 4.5, -8), summed("sum", 1000, 0)
	low, high := p.Shipped()
	otherLow, otherHigh := other.Shipped()
	if p.A[0] != -0.5 || low[0] != -1 || high[0] != 4 || otherLow[0] != 3 || otherHigh[0] != 10 {
		t.Errorf("sum %v: low %v, high %v; of 1000: low %v, high %v; want sum -0.5, -1, 4, and 3, 10", p.A, low, high,
			otherLow, otherHigh)
	}
	if zeros, _ := summed("sum", 0, 0).Shipped(); zeros[0] != 32767 {
		t.Errorf("low of zeros %v, want 32767", zeros)
	}
}

// drawAddends draws numbers of few or many bits, of like or very different sizes.
func drawAddends(t *rapid.T) (out []float64) {
	scale := rapid.IntRange(-1080, 1000).Draw(t, "scale")
	spread := rapid.SampledFrom([]int{1, 10, 30, 45, 60}).Draw(t, "spread")
	most := int64(1) << rapid.IntRange(1, 53).Draw(t, "bits")
	for range rapid.IntRange(2, 30).Draw(t, "addends") {
		x := math.Ldexp(float64(rapid.Int64Range(-most, most).Draw(t, "digits")),
			scale+rapid.IntRange(0, spread).Draw(t, "shift"))
		out = append(out, rapid.SampledFrom([]float64{x, x, x, x, 0, math.Copysign(0, -1), nan}).Draw(t, "addend"))
	}
	return out
}

// shuffled adds the addends up in a random order and in random pieces. The proof of each piece is
// the one that arrives when a part has shipped it.
func shuffled(rng *rand.Rand, name string, addends []float64) *Partial {
	f := byName[scanplan.Aggregator(name)]
	order := rng.Perm(len(addends))
	total := f.NewPartial(1)
	for len(order) > 0 {
		n := 1 + rng.IntN(len(order))
		piece := f.NewPartial(1)
		for _, i := range order[:n] {
			f.AddValues(piece, 0, addends[i:i+1])
		}
		piece.Receive(piece.Shipped())
		f.Merge(total, 0, piece)
		order = order[n:]
	}
	return total
}

// sameInAnyOrder fails if a proof is wrong. If the proof of the whole sum, or the shipped proofs
// of its pieces together, say that the sum is exact, then sums in all orders must have the same
// bits. It reports whether one of them says so.
func sameInAnyOrder(t interface{ Fatalf(string, ...any) }, rng *rand.Rand, addends []float64) (proven bool) {
	want := summed("sum", addends...)
	proven = want.Exact(0)
	for range 20 {
		got := shuffled(rng, "sum", addends)
		proven = proven || got.Exact(0)
		if got.Exact(0) && !want.Exact(0) {
			t.Fatalf("%v are proven in pieces (2^%d, %g) and not as a whole (2^%d, %g)", addends, got.Low[0],
				got.Bound[0], want.Low[0], want.Bound[0])
		}
		if proven && math.Float64bits(got.A[0]) != math.Float64bits(want.A[0]) {
			t.Fatalf("%v add up to %v and to %v, and are proven: 2^%d, %g", addends, want.A[0], got.A[0], want.Low[0],
				want.Bound[0])
		}
	}
	return proven
}

// A sum that is proven exact has the same bits in every order and grouping, and sums of scaled
// integers of up to 40 bits are proven.
func TestProof_anyOrder(t *testing.T) {
	var proven, not int
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		if sameInAnyOrder(t, rng, drawAddends(t)) {
			proven++
		} else {
			not++
		}
		integers := rapid.SliceOfN(rapid.Int64Range(-1<<40, 1<<40), 2, 50).Draw(t, "integers")
		addends := make([]float64, len(integers))
		for i, v := range integers {
			addends[i] = math.Ldexp(float64(v), -3)
		}
		if !sameInAnyOrder(t, rng, addends) {
			t.Fatalf("%v are not proven", addends)
		}
	})
	t.Logf("%d cases proven, %d not", proven, not)
	if proven == 0 || not == 0 {
		t.Errorf("%d cases proven, %d not, want some of both", proven, not)
	}
}

// FuzzProof: no proof of a sum of any doubles is wrong. The input has eight bytes for each.
func FuzzProof(f *testing.F) {
	add := func(addends ...float64) {
		var b []byte
		for _, x := range addends {
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(x))
		}
		f.Add(b)
	}
	add(0.1, 0.2, 0.3)
	add(1<<53, 1, 1)
	add(math.MaxFloat64, 0x1p970, -math.MaxFloat64)
	add(math.Inf(1), math.Inf(-1), nan, math.Copysign(0, -1))
	add(0x1p-1074, -0x1p-1022, 0x1p-1021)
	f.Fuzz(func(t *testing.T, b []byte) {
		var addends []float64
		for ; len(b) >= 8 && len(addends) < 100; b = b[8:] {
			addends = append(addends, math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
		sameInAnyOrder(t, rand.New(rand.NewPCG(uint64(len(addends)), 0)), addends)
	})
}

// A proof that was shipped proves no more than the one that was made. The proof of a single
// addend ships no columns and proves as much; a proof of several that ships none proves nothing.
func TestProof_shipped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := byName["sum"]
		p := f.NewPartial(3)
		for i := range 3 {
			for _, x := range rapid.SliceOfN(rapid.Float64(), 0, 3).Draw(t, "addends") {
				f.AddValues(p, i, []float64{x})
			}
		}
		got := *p
		got.Receive(p.Shipped())
		for i := range 3 {
			if got.Bound[i] < p.Bound[i] || got.Exact(i) && !p.Exact(i) {
				t.Fatalf("shipped %d %g, received %d %g, want a bound that is no smaller and no more proven", p.Low[i],
					p.Bound[i], got.Low[i], got.Bound[i])
			}
		}
	})
	for _, x := range []float64{0, 1, 0.1, -3, math.MaxFloat64, math.SmallestNonzeroFloat64, nan} {
		one := summed("sum", x)
		low, high := one.Shipped()
		if one.Receive(low, high); len(low)+len(high) > 0 || !one.Exact(0) || x == x && one.Bound[0] != math.Abs(x) {
			t.Errorf("%v alone ships %v, %v and is received as %+v, want nothing shipped and an exact sum", x, low,
				high, one.Proof)
		}
		two := summed("sum", x, 0)
		if low, high = two.Shipped(); len(low) != 1 || len(high) != 1 {
			t.Errorf("%v and 0 ship %v, %v, want one element each", x, low, high)
		}
	}
	for _, addends := range [][]float64{{math.Inf(1), 1}, {0.1, 1000}} {
		p, one := summed("sum", addends...), summed("sum", 1)
		low, high := p.Shipped()
		if p.Receive(low, high); low != nil || high != nil || p.Exact(0) || p.ExactWith(0, &one.Proof, 0) {
			t.Errorf("%v ship %v, %v and are received as %+v, want nothing shipped and nothing proven", addends, low,
				high, p.Proof)
		}
	}
	inf := summed("sum", math.Inf(-1))
	if inf.Receive(inf.Shipped()); inf.Exact(0) {
		t.Errorf("an infinite value is received as %+v, want nothing proven", inf.Proof)
	}
}

// What is proven at one time is shipped, whatever is proven at others, and only that is proven where it arrives.
func TestProof_shippedTimes(t *testing.T) {
	f := byName["sum"]
	for _, addends := range [][][]float64{{{1, 2}, {0.1, 1000}}, {{1, 2}, {math.Inf(1), 1}}, {{1, 2}, {5}}} {
		p := f.NewPartial(len(addends))
		want := make([]bool, len(addends))
		for i, some := range addends {
			f.AddValues(p, i, some[:1])
			f.AddValues(p, i, some[1:])
			want[i] = p.Exact(i)
		}
		low, high := p.Shipped()
		p.Receive(low, high)
		for i := range addends {
			if p.Exact(i) != want[i] || !want[0] || len(low) != len(addends) {
				t.Errorf("%v ship %v, %v: time %d is exact: %t, want %t", addends, low, high, i, p.Exact(i), want[i])
			}
		}
	}
}

// Results from a time on are those of the same values at the first one.
func TestFinish_from(t *testing.T) {
	for i := range table {
		f := &table[i]
		if !f.Mergeable() {
			continue
		}
		var got, want [1]float64
		first, second := f.NewPartial(1), f.NewPartial(2)
		for _, v := range []float64{3, 5} {
			f.AddValues(first, 0, []float64{v})
			f.AddValues(second, 1, []float64{v})
		}
		f.Finish(first, 0, want[:])
		if f.Finish(second, 1, got[:]); got != want {
			t.Errorf("%s at the second time: got %v, want %v", f.Name, got, want)
		}
	}
}
