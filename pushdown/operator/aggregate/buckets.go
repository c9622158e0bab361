package aggregate

// Buckets appends to dst the results of consecutive buckets. The values of bucket i
// are values[ends[i-1]:ends[i]], at least one; the first bucket begins at 0. Each
// result is what Reset, Update and Value return. s is scratch memory.
func (f *Function) Buckets(s *State, dst, values []float64, ends []int32) []float64 {
	from := int32(0)
	for len(ends) > 0 {
		// Buckets of points at equal distances have equally many values.
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

	f.Reset(s) // Bucketer.Points expects an empty state
	return dst
}

// abreast is the number of buckets that are summed side by side. An addition must
// wait for the one before it in the same bucket, whose order must stay; the
// additions of several buckets can be under way at once.
const abreast = 4

// evenly reports whether the next abreast buckets have n values each, as the first
// one has.
func evenly(ends []int32, n int32) bool {
	return ends[1]-ends[0] == n && ends[2]-ends[1] == n && ends[3]-ends[2] == n
}

// sumAbreast appends the results of abreast buckets with equally many values. It
// returns false and appends nothing if a sum is NaN: then a value may be NaN, which
// a sum must skip. (Infinities of both signs make NaN too.)
func (f *Function) sumAbreast(s *State, dst *[]float64, values []float64) bool {
	n := len(values) / abreast
	// All are as long as p, so that the loop has no bounds checks.
	p, q, r, t := values[:n], values[n:][:n], values[2*n:][:n], values[3*n:][:n]

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

// Needs reports what f is computed from.
func (f *Function) Needs() Needs { return f.scalar.needs }

// OfTwo is the result for values if f needs only two of them, in their order. s is scratch memory.
func (f *Function) OfTwo(s *State, a, b float64) float64 {
	f.Reset(s)
	s.two = [2]float64{a, b}
	f.Update(s, s.two[:])
	return f.Value(s)
}

// OfSum is the result for n values with a sum. s is scratch memory.
func (f *Function) OfSum(s *State, sum float64, n int) float64 {
	s.a, s.n = sum, int64(n)
	return f.Value(s)
}
