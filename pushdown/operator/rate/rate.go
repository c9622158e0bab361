// Package rate turns the points of one series into change per second, as
// OpenTSDB does: after downsampling, before aggregation. It knows neither store
// nor network nor clock.
//
// Source: net.opentsdb.core.RateSpan, RateOptions.
package rate

import (
	"fmt"
	"math"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Points appends to times and values the rates of stored points: one for each
// point, at its time, but for the resets that r drops. The first is measured
// from the epoch and 0; the aggregation uses it up (aggregate.Query.Rate). Two
// integers are subtracted as integers, which wrap. times and values may be
// shorter columns to append to, never p's own.
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

// Doubles appends the rates of downsampled values as Points does. It may work in
// place: times[:0] and values[:0] of its own input.
func Doubles(r *scanplan.Rate, inTimes []int64, inValues []float64, times []int64, values []float64) ([]int64, []float64, error) {
	var t0 int64
	// The point before the first is the integer 0, which against a double is 0.0.
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

// DropFirst removes the rate of a series' first point, which lies at time first:
// it is measured from the epoch, not from a point (scanplan.FixRateStart).
func DropFirst(first int64, times []int64, values []float64) ([]int64, []float64) {
	if len(times) > 0 && times[0] == first {
		return times[1:], values[1:]
	}
	return times, values
}

// seconds between two times in ms.
func seconds(t0, t1 int64) float64 { return float64(t1-t0) / 1000 }

func orderError(t0, t1 int64) error {
	return fmt.Errorf("rate: Next timestamp (%d) is supposed to be strictly greater than the previous one (%d), but it's not", t1, t0)
}

// pointRate is the rate between two stored points, false for a dropped reset.
func pointRate(r *scanplan.Rate, prev, next encoding.Value, dt float64) (float64, bool) {
	if prev.Float || next.Float {
		return doubleRate(r, prev.Double(), next.Double(), dt)
	}
	difference := float64(next.Int() - prev.Int())
	if !r.Counter || !(difference < 0) {
		return difference / dt, true
	}
	return rollover(r, float64(r.CounterMax-prev.Int()+next.Int()), dt)
}

func doubleRate(r *scanplan.Rate, prev, next, dt float64) (float64, bool) {
	difference := next - prev
	if !r.Counter || !(difference < 0) {
		return difference / dt, true
	}
	return rollover(r, float64(r.CounterMax)-prev+next, dt)
}

// rollover is the rate of a counter that fell: it began again from 0 at its
// maximum, or it was reset, which shows as an improbable rate and counts as 0.
func rollover(r *scanplan.Rate, difference, dt float64) (float64, bool) {
	if r.DropResets {
		return math.NaN(), false
	}
	v := difference / dt
	if r.ResetValue > 0 && v > float64(r.ResetValue) {
		v = 0
	}
	return v, true
}
