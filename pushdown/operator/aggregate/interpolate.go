package aggregate

import "math"

// contribute fills out with what a member contributes at the times at: its value
// where it has a point, and what the policy says between two points. times and
// values are the member's points; k is the index of the first one not before at[0].
// The member has a point before that one unless it is at at[0], and a point at or
// after the last of at.
func contribute[T int64 | float64](p policy[T], out []T, at, times []int64, values []T, k int) {
	for j := 0; j < len(at); {
		if at[j] == times[k] {
			out[j] = values[k]
			j, k = j+1, k+1
			continue
		}

		// The times up to the next point make one gap.
		end := j + 1
		for end < len(at) && at[end] < times[k] {
			end++
		}
		p.gap(out[j:end], at[j:end], times[k-1], times[k], values[k-1], values[k])
		j = end
	}
}

// policy is an interpolation over values of one type.
type policy[T int64 | float64] struct {
	method   Interpolation
	min, max T
	lerp     func(out []T, at []int64, x0, x1 int64, y0, y1 T)
}

var (
	doublePolicies = policy[float64]{min: -math.MaxFloat64, max: math.MaxFloat64, lerp: lerpDouble}
	longPolicies   = policy[int64]{min: math.MinInt64, max: math.MaxInt64, lerp: lerpLong}
)

// of returns the policy for an interpolation.
func (p policy[T]) of(method Interpolation) policy[T] {
	p.method = method
	return p
}

// gap fills out with the contributions between the points (x0, y0) and (x1, y1).
// Source: AggregationIterator.nextLongValue, nextDoubleValue.
func (p policy[T]) gap(out []T, at []int64, x0, x1 int64, y0, y1 T) {
	var constant T
	switch p.method {
	case LERP:
		p.lerp(out, at, x0, x1, y0, y1)
		return
	case MAX:
		constant = p.max
	case MIN:
		constant = p.min
	case PREV:
		constant = y0
	case ZIM:
		// constant is 0.
	}

	for i := range out {
		out[i] = constant
	}
}

// lerpDouble interpolates with OpenTSDB's order of operations: multiply, divide, add.
// No product is added directly, so the compiler has nothing to fuse.
func lerpDouble(out []float64, at []int64, x0, x1 int64, y0, y1 float64) {
	dx, dy := float64(x1-x0), y1-y0
	for i, x := range at {
		out[i] = y0 + float64(x-x0)*dy/dx //fault:line-begun-at-the-wrong-end TestLerpDouble
	}
}

// lerpLong interpolates integers, which wrap and truncate toward zero as in Java.
func lerpLong(out []int64, at []int64, x0, x1 int64, y0, y1 int64) {
	dx, dy := x1-x0, y1-y0
	for i, x := range at {
		out[i] = y0 + (x-x0)*dy/dx
	}
}
