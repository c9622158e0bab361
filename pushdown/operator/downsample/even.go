package downsample

import (
	"downpour/encoding"
	"downpour/pushdown/operator/aggregate"
)

// TakesEven reports whether AppendEven can be used: the function does not need each value of a bucket. Of
// values that are not sealed it is worth it only for their sums.
func (b *Bucketer) TakesEven(sealed bool) bool {
	needs := b.fn.Needs()
	return needs == aggregate.NeedsSum || sealed && needs != aggregate.NeedsAll
}

// AppendEven is AppendHour for points at equal distances. It computes where a bucket
// ends and looks at no more values than it must. The results are those of AppendHour to the last bit, because
// sums of an hour's integers of four bytes are exact in doubles, in any order.
func (b *Bucketer) AppendEven(times []int64, values []float64, base int64, e *encoding.Even) ([]int64, []float64) {
	width := int32(b.width)
	for at, offset := 0, e.First; at < e.Points; {
		// n is the number of points from offset on that are before the bucket's end.
		start := offset - offset%width
		n := min(e.Points-at, int((start+width-offset+e.Step-1)/e.Step))
		times = append(times, base+int64(start))
		values = append(values, b.ofEven(e, at, at+n))

		at, offset = at+n, offset+int32(n)*e.Step
	}
	b.fn.Reset(&b.state) // Points expects an empty state
	return times, values
}

// ofEven is the value of the bucket of points [from, to).
func (b *Bucketer) ofEven(e *encoding.Even, from, to int) float64 {
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
