package dispatch

import (
	"slices"
	"testing"

	"downpour/encoding/scanplan"
)

// A cut is at the hour whose number since 1970 has the most zeros, of those that miss the goal by the slack at most; if
// there is none, at the nearest hour. A range that ends inside an hour is not cut at its end.
func TestCumulativeBytes_cuts(t *testing.T) {
	even := accumulate([]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	for _, c := range []struct {
		bytes       cumulativeBytes
		from        int
		goal, slack float64
		want        int
	}{
		{even, 1, 6, 1, 6}, // 4 has more zeros, but too few bytes
		{even, 1, 6, 2, 8},
		{even, 1, 6, 0, 6},
		{accumulate([]float64{1, 9, 9}), 1, 8, 1, 2},
		{accumulate([]float64{3, 9, 9}), 1, 5, 1, 1},
		{accumulate([]float64{3, 4, 9}), 1, 5, 1, 1}, // equally near
		{accumulate([]float64{9, 9, 9}), 1, 5, 1, 1}, // none is nearer
	} {
		if got := c.bytes.cut(0, c.from, c.goal, c.slack); got != c.want {
			t.Errorf("%v is cut at %d, want %d", c, got, c.want)
		}
	}
	if got := accumulate([]float64{100, 1}).cuts(0, 0, 0.5, 10); len(got) > 0 {
		t.Errorf("half an hour is cut at %d", got)
	}
	if got := even.cuts(0, 0, 10, 4); !slices.Equal(got, []int{4, 8}) {
		t.Errorf("cut at %d, want 4 and 8", got)
	}
}

// Keys are inside an hour, or between two; those outside the plan's salt bucket and metric are at its first hour or
// behind its last one.
func TestHourPositions(t *testing.T) {
	plan := hoursPlan(6, 1)
	at := func(seconds uint32, more ...byte) scanplan.HexBytes {
		return append(plan.Schema.AppendRangeKey(nil, 0, metric, base+seconds), more...)
	}
	head := at(0)[:plan.Schema.BaseTimeAt()]
	for _, c := range []struct {
		start, stop scanplan.HexBytes
		from, to    float64
	}{
		{at(0), at(6 * 3600), 0, 6},
		{at(3600), at(2 * 3600), 1, 2},
		{at(3600, 0, 0, 1), at(2*3600, 0, 0, 1), 1.5, 2.5},
		{at(1800), at(3*3600 + 1), 0.5, 3.5},
		{head, at(2 * 3600), 0, 2},
		{head[:1], at(2 * 3600), 0, 6},
		{at(3600), key(0xFF), 1, 6},
		{at(3600), nil, 1, 6},
		{at(3600), at(9 * 3600), 1, 6},
	} {
		from, to := hourPositions(&plan, scanplan.KeyRange{Start: c.start, Stop: c.stop})
		if from != c.from || to != c.to {
			t.Errorf("[%s, %s): %v to %v, want %v to %v", c.start, c.stop, from, to, c.from, c.to)
		}
	}
}
