package downsample

import "downpour/encoding"

// TakesEven tells whether the function is one of a sum, as AppendEven wants it.
func (b *Bucketer) TakesEven() bool { return b.fn.Sums() }

// AppendEven is AppendHour for points that are equally far apart: where a bucket
// ends is reckoned, and no point is looked at. Sums of integers of four bytes are
// exact in doubles, in whatever order they are added up.
func (b *Bucketer) AppendEven(times []int64, values []float64, base int64, e encoding.Even) ([]int64, []float64) {
	width := int32(b.width)
	for at, offset := 0, e.First; at < e.Points; {
		start := offset - offset%width
		n := min(e.Points-at, int((start+width-offset+e.Step-1)/e.Step))
		times = append(times, base+int64(start))
		values = append(values, b.fn.OfSum(&b.state, float64(e.Sum(at, at+n)), n))
		at, offset = at+n, offset+int32(n)*e.Step
	}
	return times, values
}
