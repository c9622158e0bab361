package picture

import (
	"math"
	"strconv"

	"downpour/gateway/extra/graph"
)

// scale maps the values of an axis to the height of the frame.
type scale struct {
	from, to float64 // the values at the bottom and at the top
	log      bool
	ticks    []tick
}

// tick is a mark next to an axis.
type tick struct {
	value float64
	label string // "" for a small mark without one
}

// emptyTo is the upper end of an axis without values. Source: Plot.dumpToFiles.
const emptyTo = 10

// newScale returns the scale for values between low and high, with about so many labelled
// ticks. Ends that the axis does not fix lie on ticks.
func newScale(a *graph.Axis, low, high float64, ticks int) *scale {
	s := &scale{from: low, to: high, log: a.Log}
	// No line has a value.
	if low > high {
		s.from, s.to = 0, emptyTo
		if a.Log {
			s.from = 1
		}
	}

	if a.Range.Fixed {
		s.from = a.Range.From
	}
	if a.Range.FixedToo {
		s.to = a.Range.To
	}
	// An upper end that is fixed below the lower one turns the axis upside down. Free ends of a
	// logarithmic axis move to powers of ten, and so apart.
	if !a.Range.FixedToo && s.to <= s.from && (!a.Log || a.Range.Fixed) {
		s.widen(a)
	}

	if s.log {
		s.logTicks(a, ticks)
	} else {
		s.linearTicks(a, ticks)
	}

	if a.Format != nil {
		for i := range s.ticks {
			if s.ticks[i].label != "" {
				s.ticks[i].label = a.Format.Format(s.ticks[i].value)
			}
		}
	}
	return s
}

// widen makes room around a single value, or above a lower end that all values are below.
func (s *scale) widen(a *graph.Axis) {
	room := math.Abs(s.from) / 10
	// Around 0 a tenth is nothing, and near the largest double it leads beyond.
	if room == 0 || math.IsInf(s.from+room, 0) {
		room = 1
	}
	switch {
	case s.log:
		s.to = min(s.from*10, math.MaxFloat64)
	case a.Range.Fixed:
		s.to = s.from + room
	default:
		s.from, s.to = s.from-room, s.to+room
	}
}

// at returns where a value is: 0 is the bottom of the frame, 1 its top. ok is false for a
// value that has no place on a logarithmic axis.
func (s *scale) at(v float64) (place float64, ok bool) {
	if s.log {
		if v <= 0 {
			return 0, false
		}
		return (math.Log10(v) - math.Log10(s.from)) / (math.Log10(s.to) - math.Log10(s.from)), true
	}
	// Halves, because the difference of two doubles may exceed the largest one.
	return (v/2 - s.from/2) / (s.to/2 - s.from/2), true
}

// linearTicks sets ticks at multiples of 1, 2 or 5 times a power of ten, and moves the ends
// that are free to ticks.
func (s *scale) linearTicks(a *graph.Axis, count int) {
	low, high := min(s.from, s.to), max(s.from, s.to)
	// Halves, as in at: high-low may exceed the largest double.
	step := niceStep((high/2 - low/2) / float64(count) * 2)
	if step == 0 || math.IsInf(step, 0) || low+step == low || high-step == high {
		// Values so near each other, or so far apart, that no step leads from one to the next.
		s.ticks = []tick{{low, plain(low)}, {high, plain(high)}}
		return
	}

	// A fixed end stays, with ticks from it inwards: a tick at the very end must not be lost by
	// rounding. A free end moves outwards to a tick.
	first, last := math.Ceil(low/step-1e-9), math.Floor(high/step+1e-9)
	if !a.Range.Fixed {
		first = math.Floor(low / step)
	}
	if !a.Range.FixedToo {
		last = math.Ceil(high / step)
	}
	if !a.Range.Fixed && finite(first*step) {
		s.from = first * step
	}
	if !a.Range.FixedToo && finite(last*step) {
		s.to = last * step
	}

	// Such a step makes about count ticks; the bound only guards against many more.
	for i := 0; i <= 3*count && first+float64(i) <= last; i++ {
		v := (first + float64(i)) * step
		s.ticks = append(s.ticks, tick{v, valueLabel(v, step)})
	}
}

// niceStep returns the smallest of 1, 2 and 5 times a power of ten that is at least v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		// By rounding v may be a little more than the step that is meant.
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return v // not finite
}

// valueLabel writes a tick's value as gnuplot does, with the digits that distinguish it from the
// next one.
func valueLabel(v, step float64) string {
	if v == 0 {
		return "0" // and not -0
	}
	digits := 6
	if d := int(math.Ceil(math.Log10(math.Abs(v)/step))) + 1; d > digits {
		digits = min(d, 17) // more make no difference to a double
	}
	return strconv.FormatFloat(v, 'g', digits, 64)
}

func plain(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// logTicks sets ticks at powers of ten, and small ones between them.
func (s *scale) logTicks(a *graph.Axis, count int) {
	low, high := min(s.from, s.to), max(s.from, s.to)
	// The logarithm of a power of ten may be a little off a whole number.
	first, last := math.Floor(math.Log10(low)+1e-12), math.Ceil(math.Log10(high)-1e-12)
	if !a.Range.Fixed {
		// The power of ten below the smallest doubles is 0, which has no logarithm.
		s.from = math.Max(math.Pow(10, first), math.SmallestNonzeroFloat64)
	}
	if first == last {
		last++ // all values are one power of ten: one decade of room
	}
	if !a.Range.FixedToo && finite(math.Pow(10, last)) {
		s.to = math.Pow(10, last)
	}

	low, high = min(s.from, s.to), max(s.from, s.to)
	// Of many decades some alone have a tick, and then none a small one.
	stride := math.Max(1, math.Ceil((last-first)/float64(count)))
	for e := first; e <= last; e += stride {
		decade := math.Pow(10, e)
		if decade >= low*(1-1e-9) && decade <= high*(1+1e-9) {
			s.ticks = append(s.ticks, tick{decade, plain(decade)})
		}
		for m := 2.0; m < 10 && stride == 1; m++ {
			if v := m * decade; v > low && v < high {
				s.ticks = append(s.ticks, tick{v, ""})
			}
		}
	}
}
