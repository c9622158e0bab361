package window

import (
	"fmt"
	"math"
	"slices"
)

// Functions that make one value of those that the series of a group have at one time, by their names in PromQL. Their
// results may be merged again, in any order.
const (
	Min   = "min"
	Max   = "max"
	Count = "count"
	Any   = "group" // 1 where there is a value
)

// mixedZeros is the NaN that is an extreme of 0 and -0: which of them it is depends on the order of the series. What
// else is a zero has its sign.
const mixedZeros uint64 = 0x7ff0000000000003

// IsMixed reports whether an extreme is 0 or -0, by the order of the series.
func IsMixed(bits uint64) bool { return bits == mixedZeros }

// Group merges the values of series. The zero Group has no function; Begin gives it one. It is for one goroutine.
type Group struct {
	function string
	ordered  bool
	times    []int64
	values   []float64
}

// CheckGroup returns an error that names a function of groups that is not known.
func CheckGroup(function string) error {
	if known := []string{Min, Max, Count, Any}; !slices.Contains(known, function) {
		return fmt.Errorf("function of groups %q, want one of %q", function, known)
	}
	return nil
}

// Begin empties the group. If ordered is set, values come in the order of their series: the first of 0 and -0 stays.
func (g *Group) Begin(function string, ordered bool) {
	g.function, g.ordered = function, ordered
	g.times, g.values = g.times[:0], g.values[:0]
}

// AddSeries adds the values of a series, whose times ascend.
func (g *Group) AddSeries(times []int64, values []float64) {
	if g.function == Count || g.function == Any {
		values = slices.Repeat([]float64{1}, len(values))
	}
	g.AddGroup(times, values)
}

// AddGroup adds the values of another group, whose times ascend.
func (g *Group) AddGroup(times []int64, values []float64) {
	if len(times) == 0 {
		return
	}
	// Most series have the times of those before them.
	at, _ := slices.BinarySearch(g.times, times[0])
	if n := len(times); at+n <= len(g.times) && slices.Equal(g.times[at:at+n], times) {
		g.merge(g.values[at:at+n], values)
		return
	}
	if at == len(g.times) {
		g.times, g.values = append(g.times, times...), append(g.values, values...)
		return
	}

	// The values move up from the last one on, to where they are once all are there.
	i, k := len(g.times), len(times)
	to := at + countEither(g.times[at:], times)
	g.times, g.values = slices.Grow(g.times, to-i)[:to], slices.Grow(g.values, to-i)[:to]
	for k > 0 {
		to--
		switch {
		case i == at || g.times[i-1] < times[k-1]:
			k--
			g.times[to], g.values[to] = times[k], values[k]
		case g.times[i-1] > times[k-1]:
			i--
			g.times[to], g.values[to] = g.times[i], g.values[i]
		default:
			i, k = i-1, k-1
			g.times[to], g.values[to] = g.times[i], g.values[i]
			g.merge(g.values[to:to+1], values[k:k+1])
		}
	}
}

// countEither returns how many times are in one of two ascending lists, or in both.
func countEither(a, b []int64) (n int) {
	for len(a) > 0 && len(b) > 0 {
		first, second := a[0], b[0]
		if first <= second {
			a = a[1:]
		}
		if second <= first {
			b = b[1:]
		}
		n++
	}
	return n + len(a) + len(b)
}

// merge merges values into others of the same times. An extreme is NaN only if all values are.
func (g *Group) merge(into, values []float64) {
	switch g.function {
	case Count:
		for i, v := range values {
			into[i] += v
		}
	case Max:
		for i, v := range values {
			if !(v < into[i]) {
				into[i] = g.extreme(into[i], v)
			}
		}
	case Min:
		for i, v := range values {
			if !(v > into[i]) {
				into[i] = g.extreme(into[i], v)
			}
		}
	}
}

// extreme returns the greater or the less of two values. Of two numbers b is at least as extreme as a.
func (g *Group) extreme(a, b float64) float64 {
	x, y := a, b
	if !g.ordered {
		x, y = unmixed(a), unmixed(b)
	}
	switch {
	case x != x, g.function == Max && x < y, g.function == Min && x > y:
		return b
	case y == 0 && !g.ordered &&
		math.Float64bits(a) != math.Float64bits(b):
		return math.Float64frombits(mixedZeros)
	}
	return a
}

// unmixed returns an extreme as a number.
func unmixed(v float64) float64 {
	if IsMixed(math.Float64bits(v)) {
		return 0
	}
	return v
}

// Values returns the times and their values, valid until the group changes.
func (g *Group) Values() (times []int64, values []float64) { return g.times, g.values }

// Bytes is the memory of the group.
func (g *Group) Bytes() int64 {
	return 8 * int64(cap(g.times)+cap(g.values))
}
