package aggregate

import "math"

// contribute fills out with what a member contributes at the given times: its
// own value where it has a point, between two points what the policy says. k is
// the index of its first point at or after at[0]; there is a point before it
// unless it stands at at[0], and one at or after the last of at.
func contribute[T int64 | float64](p policy[T], out []T, at, times []int64, values []T, k int) {
	for j := 0; j < len(at); {
		if at[j] == times[k] {
			out[j] = values[k]
			j, k = j+1, k+1
			continue
		}
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

// of returns the policy with the given method.
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
	}
	for i := range out {
		out[i] = constant
	}
}

// lerpDouble keeps the order of operations: multiply, divide, add. The division
// stands between, so there is nothing to fuse.
func lerpDouble(out []float64, at []int64, x0, x1 int64, y0, y1 float64) {
	dx, dy := float64(x1-x0), y1-y0
	for i, x := range at {
		out[i] = y0 + float64(x-x0)*dy/dx
	}
}

// lerpLong wraps and truncates toward zero as Java does.
func lerpLong(out []int64, at []int64, x0, x1 int64, y0, y1 int64) {
	dx, dy := x1-x0, y1-y0
	for i, x := range at {
		out[i] = y0 + (x-x0)*dy/dx
	}
}
