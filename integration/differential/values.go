package differential

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"downpour/encoding"
)

// metricKind is a metric and the nature of its series.
type metricKind struct {
	name   string
	series int
	value  func(r *rand.Rand, last *int64) (float bool, b []byte)
	times  func(r *rand.Rand) []int64 // ms after the era
	// twice stores each series under two salts, where there are salts.
	twice bool
	// duplicates lets a time have two different values: the whole query fails
	// unless duplicates are fixed.
	duplicates bool
	// damaged stores some single cells as old versions did by mistake.
	damaged bool
}

const (
	second = 1000
	hour   = 3600 * second
	day    = 24 * hour
)

// FineSpan and SlowSpan are the lengths of the data, in ms.
const (
	FineSpan = 5 * hour
	SlowSpan = 75 * day
)

// Slow is the metric whose points lie hours apart, over SlowSpan.
const Slow = "diff.slow"

// Duplicated is the metric that cannot be queried unless duplicates are fixed.
const Duplicated = "diff.dup"

var metricKinds = []metricKind{
	{name: "diff.int", series: 8, value: integer, times: fineTimes},
	{name: "diff.float", series: 7, value: float, times: fineTimes},
	{name: "diff.mixed", series: 8, value: mixed, times: fineTimes},
	{name: "diff.counter", series: 6, value: counter, times: fineTimes},
	{name: "diff.ms", series: 6, value: mixed, times: milliTimes},
	{name: "diff.edge", series: 5, value: edge, times: fineTimes, damaged: true},
	{name: Duplicated, series: 5, value: mixed, times: fineTimes, duplicates: true},
	{name: Slow, series: 6, value: mixed, times: slowTimes},
	{name: "diff.grid", series: 24, value: float, times: gridTimes},
	{name: "diff.few", series: 9, value: integer, times: fewTimes},
	{name: "diff.salts", series: 5, value: mixed, times: fineTimes, twice: true},
}

// points draws times and values of one series, at least one.
func (k metricKind) points(r *rand.Rand, era int64) (points []Point) {
	last := r.Int64N(1 << 40)
	times := k.times(r)
	for len(times) == 0 {
		times = k.times(r)
	}
	for _, at := range times {
		p := Point{MS: era*1000 + at, Milli: at%1000 != 0 || r.IntN(12) == 0}
		p.Float, p.Value = k.value(r, &last)
		points = append(points, p)
		switch {
		case r.IntN(15) == 0: // the same value once more, perhaps under the other qualifier
			again := p
			again.Milli = p.Milli || r.IntN(2) == 0
			points = append(points, again)
		case k.duplicates && r.IntN(8) == 0:
			again := p
			again.Float, again.Value = k.value(r, &last)
			points = append(points, again)
		}
	}
	return points
}

// fineTimes starts and ends anywhere in the span, with steps and gaps.
func fineTimes(r *rand.Rand) (times []int64) {
	from, to := window(r, FineSpan)
	step := pick(r, []int64{20, 30, 60, 60, 90, 300}) * second
	aligned := r.IntN(3) == 0
	for at := from; at < to; at += step {
		t := at
		if aligned {
			t -= t % step
		} else if r.IntN(3) == 0 {
			t += r.Int64N(step/second) * second
		}
		if t -= t % second; r.IntN(10) > 0 {
			times = append(times, t)
		}
		if r.IntN(40) == 0 {
			at += r.Int64N(hour)
		}
	}
	return unique(times)
}

// window leaves a head and a tail of the span out, often none.
func window(r *rand.Rand, span int64) (from, to int64) {
	to = span
	if r.IntN(2) == 0 {
		from = r.Int64N(span / 2)
	}
	if r.IntN(2) == 0 {
		to = from + r.Int64N(to-from)
	}
	return from, to
}

// milliTimes mixes times on full seconds with others, several in one second.
func milliTimes(r *rand.Rand) (times []int64) {
	for _, t := range fineTimes(r) {
		if r.IntN(4) > 0 {
			t += r.Int64N(1000)
		}
		times = append(times, t)
		for r.IntN(4) == 0 {
			t += 1 + r.Int64N(400)
			times = append(times, t)
		}
	}
	return unique(times)
}

func gridTimes(r *rand.Rand) (times []int64) {
	from, to := window(r, FineSpan)
	for at := from - from%(60*second); at < to; at += 60 * second {
		times = append(times, at)
	}
	return times
}

// fewTimes are one to four points, often on the first or last second of an hour.
func fewTimes(r *rand.Rand) (times []int64) {
	for range 1 + r.IntN(4) {
		t := r.Int64N(FineSpan/second) * second
		switch r.IntN(3) {
		case 0:
			t -= t % hour
		case 1:
			t += hour - second - t%hour
		}
		times = append(times, t)
	}
	return unique(times)
}

func slowTimes(r *rand.Rand) (times []int64) {
	from, to := window(r, SlowSpan)
	for at := from; at < to; at += 1 + r.Int64N(14*hour) {
		times = append(times, at-at%second)
	}
	return unique(times)
}

func unique(times []int64) []int64 {
	slices.Sort(times)
	return slices.Compact(times)
}

func integer(r *rand.Rand, _ *int64) (bool, []byte) {
	return false, encodeInt(r, r.Int64N(1<<(1+r.IntN(60)))-r.Int64N(200))
}

// encodeInt takes the shortest width, or now and then 8 bytes, as the first
// versions of OpenTSDB did.
func encodeInt(r *rand.Rand, v int64) []byte {
	if r.IntN(10) == 0 {
		return binary.BigEndian.AppendUint64(nil, uint64(v))
	}
	return encoding.AppendInt(nil, v)
}

func float(r *rand.Rand, _ *int64) (bool, []byte) {
	v := (r.Float64() - 0.3) * float64(int64(1)<<r.IntN(40))
	switch r.IntN(4) {
	case 0:
		return true, encodeFloat32(float32(v))
	case 1:
		v = math.Round(v*4) / 4 // of few bits, which 4 bytes often hold exactly
		return true, encoding.AppendShortFloat(nil, v)
	}
	return true, encoding.AppendDouble(nil, v)
}

func encodeFloat32(v float32) []byte {
	return binary.BigEndian.AppendUint32(nil, math.Float32bits(v))
}

func mixed(r *rand.Rand, last *int64) (bool, []byte) {
	if r.IntN(4) == 0 {
		return float(r, last)
	}
	return integer(r, last)
}

// counter grows, and now and then starts again or wraps at 2^16.
func counter(r *rand.Rand, last *int64) (bool, []byte) {
	*last += r.Int64N(5000)
	switch r.IntN(50) {
	case 0:
		*last = r.Int64N(50)
	case 1:
		*last %= 1 << 16
	}
	if r.IntN(60) == 0 {
		return true, encoding.AppendDouble(nil, float64(*last)+0.5)
	}
	return false, encodeInt(r, *last)
}

var (
	edgeIntegers = []int64{
		0, -1, 127, 128, -128, -129, 1 << 15, 1 << 31, 1<<53 + 1, math.MaxInt64, math.MinInt64,
		math.MaxInt64 - 7,
	}
	edgeFloats = []float64{
		0, math.Copysign(0, -1), 0.1, 1e7, 1e-4, 9.999999e6, 1e23, math.MaxFloat64, -math.MaxFloat64, 5e-324,
		math.MaxFloat32, -2.5,
	}
)

func edge(r *rand.Rand, last *int64) (bool, []byte) {
	switch r.IntN(6) {
	case 0:
		return false, encodeInt(r, pick(r, edgeIntegers))
	case 1:
		return true, encoding.AppendDouble(nil, pick(r, edgeFloats))
	case 2:
		return true, encodeFloat32(float32(r.NormFloat64()))
	case 3:
		return float(r, last)
	}
	return false, encodeInt(r, r.Int64N(2000)-1000)
}

// inTime orders points by time and leaves those of one time in their order.
func inTime(points []Point) {
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.MS, b.MS) })
}
