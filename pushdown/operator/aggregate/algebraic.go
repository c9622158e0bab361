package aggregate

import "math"

// Averages over doubles skip NaN. Over integers the sum wraps and the division
// truncates toward zero. Source: Aggregators.Avg.
var (
	avgScalar = scalar{update: updateSum, value: valueAvg, sums: true, needs: NeedsSum}
	avgDouble = columnFunctions[float64]{resetA(0), addSum, finishAvg}
	avgLong   = columnFunctions[int64]{resetAvgLong, addAvgLong, finishAvgLong}

	averages = arithmetic{avgScalar, avgDouble, avgLong}
)

// valueAvg returns NaN for no value: 0/0.
func valueAvg(s *State) float64 { return s.a / float64(s.n) }

func finishAvg(c *columns, out []float64) {
	for k := range out {
		out[k] = c.a[k] / float64(c.n[k])
	}
}

func resetAvgLong(c *columns, size int) {
	resetN(c, size)
	c.i = sized(c.i, size, 0)
}

func addAvgLong(c *columns, at int, values []int64) {
	sum, n := c.i[at:][:len(values)], c.n[at:][:len(values)]
	for k, v := range values {
		sum[k] += v
		n[k]++
	}
}

func finishAvgLong(c *columns, out []int64) {
	for k := range out {
		out[k] = c.i[k] / int64(c.n[k])
	}
}

// dev is the population standard deviation by Welford's single pass: n is the
// number of values, a their mean, b the sum of squared distances from it. NaN is
// skipped. Over integers it computes in doubles and truncates.
// Source: Aggregators.StdDev.
var (
	devScalar = scalar{update: updateDev, value: func(s *State) float64 { return deviation(s.n, s.b) }}
	devDouble = columnFunctions[float64]{resetDev, addDev, finishDev}
	devLong   = columnFunctions[int64]{resetDev, addDevLong, finishDevLong}

	deviations = arithmetic{devScalar, devDouble, devLong}
)

// welford adds v, the n-th value, to a mean and a sum of squared distances and
// returns both. The conversion to float64 forbids a fused multiply and add.
func welford(mean, squares, v float64, n int64) (float64, float64) {
	if n == 1 {
		return v, 0
	}

	next := mean + (v-mean)/float64(n)
	return next, squares + float64((v-mean)*(v-next))
}

// deviation is the result for n values.
func deviation(n int64, squares float64) float64 {
	switch n {
	case 0:
		return math.NaN()
	case 1:
		return 0
	}
	return math.Sqrt(squares / float64(n))
}

func updateDev(s *State, values []float64) {
	for _, v := range values {
		if v == v {
			s.n++
			s.a, s.b = welford(s.a, s.b, v, s.n)
		}
	}
}

func resetDev(c *columns, size int) {
	resetN(c, size)
	c.a, c.b = sized(c.a, size, 0), sized(c.b, size, 0)
}

func addDev(c *columns, at int, values []float64) {
	for k, v := range values {
		if t := at + k; v == v {
			c.n[t]++
			c.a[t], c.b[t] = welford(c.a[t], c.b[t], v, int64(c.n[t]))
		}
	}
}

func finishDev(c *columns, out []float64) {
	for k := range out {
		out[k] = deviation(int64(c.n[k]), c.b[k])
	}
}

func addDevLong(c *columns, at int, values []int64) {
	for k, v := range values {
		t := at + k
		c.n[t]++
		c.a[t], c.b[t] = welford(c.a[t], c.b[t], float64(v), int64(c.n[t]))
	}
}

func finishDevLong(c *columns, out []int64) {
	for k := range out {
		out[k] = truncate(deviation(int64(c.n[k]), c.b[k]))
	}
}

// truncate converts a double to an integer as Java's cast to long does: toward zero,
// NaN to 0, and numbers out of range to the nearest limit.
func truncate(v float64) int64 {
	switch {
	case v != v:
		return 0
	case v >= 1<<63:
		return math.MaxInt64
	case v < -1<<63:
		return math.MinInt64
	}
	return int64(v)
}
