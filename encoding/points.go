package encoding

import (
	"math"
	"slices"
)

// Points are points of one series in ascending order of time, as columns of equal
// length.
type Points struct {
	Time  []int64  // ms since 1970
	Bits  []uint64 // Value.Bits
	Float []bool   // Value.Float
}

// Len is the number of points.
func (p *Points) Len() int { return len(p.Time) }

// Reset empties the columns. Their memory is used again.
func (p *Points) Reset() { p.Time, p.Bits, p.Float = p.Time[:0], p.Bits[:0], p.Float[:0] }

// Append adds one point.
func (p *Points) Append(ms int64, v Value) {
	p.Time = append(p.Time, ms)
	p.Bits = append(p.Bits, v.Bits)
	p.Float = append(p.Float, v.Float)
}

// extend adds n points, which the caller fills by index, and returns their
// columns.
func (p *Points) extend(n int) (times []int64, bits []uint64, floats []bool) {
	old := len(p.Time)
	p.Time = slices.Grow(p.Time, n)[:old+n]
	p.Bits = slices.Grow(p.Bits, n)[:old+n]
	p.Float = slices.Grow(p.Float, n)[:old+n]
	return p.Time[old:], p.Bits[old:], p.Float[old:]
}

// At returns point i.
func (p *Points) At(i int) (ms int64, v Value) {
	return p.Time[i], Value{Float: p.Float[i], Bits: p.Bits[i]}
}

// Slice is a view of the points [i, j).
func (p *Points) Slice(i, j int) Points {
	return Points{Time: p.Time[i:j], Bits: p.Bits[i:j], Float: p.Float[i:j]}
}

// AppendPoints adds all points of q.
func (p *Points) AppendPoints(q Points) {
	p.Time = append(p.Time, q.Time...)
	p.Bits = append(p.Bits, q.Bits...)
	p.Float = append(p.Float, q.Float...)
}

// AppendDoubles appends the values to dst, integers converted to doubles.
func (p *Points) AppendDoubles(dst []float64) []float64 {
	n := len(dst)
	dst = slices.Grow(dst, len(p.Bits))[:n+len(p.Bits)]

	// All columns are equally long. The slicing lets the compiler check bounds here and not in the
	// loop.
	out, floats := dst[n:n+len(p.Bits)], p.Float[:len(p.Bits)]
	for i, b := range p.Bits {
		v := float64(int64(b))
		if floats[i] {
			v = math.Float64frombits(b)
		}
		out[i] = v
	}

	return dst
}
