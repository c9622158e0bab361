package aggregate

import "math"

// diff is the last value minus the first one that is not NaN, or 0 if there is one
// value. A NaN at the end is not skipped. n is 0 before the first value, 1 after it
// and 2 from the second value on; a is the first, b the last value.
// Source: Aggregators.Diff.
var (
	diffScalar = scalar{update: updateDiff, value: func(s *State) float64 { return difference(s.n, s.a, s.b) }}
	diffDouble = columnFunctions[float64]{resetDev, addDiff, finishDiff}
	diffLong   = columnFunctions[int64]{resetDiffLong, addDiffLong, finishDiffLong}

	differences = arithmetic{diffScalar, diffDouble, diffLong}
)

// updateDiff keeps the first value that is not NaN as the first, and each one after it, NaN too, as
// the last.
func updateDiff(s *State, values []float64) {
	for _, v := range values {
		switch {
		case s.n > 0:
			s.b, s.n = v, 2 // two or more
		case v == v:
			s.a, s.n = v, 1
		}
	}
}

// difference is the result for the accumulators.
func difference(n int64, first, last float64) float64 {
	switch n {
	case 0:
		return math.NaN()
	case 1:
		return 0
	}
	return last - first
}

// addDiff is updateDiff of one value at each time.
func addDiff(c *columns, at int, values []float64) {
	for k, v := range values {
		switch t := at + k; {
		case c.n[t] > 0:
			c.b[t], c.n[t] = v, 2
		case v == v:
			c.a[t], c.n[t] = v, 1
		}
	}
}

func finishDiff(c *columns, out []float64) {
	for k := range out {
		out[k] = difference(int64(c.n[k]), c.a[k], c.b[k])
	}
}

func resetDiffLong(c *columns, size int) {
	resetN(c, size)
	c.i, c.j = sized(c.i, size, 0), sized(c.j, size, 0)
}

// addDiffLong sets the last value together with the first, so that the difference
// of one value is 0.
func addDiffLong(c *columns, at int, values []int64) {
	for k, v := range values {
		t := at + k
		if c.n[t] == 0 {
			c.i[t], c.n[t] = v, 1
		}
		c.j[t] = v
	}
}

func finishDiffLong(c *columns, out []int64) {
	for k := range out {
		out[k] = c.j[k] - c.i[k]
	}
}

// first and last do not skip NaN. Source: Aggregators.First, Aggregators.Last.
var (
	firstScalar = scalar{update: updateFirst, value: func(s *State) float64 { return s.a }, needs: NeedsEnds}
	firstDouble = columnFunctions[float64]{resetA(0), addFirst, finishA}
	firstLong   = columnFunctions[int64]{resetAvgLong, addFirstLong, finishI}

	lastScalar = scalar{update: updateLast, value: func(s *State) float64 { return s.a }, needs: NeedsEnds}
	lastDouble = columnFunctions[float64]{resetA(0), addLast, finishA}
	lastLong   = columnFunctions[int64]{resetI(0), addLastLong, finishI}

	firsts = arithmetic{firstScalar, firstDouble, firstLong}
	lasts  = arithmetic{lastScalar, lastDouble, lastLong}
)

func updateFirst(s *State, values []float64) {
	if s.n == 0 && len(values) > 0 {
		s.a, s.n = values[0], 1
	}
}

func updateLast(s *State, values []float64) {
	if len(values) > 0 {
		s.a = values[len(values)-1]
	}
}

func addFirst(c *columns, at int, values []float64) {
	for k, v := range values {
		if t := at + k; c.n[t] == 0 {
			c.a[t], c.n[t] = v, 1
		}
	}
}

func addFirstLong(c *columns, at int, values []int64) {
	for k, v := range values {
		if t := at + k; c.n[t] == 0 {
			c.i[t], c.n[t] = v, 1
		}
	}
}

func addLast(c *columns, at int, values []float64)   { copy(c.a[at:], values) }
func addLastLong(c *columns, at int, values []int64) { copy(c.i[at:], values) }
