// Package window computes values of windows of a series' points, as PromQL's functions of range vectors do: to
// the last bit those of Prometheus' engine. It knows no store, network or clock.
//
// A window is open on the left: it has the points after t-range, up to and with t. Points are doubles; an
// integer that was stored is the nearest one. Prometheus' mark of a series that has ended, a NaN of its own, is
// no point, except to Last, for which the series has no value there.
// Source: promql/functions.go, extrapolatedRate and the functions …_over_time.
package window

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Last is the function of a plain selector: the value of the last point.
const Last = "last"

// StaleNaN is the NaN by which Prometheus marks that a series has ended.
const StaleNaN uint64 = 0x7ff0000000000002

// function computes a value of points [lo, hi), at least one; ok is false for none. t is the end of
// the window.
type function func(c *Computer, t int64, lo, hi int) (v float64, ok bool)

// functions are all functions by their names in PromQL.
var functions = map[string]function{
	Last:                last,
	"rate":              extrapolated(true, true),
	"increase":          extrapolated(true, false),
	"delta":             extrapolated(false, false),
	"irate":             instant(true),
	"idelta":            instant(false),
	"sum_over_time":     sum,
	"avg_over_time":     avg,
	"min_over_time":     least,
	"max_over_time":     greatest,
	"count_over_time":   func(_ *Computer, _ int64, lo, hi int) (float64, bool) { return float64(hi - lo), true },
	"last_over_time":    func(c *Computer, _ int64, _, hi int) (float64, bool) { return c.values[hi-1], true },
	"first_over_time":   func(c *Computer, _ int64, lo, _ int) (float64, bool) { return c.values[lo], true },
	"present_over_time": func(*Computer, int64, int, int) (float64, bool) { return 1, true },
	"stdvar_over_time":  func(c *Computer, _ int64, lo, hi int) (float64, bool) { return c.variance(lo, hi), true },
	"stddev_over_time": func(c *Computer, _ int64, lo, hi int) (float64, bool) {
		return math.Sqrt(c.variance(lo, hi)), true
	},
	"changes": changes,
	"resets":  resets,
}

// Known reports whether there is a function of a name.
func Known(name string) bool { return functions[name] != nil }

// Computer computes the values of one series after the other. It is for one goroutine.
type Computer struct {
	of      *scanplan.Window
	fn      function
	seconds float64 // of the range
	// ignoresEnd is set if a point that marks the end of the series is no point.
	ignoresEnd bool

	times  []int64
	values []float64
	// falls are the indexes of points whose value is less than the one before, for counters.
	counts bool
	falls  []int
	fall   int // index of the first fall that the present window may have
}

// New returns a computer for a window. The error names a function that is not known.
func New(w *scanplan.Window) (*Computer, error) {
	fn := functions[w.Function]
	if fn == nil {
		return nil, fmt.Errorf("window function %q, want one of %q", w.Function, slices.Sorted(maps.Keys(functions)))
	}
	return &Computer{
		of: w, fn: fn, seconds: (time.Duration(w.Range) * time.Millisecond).Seconds(),
		ignoresEnd: w.Function != Last,
		counts:     w.Function == "rate" || w.Function == "increase",
	}, nil
}

// Reset begins a series, or a stretch of one.
func (c *Computer) Reset() { c.times, c.values = c.times[:0], c.values[:0] }

// Add adds points, in ascending order of time, after those that were added before.
func (c *Computer) Add(times []int64, values []float64) {
	c.times, c.values = append(c.times, times...), append(c.values, values...)
}

// AddPoints adds points as Add does.
func (c *Computer) AddPoints(p encoding.Points) {
	c.times, c.values = append(c.times, p.Time...), p.AppendDoubles(c.values)
}

// AddHour adds the points of an hour that begins at base, in ms, as Add does.
func (c *Computer) AddHour(base int64, offsets []int32, values []float64) {
	n := len(c.times)
	c.times = slices.Grow(c.times, len(offsets))[:n+len(offsets)]
	for i, offset := range offsets {
		c.times[n+i] = base + int64(offset)
	}
	c.values = append(c.values, values...)
}

// After returns the points after a time, valid until the next Add or Reset.
func (c *Computer) After(ms int64) (times []int64, values []float64) {
	i, _ := slices.BinarySearch(c.times, ms+1)
	return c.times[i:], c.values[i:]
}

// prepare finds what the function needs of all points.
func (c *Computer) prepare() {
	c.falls, c.fall = c.falls[:0], 0
	if len(c.values) == 0 {
		return
	}
	if !c.counts {
		if c.ignoresEnd && slices.ContainsFunc(c.values, isEnd) {
			c.dropEnds()
		}
		return
	}
	// Every index is written, and kept if it is one: a gauge falls as often as not.
	c.falls = slices.Grow(c.falls, len(c.values)+1)[:len(c.values)+1]
	n, before, numbers := 0, c.values[0], true
	for i, v := range c.values {
		c.falls[n] = i
		if v < before {
			n++
		}
		numbers = numbers && v == v
		before = v
	}
	c.falls = c.falls[:n]
	if !numbers && slices.ContainsFunc(c.values, isEnd) {
		c.dropEnds()
		c.prepare()
	}
}

// isEnd reports whether a value marks the end of the series.
func isEnd(v float64) bool { return math.Float64bits(v) == StaleNaN }

// dropEnds removes the points that mark the end of the series.
func (c *Computer) dropEnds() {
	n := 0
	for i, v := range c.values {
		if !isEnd(v) {
			c.times[n], c.values[n] = c.times[i], v
			n++
		}
	}
	c.times, c.values = c.times[:n], c.values[:n]
}

// Append appends the times [i, j) of the window that have a value, and their values, computed of the points that were
// added: all that their windows have.
func (c *Computer) Append(times []int64, values []float64, i, j int) ([]int64, []float64) {
	if i >= j {
		return times, values
	}
	c.prepare()
	points, width := c.times, c.of.Range
	lo, _ := slices.BinarySearch(points, c.of.At(i)-width+1)
	hi := lo
	for ; i < j; i++ {
		t := c.of.At(i)
		for hi < len(points) && points[hi] <= t {
			hi++
		}
		for lo < hi && points[lo] <= t-width { //fault:window-closed-on-the-left TestWindows_law
			lo++
		}
		if lo == hi {
			if hi == len(points) {
				break // no window after this one has a point
			}
			i = max(i, c.of.From(points[hi])-1) // nor has any before the next point
			continue
		}
		if v, ok := c.fn(c, t, lo, hi); ok {
			times, values = append(times, t), append(values, v)
		}
	}
	return times, values
}

// last is the value of the last point, unless it marks the end of the series.
func last(c *Computer, _ int64, _, hi int) (float64, bool) {
	v := c.values[hi-1]
	return v, math.Float64bits(v) != StaleNaN
}

// extrapolated is the change between the first and the last point, extended to the ends of the window where the points
// come near them. A counter that falls has begun again at 0.
func extrapolated(counter, perSecond bool) function {
	return func(c *Computer, t int64, lo, hi int) (float64, bool) {
		return c.extrapolated(t, lo, hi, counter, perSecond)
	}
}

func (c *Computer) extrapolated(t int64, lo, hi int, counter, perSecond bool) (float64, bool) {
	steps := hi - lo - 1
	if steps == 0 {
		return 0, false
	}
	firstTime, lastTime, first := c.times[lo], c.times[hi-1], c.values[lo]
	result := c.values[hi-1] - first
	for c.fall < len(c.falls) && c.falls[c.fall] <= lo { // of counters only; windows ascend
		c.fall++
	}
	for _, at := range c.falls[c.fall:] {
		if at >= hi {
			break
		}
		result += c.values[at-1]
	}

	toStart := float64(firstTime-(t-c.of.Range)) / 1000
	toEnd := float64(t-lastTime) / 1000
	sampled := float64(lastTime-firstTime) / 1000
	average := sampled / float64(steps)
	near := average * 1.1

	if toStart >= near {
		toStart = average / 2
	}
	if counter {
		toZero := toStart
		if result > 0 && first >= 0 {
			toZero = sampled * (first / result)
		}
		if toZero < toStart {
			toStart = toZero
		}
	}
	if toEnd >= near {
		toEnd = average / 2
	}
	factor := 1.0
	if sampled != 0 {
		factor = (sampled + toStart + toEnd) / sampled
	}
	if perSecond {
		factor /= c.seconds
	}
	return result * factor, true
}

// instant is the change between the last two points.
func instant(rate bool) function {
	return func(c *Computer, _ int64, lo, hi int) (float64, bool) { return c.instant(lo, hi, rate) }
}

func (c *Computer) instant(lo, hi int, rate bool) (float64, bool) {
	if hi-lo < 2 {
		return 0, false
	}
	v := c.values[hi-1]
	if before := c.values[hi-2]; !rate || !(v < before) {
		v -= before
	}
	if rate {
		v /= float64(c.times[hi-1]-c.times[hi-2]) / 1000
	}
	return v, true
}

// plus is a step of a sum with Neumaier's compensation. The conversions keep a compiler from joining its
// operations with others, which rounds differently.
func plus(v, sum, rest float64) (newSum, newRest float64) {
	v, sum, rest = float64(v), float64(sum), float64(rest)
	t := float64(sum + v)
	if overflows(t) {
		return t, 0
	}
	return t, float64(rest + lost(v, sum, t))
}

// overflows reports whether a sum is infinite.
func overflows(t float64) bool { return t > math.MaxFloat64 || t < -math.MaxFloat64 }

// lost is what rounding has taken from t, the sum of two values.
func lost(v, sum, t float64) float64 {
	if math.Abs(sum) >= math.Abs(v) {
		return (sum - t) + v
	}
	return (v - t) + sum
}

// sums returns the sum of values and its rest. A sum that has once been infinite is never finite again: then the rest
// means nothing.
func sums(values []float64) (s, rest float64) {
	for _, v := range values {
		t := s + v
		rest += lost(v, s, t)
		s = t
	}
	return s, rest
}

// finite reports whether a value is neither infinite nor NaN.
func finite(v float64) bool { return v-v == 0 }

func sum(c *Computer, _ int64, lo, hi int) (float64, bool) {
	s, rest := sums(c.values[lo:hi])
	if math.IsInf(s, 0) {
		return s, true
	}
	return s + rest, true
}

// avg divides the sum or, once that would overflow, continues with the mean of the values so far.
func avg(c *Computer, _ int64, lo, hi int) (float64, bool) {
	values := c.values[lo:hi]
	s, rest := sums(values)
	if !finite(s) {
		s, rest = values[0], 0
		for i, v := range values[1:] {
			newSum, newRest := plus(v, s, rest)
			if overflows(newSum) {
				return mean(s, rest, float64(i+1), values[i+1:]), true
			}
			s, rest = newSum, newRest
		}
	}
	count := float64(len(values))
	return s/count + rest/count, true
}

// mean continues the mean of count values, whose sum is s and a rest, with further values.
func mean(s, rest, count float64, further []float64) float64 {
	m := s / count
	rest /= count
	for _, v := range further {
		count++
		q := (count - 1) / count
		m, rest = plus(v/count, q*m, q*rest)
	}
	return m + rest
}

func least(c *Computer, _ int64, lo, hi int) (float64, bool) {
	m := c.values[lo]
	for _, v := range c.values[lo+1 : hi] {
		if v < m || m != m {
			m = v
		}
	}
	return m, true
}

func greatest(c *Computer, _ int64, lo, hi int) (float64, bool) {
	m := c.values[lo]
	for _, v := range c.values[lo+1 : hi] {
		if v > m || m != m {
			m = v
		}
	}
	return m, true
}

// variance is that of the population, by Welford's method.
func (c *Computer) variance(lo, hi int) float64 {
	var count, mean, meanRest, sum, sumRest float64
	for _, v := range c.values[lo:hi] {
		count++
		delta := v - (mean + meanRest)
		mean, meanRest = plus(delta/count, mean, meanRest)
		sum, sumRest = plus(delta*(v-(mean+meanRest)), sum, sumRest)
	}
	return (sum + sumRest) / count
}

// changes is how often a value differs from the one before; all NaN are equal.
func changes(c *Computer, _ int64, lo, hi int) (float64, bool) {
	n := 0
	for i := lo + 1; i < hi; i++ {
		if a, b := c.values[i-1], c.values[i]; a != b && (a == a || b == b) {
			n++
		}
	}
	return float64(n), true
}

// resets is how often a value is less than the one before.
func resets(c *Computer, _ int64, lo, hi int) (float64, bool) {
	n := 0
	for i := lo + 1; i < hi; i++ {
		if c.values[i] < c.values[i-1] {
			n++
		}
	}
	return float64(n), true
}
