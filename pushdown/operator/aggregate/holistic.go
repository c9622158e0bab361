package aggregate

import (
	"math"
	"slices"
)

// Holistic functions gather all values except NaN, and pick results by rank. The
// result for nothing but NaN is NaN. Doubles are gathered as keys: integers in the
// order in which Java sorts doubles, which has -0.0 before 0.0.

// key maps a double that is not NaN to an integer of the same order. The bits of
// positive doubles ascend with them as integers; those of negative ones descend,
// so all bits but the sign are flipped.
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

// addGather appends each value to the row of its timestamp. Rows have room for a
// value of each member.
func addGather(c *columns, at int, values []float64) {
	row := at * c.width
	for k, v := range values {
		if v == v {
			c.rows[row+int(c.n[at+k])] = key(v) // an integer of the same order
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

// gathered returns the values of timestamp t.
func (c *columns) gathered(t int) []int64 { return c.rows[t*c.width:][:c.n[t]] }

// median is the upper one of the two values in the middle.
// Source: Aggregators.Median.
var (
	medianScalar = scalar{update: updateGather, value: func(s *State) float64 { return median(s.keys) }}
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

	medians = arithmetic{medianScalar, medianDouble, medianLong}
)

// median returns the median of keys, which it reorders.
func median(keys []int64) float64 {
	if len(keys) == 0 {
		return math.NaN()
	}
	return fromKey(kth(keys, len(keys)/2))
}

// estimate returns the position of quantile q among n ordered values, counted from
// 1, with a fraction. Source: commons-math3, Percentile.EstimationType.
type estimate func(q, n float64) float64

func legacy(q, n float64) float64 { return q * (n + 1) }

func r7(q, n float64) float64 { return 1 + float64((n-1)*q) }

func r3(q, n float64) float64 {
	if q <= 0.5/n {
		return 0
	}
	return math.RoundToEven(n * q)
}

// percentile returns the arithmetic of the p-th percentile. As in OpenTSDB, the
// estimate applies to integers only, which are computed in doubles and truncated;
// doubles always use legacy. Source: Aggregators.PercentileAgg.
func percentile(p float64, long estimate) arithmetic {
	q := p / 100 // divided in doubles, as OpenTSDB does: 99.9/100 is not quite 0.999
	return arithmetic{
		scalar{update: updateGather, value: func(s *State) float64 { return quantile(s.keys, fromKey, q, legacy) }},
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

// quantile returns quantile q of values, which it reorders. number converts a value to
// a double and keeps the order. position is the rank of the quantile.
// Source: commons-math3, Percentile.EstimationType.estimate.
func quantile(values []int64, number func(int64) float64, q float64, position estimate) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}

	pos := position(q, float64(n))
	switch {
	case pos < 1:
		return number(slices.Min(values))
	case pos >= float64(n):
		return number(slices.Max(values))
	}

	// Between two ranks, on the line between their values.
	floor := math.Floor(pos)
	upper := number(kth(values, int(floor)))
	lower := number(slices.Max(values[:int(floor)])) // kth has moved the smaller ones there
	// float64 forbids fusing, see sumsOfSquares.
	return lower + float64((pos-floor)*(upper-lower))
}

const (
	smallSort = 24 // up to this length sorting is faster than partitioning
	maxRounds = 64 // bounds the time for values for which each pivot is a bad one
)

// kth returns the value that would be at index k if values were sorted. It reorders
// them so that no larger one is before index k and no smaller one after it.
func kth(values []int64, k int) int64 {
	lo, hi := 0, len(values) // the value is in values[lo:hi]
	for round := 0; hi-lo > smallSort && round < maxRounds; round++ {
		i, j := partition(values, lo, hi)
		switch {
		case k <= j:
			hi = j + 1
		case k >= i:
			lo = i
		default: // between both halves all values equal the pivot
			return values[k]
		}
	}

	// Few values are left, or each of maxRounds pivots was a bad one.
	slices.Sort(values[lo:hi])
	return values[k]
}

// partition splits values[lo:hi] by a pivot, the median of three of them: up to
// index j they are at most the pivot, from index i on at least the pivot, and
// between j and i equal to it.
func partition(values []int64, lo, hi int) (i, j int) {
	pivot := middle(values[lo], values[lo+(hi-lo)/2], values[hi-1])
	// Values equal to the pivot are swapped too, so that neither index runs past the end.
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

// middle returns the median of three values.
func middle(a, b, c int64) int64 { return max(min(a, b), min(max(a, b), c)) }
