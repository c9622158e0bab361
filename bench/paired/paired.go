// Package paired says how many times one thing is another when both were
// measured in pairs, and how sure that is.
//
// The estimate is the median of the pairs' ratios. Its interval runs from the
// k-th smallest ratio to the k-th largest, with the largest k that leaves it
// enough confidence: that of the sign test. It assumes nothing about the noise
// but that each pair is as likely to lie above the true median as below it, and
// pairs that were disturbed do not widen it unless there are k of them on one
// side. Of 12 pairs k is 3, and the confidence 96.1 %.
package paired

import (
	"fmt"
	"math"
	"slices"
)

// Confidence is how often an interval is to hold the true ratio, at least.
const Confidence = 0.95

// Fewest is how many pairs an interval needs for that Confidence: five lie all on
// one side of the truth once in sixteen times.
const Fewest = 6

// Interval is where a ratio lies.
type Interval struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"` // the estimate itself
	High   float64 `json:"high"`
	// Confidence is the probability with which Low and High hold the true
	// ratio: at least that of the package, or less for fewer pairs than Fewest.
	Confidence float64 `json:"confidence"`
}

// Sure reports whether there were enough pairs.
func (i Interval) Sure() bool { return i.Confidence >= Confidence }

// String is the ratio and its interval: "1.021x (0.983 to 1.064)".
func (i Interval) String() string {
	return fmt.Sprintf("%.3fx (%.3f to %.3f)", i.Median, i.Low, i.High)
}

// Ratio returns how many times b is a, of pairs a[i] and b[i], all above 0. It
// is an error when there is no pair, or one with anything else in it.
func Ratio(a, b []float64) (Interval, error) {
	if len(a) != len(b) || len(a) == 0 {
		return Interval{}, fmt.Errorf("pairs: got %d and %d amounts, want as many of each and at least 1",
			len(a), len(b))
	}

	ratios := make([]float64, len(a))
	for i := range a {
		// NaN fails the comparisons, so it is refused as well.
		if !(a[i] > 0 && b[i] > 0) || math.IsInf(a[i], 0) || math.IsInf(b[i], 0) {
			return Interval{}, fmt.Errorf("pair %d: got %v and %v, want finite amounts above 0", i, a[i], b[i])
		}
		ratios[i] = b[i] / a[i]
	}

	slices.Sort(ratios)

	n := len(ratios)
	left, confidence := tail(n)
	x := Interval{Low: ratios[left], Median: ratios[n/2], High: ratios[n-1-left], Confidence: confidence}
	if n%2 == 0 {
		// The geometric mean of the two in the middle, so that the ratio of a
		// to b is the inverse of that of b to a.
		x.Median = math.Sqrt(ratios[n/2-1]) * math.Sqrt(ratios[n/2])
	}

	return x, nil
}

// Median returns the middle value, or the mean of the two in the middle. It is 0 for no values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// tail returns how many of n sorted ratios an interval leaves out at either end,
// and the confidence of what is left.
//
// The number of ratios below the true median is that of heads in n throws of a
// coin. The truth lies below the interval when at most left of them are, which
// must have less than half the probability that the confidence lacks.
func tail(n int) (left int, confidence float64) {
	throw := math.Pow(0.5, float64(n)) // P(heads = 0)
	outside := throw                   // P(heads <= left)
	for heads := 1; ; heads++ {
		throw *= float64(n-heads+1) / float64(heads)
		if outside+throw > (1-Confidence)/2 {
			break
		}
		outside += throw
		left = heads
	}
	return left, 1 - 2*outside
}
