package promql

import (
	"math"

	"github.com/prometheus/prometheus/util/kahansum"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// sums adds up the values of series at the times of a window, in the order of the series, as Prometheus' engine does:
// sums have its bits in that order alone.
type sums struct {
	window *scanplan.Window
	mean   bool // the result is the average
	at     []sum
}

// sum is what the engine keeps of a group at a time.
type sum struct {
	count       float64
	value, rest float64 // rest is what rounding has taken
	// overflowed is set once the sum would be infinite: value is then the mean so far.
	overflowed bool
}

// sumBytes is the memory of a sum.
const sumBytes = 32

func newSums(w *scanplan.Window, mean bool) *sums {
	return &sums{window: w, mean: mean, at: make([]sum, w.Len())}
}

// ofSeries returns the points of the group of some series.
func (s *sums) ofSeries(found []series, members []int) (encoding.Points, error) {
	clear(s.at)
	for _, i := range members {
		s.add(found[i].points)
	}
	return s.points(), nil
}

// add adds the values of a series.
func (s *sums) add(p encoding.Points) {
	i, next := 0, int64(math.MinInt64)
	for k, t := range p.Time {
		if i++; t != next {
			i = int((t - s.window.First) / s.window.Step)
		}
		next = t + s.window.Step
		v := math.Float64frombits(p.Bits[k])
		switch one := &s.at[i]; {
		case one.count == 0:
			*one = sum{count: 1, value: v}
		case !s.mean:
			one.value, one.rest = kahansum.Inc(v, one.value, one.rest)
			one.count++
		default:
			one.addToMean(v)
		}
	}
}

// addToMean adds a value to what becomes an average.
func (s *sum) addToMean(v float64) {
	s.count++
	if !s.overflowed {
		value, rest := kahansum.Inc(v, s.value, s.rest)
		if !math.IsInf(value, 0) {
			s.value, s.rest = value, rest
			return
		}
		s.overflowed = true
		s.value /= s.count - 1
		s.rest /= s.count - 1
	}
	q := (s.count - 1) / s.count
	s.value, s.rest = kahansum.Inc(v/s.count, q*s.value, q*s.rest)
}

// points returns the results, at the times at which a series has a value.
func (s *sums) points() (p encoding.Points) {
	for i := range s.at {
		one := &s.at[i]
		if one.count == 0 {
			continue
		}
		v := one.value + one.rest
		if s.mean && !one.overflowed {
			v = one.value/one.count + one.rest/one.count
		}
		p.Append(s.window.At(i), encoding.FloatValue(v))
	}
	return p
}
