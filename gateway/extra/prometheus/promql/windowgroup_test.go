package promql

import (
	"math"
	"testing"

	"downpour/pushdown/operator/window"
)

// The extreme of values at one time, in the order of their series. Of 0 and -0 it is mixed, until there is a more
// extreme value; where values come in order, the first of them stays, and no value is taken for a mark.
func TestWindowGroup_extremes(t *testing.T) {
	zero, mixed := math.Copysign(0, -1), math.Float64frombits(0x7ff0000000000003)
	f := func(function string, ordered bool, want float64, values ...float64) {
		t.Helper()
		var g window.Group
		g.Begin(function, ordered)
		for _, v := range values {
			g.AddSeries([]int64{1}, []float64{v})
		}
		if _, got := g.Values(); len(got) != 1 || math.Float64bits(got[0]) != math.Float64bits(want) {
			t.Errorf("%s of %v, in order: %t: got %v, want %v", function, values, ordered, got, want)
		}
	}
	if !window.IsMixed(math.Float64bits(mixed)) {
		t.Fatal("another NaN is the mark of mixed zeros")
	}
	for function, less := range map[string]float64{window.Max: -5, window.Min: 5} {
		for _, ordered := range []bool{false, true} {
			f(function, ordered, 0, less, 0)
			f(function, ordered, 0, 0, less)
			f(function, ordered, -less, 0, -less)
			f(function, ordered, less, less, math.NaN())
			f(function, ordered, 0, 0, math.NaN())
			f(function, ordered, less, math.NaN(), less)
			f(function, ordered, 0, 0, 0)
			f(function, ordered, zero, zero, zero)
		}
		f(function, false, mixed, 0, zero)
		f(function, false, mixed, zero, 0)
		f(function, false, mixed, 0, zero, less)
		f(function, false, mixed, 0, zero, 0)
		f(function, false, -less, 0, zero, -less)
		f(function, true, 0, 0, zero)
		f(function, true, zero, zero, 0)
		f(function, true, less, mixed, less)
	}
}
