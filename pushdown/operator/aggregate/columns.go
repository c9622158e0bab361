package aggregate

import "slices"

// columns are the accumulators of a block of timestamps, one element for each. A
// function uses those that it needs.
type columns struct {
	n    []int32   // number of values added
	a, b []float64 // of functions over doubles
	i, j []int64   // of functions over integers

	// The values that holistic functions gather: those of timestamp t begin at
	// t*width.
	width int
	rows  []int64
}

// columnFunctions is a function of a group over values of one type, as functions on
// columns.
type columnFunctions[T int64 | float64] struct {
	// reset makes size empty accumulators, for at most c.width values each.
	reset func(c *columns, size int)
	// add adds value k to accumulator at+k. Calls come in span order.
	add func(c *columns, at int, values []T)
	// finish writes the results. Each accumulator has had at least one value.
	finish func(c *columns, out []T)
}

// sized returns a slice of n elements of value v, in the memory of s if that is
// large enough.
func sized[T any](s []T, n int, v T) []T {
	s = slices.Grow(s[:0], n)[:n]
	for i := range s {
		s[i] = v
	}
	return s
}

// resetN resets n alone.
func resetN(c *columns, size int) { c.n = sized(c.n, size, 0) }

// resetA returns a function that resets n to 0 and a to v.
func resetA(v float64) func(*columns, int) {
	return func(c *columns, size int) {
		resetN(c, size)
		c.a = sized(c.a, size, v)
	}
}

// resetI returns a function that resets i to v.
func resetI(v int64) func(*columns, int) {
	return func(c *columns, size int) { c.i = sized(c.i, size, v) }
}
