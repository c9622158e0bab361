package exp

import (
	"math"

	"downpour/encoding"
)

// series is one series of a variable: its points, or its column of a table.
type series struct {
	labels Labels
	times  []int64
	values []float64        // of a table; nil for points
	points *encoding.Points // of a metric
}

// at returns the value at index i of times.
func (s *series) at(i int) float64 {
	if s.points == nil {
		return s.values[i]
	}
	_, v := s.points.At(i)
	return number(v)
}

// number returns a value as a double.
func number(v encoding.Value) float64 {
	if v.Float {
		return v.Double()
	}
	return float64(v.Int())
}

// align sets dst to the series' values at times, which contain all of its own or not.
// Where it has none, or NaN, the value is fill.
func (s *series) align(dst []float64, times []int64, fill float64) {
	at := 0
	for i, t := range times {
		for at < len(s.times) && s.times[at] < t {
			at++
		}
		dst[i] = fill
		if at < len(s.times) && s.times[at] == t {
			if v := s.at(at); !math.IsNaN(v) {
				dst[i] = v
			}
		}
	}
}

// scatter sets dst, which is 0, to the series' values at times, which contain all of its
// own.
func (s *series) scatter(dst []float64, times []int64) {
	at := 0
	for i, t := range times {
		if at < len(s.times) && s.times[at] == t {
			dst[i] = s.at(at)
			at++
		}
	}
}

// unionOf returns all times of several ascending lists, each once. The result may be one
// of the lists; owned reports that it has its own, reserved memory.
func unionOf(lists [][]int64, b Bounds) (times []int64, owned bool, err error) {
	switch len(lists) {
	case 0:
		return nil, false, nil
	case 1:
		return lists[0], false, nil
	}

	// By halves, so that each time is copied a logarithmic number of times.
	half := len(lists) / 2
	left, ownsLeft, err := unionOf(lists[:half], b)
	if err != nil {
		return nil, false, err
	}
	right, ownsRight, err := unionOf(lists[half:], b)
	if err != nil {
		return nil, false, err
	}

	// Downsampled series have the same times almost always.
	n := unionLen(left, right)
	switch {
	case n == len(left):
		b.releaseTimes(right, ownsRight)
		return left, ownsLeft, nil
	case n == len(right):
		b.releaseTimes(left, ownsLeft)
		return right, ownsRight, nil
	}
	if err := b.begin(int64(n) * 8); err != nil {
		return nil, false, err
	}
	times = appendUnion(make([]int64, 0, n), left, right)
	b.releaseTimes(left, ownsLeft)
	b.releaseTimes(right, ownsRight)
	return times, true, nil
}

// unionLen returns the length of the union of two ascending lists.
func unionLen(a, b []int64) int {
	n := len(a) + len(b)
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			n--
			i++
			j++
		}
	}
	return n
}

// appendUnion appends the union of two ascending lists.
func appendUnion(dst, a, b []int64) []int64 {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			dst, a = append(dst, a[0]), a[1:]
		case a[0] > b[0]:
			dst, b = append(dst, b[0]), b[1:]
		default:
			dst, a, b = append(dst, a[0]), a[1:], b[1:]
		}
	}
	return append(append(dst, a...), b...)
}
