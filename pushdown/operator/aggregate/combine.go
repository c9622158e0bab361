package aggregate

import "math"

var (
	nan  = math.NaN()
	zero = [1]float64{0}
)

// Merge adds another state to p, from index at on. src holds members that stand
// behind those of p in span order.
func (f *Function) Merge(p *Partial, at int, src *Partial) {
	for i := range src.Live {
		k := at + i
		p.Real[k] = p.Real[k] || src.Real[i]
		if src.Live[i] == 0 {
			continue
		}
		if p.Live[k] == 0 {
			p.set(k, src, i)
			continue
		}
		p.Live[k] += src.Live[i]
		f.combine(p, k, src, i)
	}
}

// set takes one state over.
func (p *Partial) set(k int, src *Partial, i int) {
	p.Live[k], p.N[k] = src.Live[i], src.N[i]
	if p.A != nil {
		p.A[k] = src.A[i]
	}
	if p.B != nil {
		p.B[k] = src.B[i]
	}
	if p.Low != nil {
		p.merge(k, &src.Proof, i)
	}
}

// combine makes one state of two that both hold values.
func (f *Function) combine(p *Partial, k int, src *Partial, i int) {
	switch f.Name {
	case "count":
		p.N[k] += src.N[i]
	case "sum", "zimsum", "pfsum", "avg", "squareSum":
		p.N[k] += src.N[i]
		p.A[k] += src.A[i]
		p.merge(k, &src.Proof, i)
	case "min", "mimmin", "max", "mimmax":
		f.double.add(p.columns(), k, src.A[i:i+1])
	case "mult":
		p.A[k] *= src.A[i]
	case "dev":
		p.combineDev(k, src, i)
	case "first": // the earlier members' stays
	case "last":
		p.A[k] = src.A[i]
	case "diff":
		p.combineDiff(k, src, i)
	}
}

// combineDev adds two means and sums of squared distances: the second moment
// grows by the distance of the means.
func (p *Partial) combineDev(k int, src *Partial, i int) {
	if src.N[i] == 0 {
		return
	}
	n, m := float64(p.N[k]), float64(src.N[i])
	d := src.A[i] - p.A[k]
	if p.N[k] == 0 {
		d = 0
		p.A[k] = src.A[i]
	}
	p.A[k] += d * m / (n + m)
	p.B[k] += src.B[i] + d*d*n*m/(n+m)
	p.N[k] += src.N[i]
}

// combineDiff keeps the first and takes the last value of src, which is NaN if
// src has seen nothing else.
func (p *Partial) combineDiff(k int, src *Partial, i int) {
	switch {
	case p.N[k] == 0:
		p.N[k], p.A[k], p.B[k] = src.N[i], src.A[i], src.B[i]
		return
	case src.N[i] == 0:
		p.B[k] = nan
	case src.N[i] == 1:
		p.B[k] = src.A[i]
	default:
		p.B[k] = src.B[i]
	}
	p.N[k] = 2
}

// AddZeros adds count members of value 0 late to the states [at, to), and tells
// whether the result is the same to the last bit as with the members in their
// places.
func (f *Function) AddZeros(p *Partial, at, to int, count int32) (exact bool) {
	exact = true
	for k := at; k < to; k++ {
		live := p.Live[k]
		switch f.Name {
		case "count", "sum", "zimsum", "pfsum", "avg", "squareSum":
			p.N[k] += count // a sum begins at 0.0 and is never -0.0
		case "min", "mimmin", "max", "mimmax":
			exact = exact && !f.Tie(p, k, 0)
			f.double.add(p.columns(), k, zero[:])
		case "dev":
			exact = exact && live == 0
			p.combineDev(k, &Partial{N: []int32{count}, A: zero[:], B: zero[:]}, 0)
		default:
			return false
		}
		p.Live[k] += count
	}
	return exact
}
