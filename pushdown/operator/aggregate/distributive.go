package aggregate

import "math"

// Sums over doubles begin at +0.0 and skip NaN. The sum of nothing but NaN is NaN.
// Sums over integers wrap. Source: Aggregators.Sum.
var (
	sumScalar = scalar{update: updateSum, value: valueSum, sums: true, needs: NeedsSum}
	sumDouble = columnFunctions[float64]{resetA(0), addSum, finishSum}
	sumLong   = columnFunctions[int64]{resetI(0), addSumLong, finishI}

	sums = arithmetic{sumScalar, sumDouble, sumLong}
)

// updateSum adds all values but NaN, and counts them: the sum of none is NaN.
func updateSum(s *State, values []float64) {
	// Local accumulators stay in registers: as far as the compiler knows, values could
	// overlap s.
	a, n := s.a, s.n
	for _, v := range values {
		if v == v { // not NaN
			a += v
			n++
		}
	}

	s.a, s.n = a, n
}

func valueSum(s *State) float64 {
	if s.n == 0 {
		return math.NaN()
	}
	return s.a
}

// addSum is updateSum of one value at each time.
func addSum(c *columns, at int, values []float64) {
	// As long as values, so that the loop has no bounds checks. Other functions of
	// this package do the same.
	a, n := c.a[at:][:len(values)], c.n[at:][:len(values)]
	for k, v := range values {
		if v == v {
			a[k] += v
			n[k]++
		}
	}
}

// finishSum writes the sums, NaN where nothing but NaN was added.
func finishSum(c *columns, out []float64) {
	for k := range out {
		if out[k] = c.a[k]; c.n[k] == 0 {
			out[k] = math.NaN()
		}
	}
}

func addSumLong(c *columns, at int, values []int64) {
	sum := c.i[at:][:len(values)]
	for k, v := range values {
		sum[k] += v
	}
}

func finishI(c *columns, out []int64) { copy(out, c.i) }

// Sums of squares treat NaN as sums do. The conversion to float64 keeps the compiler
// from fusing product and addition, which would round once where Java rounds twice.
// Source: Aggregators.SquareSum.
var (
	squareScalar = scalar{update: updateSquare, value: valueSum}
	squareDouble = columnFunctions[float64]{resetA(0), addSquare, finishSum}
	squareLong   = columnFunctions[int64]{resetI(0), addSquareLong, finishI}

	sumsOfSquares = arithmetic{squareScalar, squareDouble, squareLong}
)

func updateSquare(s *State, values []float64) {
	for _, v := range values {
		if v == v { // not NaN
			s.a += float64(v * v) // float64 forbids fusing, see sumsOfSquares
			s.n++
		}
	}
}

func addSquare(c *columns, at int, values []float64) {
	a, n := c.a[at:][:len(values)], c.n[at:][:len(values)]
	for k, v := range values {
		if v == v {
			a[k] += float64(v * v) // float64 forbids fusing, see sumsOfSquares
			n[k]++
		}
	}
}

func addSquareLong(c *columns, at int, values []int64) {
	sum := c.i[at:][:len(values)]
	for k, v := range values {
		sum[k] += v * v
	}
}

// Minimum and maximum skip NaN. Only a strictly smaller or larger value replaces
// another, so of 0.0 and -0.0 the first one stays. A result that is still the
// infinity with which the search began is NaN.
// Source: Aggregators.Min, Aggregators.Max.
var (
	minScalar = scalar{initial: math.Inf(1), update: updateMin, value: valueMin, needs: NeedsBounds}
	minDouble = columnFunctions[float64]{resetA(math.Inf(1)), addMin, finishMin}
	minLong   = columnFunctions[int64]{resetI(math.MaxInt64), addMinLong, finishI}

	maxScalar = scalar{initial: math.Inf(-1), update: updateMax, value: valueMax, needs: NeedsBounds}
	maxDouble = columnFunctions[float64]{resetA(math.Inf(-1)), addMax, finishMax}
	maxLong   = columnFunctions[int64]{resetI(math.MinInt64), addMaxLong, finishI}

	minima = arithmetic{minScalar, minDouble, minLong}
	maxima = arithmetic{maxScalar, maxDouble, maxLong}
)

// updateMin keeps the first of equal values. NaN compares false, and so is skipped.
func updateMin(s *State, values []float64) {
	a := s.a
	for _, v := range values {
		if v < a {
			a = v
		}
	}
	s.a = a
}

// updateMax keeps the first of equal values. NaN compares false, and so is skipped.
func updateMax(s *State, values []float64) {
	a := s.a
	for _, v := range values {
		if v > a {
			a = v
		}
	}
	s.a = a
}

func valueMin(s *State) float64 { return unlessInf(s.a, 1) }
func valueMax(s *State) float64 { return unlessInf(s.a, -1) }

// unlessInf returns v, or NaN if v is the infinity of the sign.
func unlessInf(v float64, sign int) float64 {
	if math.IsInf(v, sign) {
		return math.NaN()
	}
	return v
}

func addMin(c *columns, at int, values []float64) {
	a := c.a[at:][:len(values)]
	for k, v := range values {
		if v < a[k] {
			a[k] = v
		}
	}
}

func addMax(c *columns, at int, values []float64) {
	a := c.a[at:][:len(values)]
	for k, v := range values {
		if v > a[k] {
			a[k] = v
		}
	}
}

func finishMin(c *columns, out []float64) {
	for k := range out {
		out[k] = unlessInf(c.a[k], 1)
	}
}

func finishMax(c *columns, out []float64) {
	for k := range out {
		out[k] = unlessInf(c.a[k], -1)
	}
}

func addMinLong(c *columns, at int, values []int64) {
	i := c.i[at:][:len(values)]
	for k, v := range values {
		i[k] = min(i[k], v)
	}
}

func addMaxLong(c *columns, at int, values []int64) {
	i := c.i[at:][:len(values)]
	for k, v := range values {
		i[k] = max(i[k], v)
	}
}

// Products do not skip NaN. Source: Aggregators.Multiply.
var (
	multScalar = scalar{initial: 1, update: updateMult, value: func(s *State) float64 { return s.a }}
	multDouble = columnFunctions[float64]{resetA(1), addMult, finishA}
	multLong   = columnFunctions[int64]{resetI(1), addMultLong, finishI}

	products = arithmetic{multScalar, multDouble, multLong}
)

func updateMult(s *State, values []float64) {
	for _, v := range values {
		s.a *= v
	}
}

func addMult(c *columns, at int, values []float64) {
	a := c.a[at:][:len(values)]
	for k, v := range values {
		a[k] *= v
	}
}

func finishA(c *columns, out []float64) { copy(out, c.a) }

func addMultLong(c *columns, at int, values []int64) {
	i := c.i[at:][:len(values)]
	for k, v := range values {
		i[k] *= v
	}
}

// A count is the number of values that are not NaN. Over a group it includes the
// zeros that members contribute between two points. Source: Aggregators.Count.
var (
	countScalar = scalar{update: updateCount, value: func(s *State) float64 { return float64(s.n) }, needs: NeedsCount}
	countDouble = columnFunctions[float64]{resetN, addCount, finishCount}
	countLong   = columnFunctions[int64]{resetN, addCountLong, finishCountLong}

	counts = arithmetic{countScalar, countDouble, countLong}
)

// updateCount counts the values that are not NaN.
func updateCount(s *State, values []float64) {
	n := s.n
	for _, v := range values {
		if v == v {
			n++
		}
	}
	s.n = n
}

func addCount(c *columns, at int, values []float64) {
	n := c.n[at:][:len(values)]
	for k, v := range values {
		if v == v {
			n[k]++
		}
	}
}

func finishCount(c *columns, out []float64) {
	for k := range out {
		out[k] = float64(c.n[k])
	}
}

func addCountLong(c *columns, at int, values []int64) {
	n := c.n[at:][:len(values)]
	for k := range n {
		n[k]++
	}
}

func finishCountLong(c *columns, out []int64) {
	for k := range out {
		out[k] = int64(c.n[k])
	}
}
