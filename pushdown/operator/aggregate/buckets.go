package aggregate

// Buckets appends to dst the values of buckets that lie one behind the other:
// values[ends[i-1]:ends[i]] are those of the i-th, at least one, the first
// begins at 0. Each value is what Reset, Update and Value give; s is memory to
// use.
func (f *Function) Buckets(s *State, dst, values []float64, ends []int32) []float64 {
	from := int32(0)
	for len(ends) > 0 {
		if f.scalar.sums && len(ends) >= abreast {
			if n := ends[0] - from; evenly(ends, n) && f.sumAbreast(s, &dst, values[from:ends[abreast-1]]) {
				from, ends = ends[abreast-1], ends[abreast:]
				continue
			}
		}
		f.Reset(s)
		f.Update(s, values[from:ends[0]])
		dst = append(dst, f.Value(s))
		from, ends = ends[0], ends[1:]
	}
	f.Reset(s)
	return dst
}

// abreast is how many buckets are added up side by side: an addition waits for
// the one before it in its bucket, and no bucket may be added up in another
// order, but several can wait at once.
const abreast = 4

// evenly tells whether the next buckets have n values each.
func evenly(ends []int32, n int32) bool {
	return ends[1]-ends[0] == n && ends[2]-ends[1] == n && ends[3]-ends[2] == n
}

// sumAbreast appends the values of equally large buckets. It returns false where
// there is a NaN among them, which is to be left out of a sum; it makes the sum
// NaN, as opposite infinities do.
func (f *Function) sumAbreast(s *State, dst *[]float64, values []float64) bool {
	n := len(values) / abreast
	p, q, r, t := values[:n], values[n : 2*n][:n], values[2*n : 3*n][:n], values[3*n:][:n]
	a, b, c, d := 0.0, 0.0, 0.0, 0.0
	for i, v := range p {
		a += v
		b += q[i]
		c += r[i]
		d += t[i]
	}
	if a != a || b != b || c != c || d != d {
		return false
	}
	for _, v := range [abreast]float64{a, b, c, d} {
		*dst = append(*dst, f.OfSum(s, v, n))
	}
	return true
}

// Sums tells whether f has the same value of values as of their sum and number,
// which OfSum makes it of. NaN must not be among them.
func (f *Function) Sums() bool { return f.scalar.sums }

// OfSum is the value of n values that make a sum; s is memory to use.
func (f *Function) OfSum(s *State, sum float64, n int) float64 {
	s.a, s.n = sum, int64(n)
	return f.Value(s)
}
