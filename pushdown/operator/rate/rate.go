// Package rate computes the change per second of one series, as OpenTSDB does: after
// downsampling and before aggregation. It knows no store, network or clock.
//
// Source: net.opentsdb.core.RateSpan, RateOptions.
package rate

import (
	"fmt"
	"math"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Points appends to times and values the rates of stored points: one for each point, at
// its time, except for the counter resets that r drops. The first rate is measured from
// the value 0 in 1970; aggregation does not emit it (aggregate.Query.Rate). Two integers
// are subtracted as integers, which wrap. times and values must not be p's own columns.
// It fails if times do not ascend.
func Points(r *scanplan.Rate, p encoding.Points, times []int64, values []float64) ([]int64, []float64, error) {
	var t0 int64
	prev := encoding.IntValue(0)
	for i, t1 := range p.Time {
		next := encoding.Value{Float: p.Float[i], Bits: p.Bits[i]}
		if t1 <= t0 {
			return nil, nil, orderError(t0, t1)
		}
		v, ok := pointRate(r, prev, next, seconds(t0, t1))
		if t0, prev = t1, next; ok {
			times, values = append(times, t1), append(values, v)
		}
	}
	return times, values, nil
}

// Doubles appends the rates of downsampled values as Points does. It may work in place:
// times and values may be inTimes[:0] and inValues[:0].
func Doubles(r *scanplan.Rate, inTimes []int64, inValues []float64, times []int64,
	values []float64) ([]int64, []float64, error) {
	var t0 int64
	// The point before the first one is the integer 0, which as a double is 0.0.
	prev := 0.0
	for i, t1 := range inTimes {
		if t1 <= t0 {
			return nil, nil, orderError(t0, t1)
		}
		next := inValues[i]
		v, ok := doubleRate(r, prev, next, seconds(t0, t1))
		if t0, prev = t1, next; ok {
			times, values = append(times, t1), append(values, v)
		}
	}
	return times, values, nil
}

// DropFirst removes the rate of a series' first point, which is at time first: it is
// measured from 1970 and not from a point (scanplan.FixRateStart).
func DropFirst(first int64, times []int64, values []float64) ([]int64, []float64) {
	if len(times) > 0 && times[0] == first {
		return times[1:], values[1:]
	}
	return times, values
}

// seconds returns the seconds between two times in ms.
func seconds(t0, t1 int64) float64 { return float64(t1-t0) / 1000 }

// orderError has OpenTSDB's wording.
func orderError(t0, t1 int64) error {
	return fmt.Errorf(
		"rate: Next timestamp (%d) is supposed to be strictly greater than the previous one (%d), but it's not", t1, t0)
}

// pointRate returns the rate between two stored points; ok is false if it is a reset
// that r drops.
func pointRate(r *scanplan.Rate, prev, next encoding.Value, dt float64) (v float64, ok bool) {
	if prev.Float || next.Float {
		return doubleRate(r, prev.Double(), next.Double(), dt)
	}

	difference := float64(next.Int() - prev.Int())
	if !r.Counter || !(difference < 0) {
		return difference / dt, true
	}
	return rollover(r, float64(r.CounterMax-prev.Int()+next.Int()), dt)
}

// doubleRate is pointRate for doubles.
func doubleRate(r *scanplan.Rate, prev, next, dt float64) (v float64, ok bool) {
	difference := next - prev
	// In this form, a difference of NaN is no fall of the counter.
	if !r.Counter || !(difference < 0) {
		return difference / dt, true
	}
	return rollover(r, float64(r.CounterMax)-prev+next, dt)
}

// rollover returns the rate of a counter that has fallen. Either it reached its maximum
// and began again from 0, or it was reset, which shows as a rate above ResetValue and
// counts as 0.
func rollover(r *scanplan.Rate, difference, dt float64) (float64, bool) {
	// Both kinds of fall are dropped, as in RateSpan.populateNextRate.
	if r.DropResets {
		return math.NaN(), false
	}
	v := difference / dt
	if r.ResetValue > 0 && v > float64(r.ResetValue) {
		v = 0
	}
	return v, true
}

// Column fills out with the rates of stored points, one for each, as Points does if r drops
// no resets. prev is the point before them, seconds is the distance of each point from the
// one before it. float has the type of each value; without it all are doubles if isFloat is
// set, else integers.
func Column(r *scanplan.Rate, prev encoding.Value, bits []uint64, float []bool, isFloat bool, seconds, out []float64) {
	// All columns are equally long. The slicing lets the compiler use that.
	seconds, out = seconds[:len(bits)], out[:len(bits)]
	switch {
	case float != nil || prev.Float != isFloat:
		for i, b := range bits {
			next := encoding.Value{Float: isFloat, Bits: b}
			if float != nil {
				next.Float = float[i]
			}
			out[i], _ = pointRate(r, prev, next, seconds[i])
			prev = next
		}
	case isFloat:
		last := prev.Double()
		for i, b := range bits {
			next := math.Float64frombits(b)
			out[i], _ = doubleRate(r, last, next, seconds[i])
			last = next
		}
	case r.Counter:
		for i, b := range bits {
			next := encoding.Value{Bits: b}
			out[i], _ = pointRate(r, prev, next, seconds[i])
			prev = next
		}
	default:
		last := prev.Int()
		for i, b := range bits {
			out[i] = float64(int64(b)-last) / seconds[i]
			last = int64(b)
		}
	}
}

// Seconds returns the seconds between two times in ms, as rates divide by them.
func Seconds(t0, t1 int64) float64 { return seconds(t0, t1) }
