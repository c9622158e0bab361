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
	f("wraps", scanplan.Rate{}, ints(-2, math.MaxInt64), -0.2, float64(math.MinInt64+1)/10)
	f("rollover", counter, ints(65500, 5), 6550, 4)
	f("rollover in integers", scanplan.Rate{Counter: true, CounterMax: math.MaxInt64}, ints(math.MaxInt64-3, 1),
		float64(math.MaxInt64)/10, 0.4)
	f("rollover of doubles", counter, floats(65500.5, 5.5), 6550.05, 4)
	f("reset", scanplan.Rate{Counter: true, CounterMax: 65535, ResetValue: 3}, ints(65500, 5, 105), 6550, 0, 10)
	f("drop", scanplan.Rate{Counter: true, DropResets: true}, ints(100, 5, 25), 10, 2)
	f("drop the first", scanplan.Rate{Counter: true, DropResets: true}, ints(-100, 5, 25), 10.5, 2)
	f("drop without counter", scanplan.Rate{DropResets: true}, ints(100, 0), 10, -10)
	f("empty", counter, encoding.Points{})
}

func TestPointsAtTheEpoch(t *testing.T) {
	var p encoding.Points
	p.Append(0, encoding.IntValue(1))
	if _, _, err := Points(&scanplan.Rate{}, p, nil, nil); err == nil {
		t.Error("a point at the epoch has no time before it, want an error")
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
//
//fault:rates-from-the-first-point =>
func TestColumnEqualsPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &scanplan.Rate{
			Counter:    rapid.Bool().Draw(t, "counter"),
			CounterMax: rapid.SampledFrom([]int64{math.MaxInt64, 255}).Draw(t, "max"),
			ResetValue: rapid.SampledFrom([]int64{0, 3}).Draw(t, "reset"),
		}
		types := rapid.SampledFrom([]string{"ints", "floats", "mixed"}).Draw(t, "types")
		var p encoding.Points
		for at, n := int64(0), rapid.IntRange(2, 9).Draw(t, "points"); p.Len() < n; {
			at += rapid.Int64Range(1, 5000).Draw(t, "step")
			v := encoding.IntValue(rapid.Int64().Draw(t, "int"))
			if types == "floats" || types == "mixed" && rapid.Bool().Draw(t, "is float") {
				v = encoding.FloatValue(rapid.SampledFrom([]float64{0, 1.5, -1e300, math.NaN(), math.Inf(1),
					0.1}).Draw(t, "float"))
			}
			p.Append(at, v)
		}
		_, want, err := Points(r, p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}

		from := rapid.IntRange(1, p.Len()-1).Draw(t, "from")
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
