// Package changes says how much a series differs between two stretches of time, and keeps those that differ most. It
// knows no clock, store or network: changesroutes has the series read.
package changes

import (
	"math"

	"downpour/encoding"
)

// Stretches are two stretches of time, one behind the other, both cut into buckets of the same width. Times are ms
// since 1970; From and End are multiples of Step away from Turn.
type Stretches struct {
	From, Turn, End int64 // before is [From, Turn), after [Turn, End)
	Step            int64
}

// steps are the widths of buckets, in seconds: such that points at usual distances fall evenly into them.
var steps = []int64{
	1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400,
}

// leastBuckets is how many a stretch has at least; with the distances of steps it has less than three times as many.
const leastBuckets = 12

// Before returns the stretch from start to end, in ms, with the one of the same width before it. Both are moved to the
// nearest bounds of buckets. A stretch shorter than 12 s has buckets of a second, as many as fit, at least one.
func Before(start, end int64) Stretches {
	step := steps[0]
	for _, s := range steps {
		if s*1000*leastBuckets <= end-start {
			step = s
		}
	}
	step *= 1000
	turn := (start + step/2) / step * step
	n := max(1, (end-turn+step/2)/step)
	return Stretches{From: turn - n*step, Turn: turn, End: turn + n*step, Step: step}
}

// Kind is what became of a series.
type Kind uint8

// The kinds.
const (
	Sparse   Kind = iota // points in too few buckets of both stretches to be compared
	Changed              // points in both stretches; the score says how different they are
	Appeared             // points in the stretch after alone
	Vanished             // points in the stretch before alone
)

// fewest is in how many buckets of a stretch a series must have points: fewer say little about it.
const fewest = 3

// Change is what became of a series.
type Change struct {
	Kind Kind
	// Before and After are the means of the buckets of the stretches; NaN where there are none.
	Before, After float64
	// Score is the distance of the means, measured in deviations.
	Score float64
	// Rate says that the series never falls, as a counter: Before and After are what it grows by in a second.
	Rate bool
}

// least is the share of the greater mean that a deviation has at least, so that a series which was constant before
// and after has a score that is no infinity: 100 at most, or 200 where the sign has changed.
const least = 0.01

// Compare compares the points of a series, which are the means of its buckets, at their beginnings.
//
// The score is the distance between the means of both stretches, divided by their pooled standard deviation plus a
// hundredth of the greater mean: how far the series moved, measured in its usual restlessness. A series that
// never falls and mostly rises is compared by how fast it grows, because the means of a counter always differ.
func Compare(p *encoding.Points, s Stretches) Change {
	var before, after stretch
	for i := range p.Time {
		at, value := p.At(i)
		v := value.Double()
		switch {
		case at < s.From || at >= s.End || math.IsNaN(v) || math.IsInf(v, 0):
		case at < s.Turn:
			before.add(at, v)
		default:
			after.add(at, v)
		}
	}

	switch b, a := len(before.values), len(after.values); {
	case b == 0 && a >= fewest:
		return Change{Kind: Appeared, Before: math.NaN(), After: mean(after.values)}
	case a == 0 && b >= fewest:
		return Change{Kind: Vanished, Before: mean(before.values), After: math.NaN()}
	case b < fewest || a < fewest:
		return Change{Kind: Sparse}
	}

	c := Change{Kind: Changed, Rate: grows(&before, &after)}
	if c.Rate {
		before.values, after.values = before.rates(), after.rates()
	}
	c.Before, c.After = mean(before.values), mean(after.values)
	c.Score = score(before.values, after.values, c.Before, c.After)
	return c
}

// stretch is what a series has in one stretch.
type stretch struct {
	times  []int64
	values []float64
}

func (s *stretch) add(at int64, v float64) {
	s.times, s.values = append(s.times, at), append(s.values, v)
}

// rates returns by how much the values grow in a second, from each to the next.
func (s *stretch) rates() (out []float64) {
	for i := 1; i < len(s.values); i++ {
		out = append(out, (s.values[i]-s.values[i-1])*1000/float64(s.times[i]-s.times[i-1]))
	}
	return out
}

// grows reports whether the values never fall, from the first of before to the last of after, and in one of the
// stretches rise at three of four steps.
func grows(before, after *stretch) bool {
	if after.values[0] < before.values[len(before.values)-1] {
		return false
	}
	mostly := false
	for _, s := range []*stretch{before, after} {
		rises := 0
		for i := 1; i < len(s.values); i++ {
			if s.values[i] < s.values[i-1] {
				return false
			}
			if s.values[i] > s.values[i-1] {
				rises++
			}
		}
		mostly = mostly || 4*rises >= 3*(len(s.values)-1)
	}
	return mostly
}

// score is that of values whose means are known.
func score(before, after []float64, meanBefore, meanAfter float64) float64 {
	// Halves, because the distance of the largest numbers is infinite.
	distance := math.Abs(meanAfter/2 - meanBefore/2)
	if distance == 0 {
		return 0
	}
	pooled := math.Hypot(halfDeviation(before, meanBefore), halfDeviation(after, meanAfter)) / math.Sqrt2
	return min(distance/(pooled+least*max(math.Abs(meanBefore/2), math.Abs(meanAfter/2))), 2/least)
}

// mean is that of all values. It is never beyond the greatest, and that of a constant is the constant.
func mean(values []float64) (m float64) {
	for i, v := range values {
		n := float64(i + 1)
		m += v/n - m/n
	}
	return m
}

// halfDeviation is half of the standard deviation.
func halfDeviation(values []float64, mean float64) (sum float64) {
	root := math.Sqrt(float64(len(values)))
	for _, v := range values {
		sum = math.Hypot(sum, (v/2-mean/2)/root)
	}
	return sum
}
