package downsample

import "downpour/encoding"

// TakesEven reports whether AppendEven can be used: the function needs only the sum of
// a bucket's values and their number.
func (b *Bucketer) TakesEven() bool { return b.fn.Sums() }

// AppendEven is AppendHour for points at equal distances. It computes where a bucket
// ends and looks at no point. The sums are those of AppendHour to the last bit, because
// sums of an hour's integers of four bytes are exact in doubles, in any order.
func (b *Bucketer) AppendEven(times []int64, values []float64, base int64, e *encoding.Even) ([]int64, []float64) {
	width := int32(b.width)
	for at, offset := 0, e.First; at < e.Points; {
		// n is the number of points from offset on that lie before the bucket's end.
		start := offset - offset%width
		n := min(e.Points-at, int((start+width-offset+e.Step-1)/e.Step))
		times = append(times, base+int64(start))
		values = append(values, b.fn.OfSum(&b.state, float64(e.Sum(at, at+n)), n))

		at, offset = at+n, offset+int32(n)*e.Step
	}
	return times, values
}
