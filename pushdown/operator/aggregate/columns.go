package aggregate

import "slices"

// columns are the accumulators of one block of timestamps. Which of them a
// function uses is its own affair.
type columns struct {
	n    []int32 // values seen, by timestamp
	a, b []float64
	i, j []int64

	// Gathered values, of timestamp t from t*width on.
	width int
	rows  []int64
}

// columnFunctions is a function of a group over values of one type, as verbs on columns.
type columnFunctions[T int64 | float64] struct {
	// reset makes size accumulators, for at most c.width values each.
	reset func(c *columns, size int)
	// add gives value k to the accumulator at+k. Calls come in span order.
	add func(c *columns, at int, values []T)
	// finish writes the results; every accumulator has had a value.
	finish func(c *columns, out []T)
}

// sized returns a slice of n elements of value v, in s's memory if it suffices.
func sized[T any](s []T, n int, v T) []T {
	s = slices.Grow(s[:0], n)[:n]
	for i := range s {
		s[i] = v
	}
	return s
}

func resetN(c *columns, size int) { c.n = sized(c.n, size, 0) }

// resetA returns a reset of n and of a to v.
func resetA(v float64) func(*columns, int) {
	return func(c *columns, size int) {
		resetN(c, size)
		c.a = sized(c.a, size, v)
	}
}

// resetI returns a reset of i to v.
func resetI(v int64) func(*columns, int) {
	return func(c *columns, size int) { c.i = sized(c.i, size, v) }
}
