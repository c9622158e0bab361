package downsample

import (
	"downpour/encoding"
	"downpour/pushdown/operator/aggregate"
)

// TakesEvenlySpaced reports whether AppendEvenlySpaced is faster than AppendHour: the function does not
// need each value of a bucket. If values are not sealed, it is faster for sums only.
func (b *Bucketer) TakesEvenlySpaced(sealed bool) bool {
	needs := b.fn.Needs()
	return needs == aggregate.NeedsSum || sealed && needs != aggregate.NeedsAll
}

// AppendEvenlySpaced appends the buckets of an hour of evenly spaced points, as AppendHour does for any points. base is
// the base time in ms. It computes where a bucket ends, and reads no more values than it must. The results are those of
// AppendHour to the last bit, because sums of an hour's integers of four bytes are exact in doubles, in any order.
func (b *Bucketer) AppendEvenlySpaced(times []int64, values []float64, base int64,
	e *encoding.EvenlySpaced) ([]int64, []float64) {
	width := int32(b.width)
	for at, offset := 0, e.First; at < e.Points; {
		// n is the number of points from offset on that are before the bucket's end.
		start := offset - offset%width
		n := min(e.Points-at, int((start+width-offset+e.Step-1)/e.Step))
		times = append(times, base+int64(start))
		values = append(values, b.bucketOfEvenlySpaced(e, at, at+n))

		at, offset = at+n, offset+int32(n)*e.Step
	}
	b.fn.Reset(&b.state) // Points expects an empty state
	return times, values
}

// bucketOfEvenlySpaced returns the value of the bucket with the points [from, to).
func (b *Bucketer) bucketOfEvenlySpaced(e *encoding.EvenlySpaced, from, to int) float64 {
	switch b.fn.Needs() {
	case aggregate.NeedsCount:
		return b.fn.OfSum(&b.state, 0, to-from)
	case aggregate.NeedsBounds:
		least, most := e.Bounds(from, to)
		return b.fn.OfTwo(&b.state, float64(least), float64(most))
	case aggregate.NeedsEnds:
		return b.fn.OfTwo(&b.state, float64(e.At(from)), float64(e.At(to-1)))
	}
	return b.fn.OfSum(&b.state, float64(e.Sum(from, to)), to-from)
}
