package rate

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	_ "downpour/encoding/seedtest" // gives rapid its seed
)

func ints(values ...int64) (p encoding.Points) {
	for i, v := range values {
		p.Append(int64(i+1)*10_000, encoding.IntValue(v))
	}
	return p
}

func floats(values ...float64) (p encoding.Points) {
	for i, v := range values {
		p.Append(int64(i+1)*10_000, encoding.FloatValue(v))
	}
	return p
}

// TestPoints: points at 10 s, 20 s, … have these rates. The first one is measured from 0 at the
// epoch.
func TestPoints(t *testing.T) {
	f := func(name string, r scanplan.Rate, p encoding.Points, want ...float64) {
		t.Helper()
		times, got, err := Points(&r, p, nil, nil)
		if err != nil || len(times) != len(got) || !cmp.Equal(got, want) {
			t.Errorf("%s: got %v at %v, %v, want %v", name, got, times, err, want)
		}
	}
	counter := scanplan.Rate{Counter: true, CounterMax: 65535}
	f("plain", scanplan.Rate{}, ints(5, 25, 15), 0.5, 2, -1)
	f("no counter", scanplan.Rate{CounterMax: 100}, floats(15, 5), 1.5, -1)
	mixed := floats(5.5)
	mixed.Append(20_000, encoding.IntValue(25))
	f("an integer after a double", scanplan.Rate{}, mixed, 0.55, 1.95)
	f("wraps", scanplan.Rate{}, ints(-2, math.MaxInt64), -0.2, float64(math.MinInt64+1)/10)
	f("rollover", counter, ints(65500, 5), 6550, 4)
	f("rollover in integers", scanplan.Rate{Counter: true, CounterMax: math.MaxInt64}, ints(math.MaxInt64-3, 1),
		float64(math.MaxInt64)/10, 0.4)
	f("rollover of doubles", counter, floats(65500.5, 5.5), 6550.05, 4)
	f("unchanged", counter, ints(50, 50), 5, 0)
	f("unchanged doubles", counter, floats(50, 50), 5, 0)
	f("reset", scanplan.Rate{Counter: true, CounterMax: 65535, ResetValue: 3}, ints(65500, 5, 105), 6550, 0, 10)
	f("no reset", scanplan.Rate{Counter: true, CounterMax: 65535, ResetValue: 4}, ints(65500, 5), 6550, 4)
	f("drop", scanplan.Rate{Counter: true, DropResets: true}, ints(100, 5, 25), 10, 2)
	f("drop the first", scanplan.Rate{Counter: true, DropResets: true}, ints(-100, 5, 25), 10.5, 2)
	f("drop without counter", scanplan.Rate{DropResets: true}, ints(100, 0), 10, -10)
	f("empty", counter, encoding.Points{})
}

// Times that do not ascend are an error, and so is a point at the epoch: it has no time before it.
func TestOrder(t *testing.T) {
	for _, times := range [][]int64{{0}, {1000, 1000}, {2000, 1000}} {
		p := encoding.Points{Time: times, Bits: make([]uint64, len(times)), Float: make([]bool, len(times))}
		if _, _, err := Points(&scanplan.Rate{}, p, nil, nil); err == nil {
			t.Errorf("points at %v: got no error", times)
		}
		if _, _, err := Doubles(&scanplan.Rate{}, times, make([]float64, len(times)), nil, nil); err == nil {
			t.Errorf("doubles at %v: got no error", times)
		}
	}
}

// The rate of the first point is removed if there is one, which resets may have dropped.
func TestDropFirst(t *testing.T) {
	for _, c := range []struct {
		times []int64
		left  int
	}{{nil, 0}, {[]int64{5}, 0}, {[]int64{5, 6}, 1}, {[]int64{6, 7}, 2}} {
		times, values := DropFirst(5, c.times, make([]float64, len(c.times)))
		if len(times) != c.left || len(values) != c.left || c.left > 0 && times[c.left-1] != c.times[len(c.times)-1] {
			t.Errorf("rates at %v: %v are left with %d values, want the last %d", c.times, times, len(values), c.left)
		}
	}
}

// TestDoublesEqualPoints: Doubles makes of floats, NaN included, the rates that Points makes, also
// in the memory of its input.
func TestDoublesEqualPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.OneOf(rapid.Float64Range(-10, 10), rapid.Just(math.NaN()))).Draw(t, "values")
		r := scanplan.Rate{
			Counter:    rapid.Bool().Draw(t, "counter"),
			DropResets: rapid.Bool().Draw(t, "drop"),
			CounterMax: rapid.SampledFrom([]int64{10, math.MaxInt64}).Draw(t, "max"),
			ResetValue: rapid.Int64Range(-1, 2).Draw(t, "reset"),
		}
		p := floats(values...)
		wantTimes, want, err := Points(&r, p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		times, got, err := Doubles(&r, p.Time, values, p.Time[:0], values[:0])
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(text(times, got), text(wantTimes, want)) {
			t.Fatalf("got %v at %v, want %v at %v", got, times, want, wantTimes)
		}
	})
}

// text makes columns comparable bit by bit.
func text(times []int64, values []float64) (out []uint64) {
	for i, v := range values {
		out = append(out, uint64(times[i]), math.Float64bits(v))
	}
	return out
}

// TestColumnEqualsPoints: Column makes the rates that Points makes where no reset is dropped,
// whatever the types, also after points before the column.
func TestColumnEqualsPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &scanplan.Rate{
			Counter:    rapid.Bool().Draw(t, "counter"),
			CounterMax: rapid.SampledFrom([]int64{math.MaxInt64, 255}).Draw(t, "max"),
			ResetValue: rapid.SampledFrom([]int64{0, 3}).Draw(t, "reset"),
		}
		types := rapid.SampledFrom([]string{"ints", "floats", "mixed", "ints, then floats",
			"floats, then ints"}).Draw(t, "types")
		var p encoding.Points
		n := rapid.IntRange(2, 9).Draw(t, "points")
		from := rapid.IntRange(1, n-1).Draw(t, "from")
		for at := int64(0); p.Len() < n; {
			at += rapid.Int64Range(1, 5000).Draw(t, "step")
			v := encoding.IntValue(rapid.Int64().Draw(t, "int"))
			if types == "floats" || types == "mixed" && rapid.Bool().Draw(t, "is float") ||
				types == "ints, then floats" && p.Len() >= from || types == "floats, then ints" && p.Len() < from {
				v = encoding.FloatValue(rapid.SampledFrom([]float64{0, 1.5, -1e300, math.NaN(), math.Inf(1),
					0.1}).Draw(t, "float"))
			}
			p.Append(at, v)
		}
		_, want, err := Points(r, p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}

		column := p.Slice(from, p.Len())
		_, prev := p.At(from - 1)
		var seconds []float64
		for i, at := range column.Time {
			seconds = append(seconds, Seconds(p.Time[from+i-1], at))
		}
		float := column.Float
		isFloat := float[0]
		if !slices.Contains(float, !isFloat) && rapid.Bool().Draw(t, "one type") {
			float = nil
		}
		got := make([]float64, column.Len())
		Column(r, prev, column.Bits, float, isFloat, seconds, got)
		if diff := cmp.Diff(bitsOf(want[from:]), bitsOf(got)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// bitsOf returns the bits of doubles.
func bitsOf(values []float64) (bits []uint64) {
	for _, v := range values {
		bits = append(bits, math.Float64bits(v))
	}
	return bits
}
