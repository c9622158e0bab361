package aggregate

import (
	"math"
	"slices"

	"downpour/encoding/scanplan"
)

// Holistic functions gather their values, without NaN, and select from their
// order; of NaN alone the result is NaN. Doubles are gathered as keys, integers
// that order as Java orders doubles: -0.0 before 0.0.

// key maps a double that is not NaN to an integer in the same order.
func key(v float64) int64 {
	bits := int64(math.Float64bits(v))
	return bits ^ bits>>63&math.MaxInt64
}

// fromKey is the double of a key.
func fromKey(k int64) float64 { return math.Float64frombits(uint64(k ^ k>>63&math.MaxInt64)) }

func fromLong(v int64) float64 { return float64(v) }

func updateGather(s *State, values []float64) {
	for _, v := range values {
		if v == v {
			s.keys = append(s.keys, key(v))
		}
	}
}

func resetGather(c *columns, size int) {
	resetN(c, size)
	c.rows = slices.Grow(c.rows[:0], size*c.width)[:size*c.width]
}

func addGather(c *columns, at int, values []float64) {
	row := at * c.width
	for k, v := range values {
		if v == v {
			c.rows[row+int(c.n[at+k])] = key(v)
			c.n[at+k]++
		}
		row += c.width
	}
}

func addGatherLong(c *columns, at int, values []int64) {
	row := at * c.width
	for k, v := range values {
		c.rows[row+int(c.n[at+k])] = v
		c.n[at+k]++
		row += c.width
	}
}

// gathered are the values of timestamp t.
func (c *columns) gathered(t int) []int64 { return c.rows[t*c.width:][:c.n[t]] }

// median is the upper one of the two values in the middle.
// Source: Aggregators.Median.
var (
	medianScalar = scalar{0, updateGather, func(s *State) float64 { return median(s.keys) }, false}
	medianDouble = columnFunctions[float64]{resetGather, addGather, func(c *columns, out []float64) {
		for t := range out {
			out[t] = median(c.gathered(t))
		}
	}}
	medianLong = columnFunctions[int64]{resetGather, addGatherLong, func(c *columns, out []int64) {
		for t := range out {
			values := c.gathered(t)
			out[t] = kth(values, len(values)/2)
		}
	}}
)

// median reorders keys.
func median(keys []int64) float64 {
	if len(keys) == 0 {
		return math.NaN()
	}
	return fromKey(kth(keys, len(keys)/2))
}

// estimate gives the position of quantile q among n ordered values, counted
// from 1, with a fraction. Source: commons-math3, Percentile.EstimationType.
type estimate func(q, n float64) float64

func legacy(q, n float64) float64 { return q * (n + 1) }

func r7(q, n float64) float64 { return 1 + float64((n-1)*q) }

func r3(q, n float64) float64 {
	if q <= 0.5/n {
		return 0
	}
	return math.RoundToEven(n * q)
}

// percentile makes the function of the p-th percentile. The double path forgets
// the way of estimating and always takes the legacy one; the integer path heeds
// it, computes in doubles and truncates. Source: Aggregators.PercentileAgg.
func percentile(name scanplan.Aggregator, p float64, long estimate) Function {
	q := p / 100 // divided in doubles, as the reference does: not quite 0.999
	return Function{name, Holistic, LERP,
		scalar{0, updateGather, func(s *State) float64 { return quantile(s.keys, fromKey, q, legacy) }, false},
		columnFunctions[float64]{resetGather, addGather, func(c *columns, out []float64) {
			for t := range out {
				out[t] = quantile(c.gathered(t), fromKey, q, legacy)
			}
		}},
		columnFunctions[int64]{resetGather, addGatherLong, func(c *columns, out []int64) {
			for t := range out {
				out[t] = truncate(quantile(c.gathered(t), fromLong, q, long))
			}
		}},
	}
}

// quantile reorders values; number makes a value a double without changing the
// order. Source: commons-math3, Percentile.EstimationType.estimate.
func quantile(values []int64, number func(int64) float64, q float64, position estimate) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	pos := position(q, float64(n))
	switch {
	case n == 1 || pos < 1:
		return number(slices.Min(values))
	case pos >= float64(n):
		return number(slices.Max(values))
	}
	floor := math.Floor(pos)
	upper := number(kth(values, int(floor)))
	lower := number(slices.Max(values[:int(floor)])) // kth left the smaller ones there
	return lower + float64((pos-floor)*(upper-lower))
}

const (
	smallSort = 24 // the length from which on selecting beats sorting
	maxRounds = 64 // bounds the time for values that defeat the choice of pivots
)

// kth returns the value at index k of the ordered values. It leaves no larger
// one before index k and no smaller one behind.
func kth(values []int64, k int) int64 {
	lo, hi := 0, len(values)
	for round := 0; hi-lo > smallSort && round < maxRounds; round++ {
		i, j := partition(values, lo, hi)
		switch {
		case k <= j:
			hi = j + 1
		case k >= i:
			lo = i
		default:
			return values[k]
		}
	}
	slices.Sort(values[lo:hi])
	return values[k]
}

// partition splits values[lo:hi] by the median of three of them: at most the
// pivot up to index j, at least the pivot from index i on, equal to it between.
func partition(values []int64, lo, hi int) (i, j int) {
	pivot := middle(values[lo], values[lo+(hi-lo)/2], values[hi-1])
	for i, j = lo, hi-1; i <= j; {
		for values[i] < pivot {
			i++
		}
		for pivot < values[j] {
			j--
		}
		if i <= j {
			values[i], values[j] = values[j], values[i]
			i, j = i+1, j-1
		}
	}
	return i, j
}

func middle(a, b, c int64) int64 { return max(min(a, b), min(max(a, b), c)) }
