package aggregate

import "math"

// merging is how partial aggregates of a function merge. What each function keeps,
// and what a member adds that goes on from one part to the next:
//
//	function                accumulators      between two parts
//	sum, pfsum, avg         n, sum, proof     line, earlier value: by the proof
//	zimsum, squareSum       n, sum, proof     0
//	count                   n                 1 more
//	min, max                smallest, largest line
//	mimmin, mimmax          the same          largest, smallest number
//	dev                     n, mean, squares  line: order matters
//	mult                    product           line: order matters
//	first, last, diff       by span order     order matters
//	median, percentiles     the result        cannot be added
type merging struct {
	Mergeability

	n, a, b bool // which of Partial's accumulators are used
	squares bool // the proof is that of the values' squares
	extreme bool // A is the smallest or largest value

	// combine merges src at i into p at k. Both have members; those of src come
	// later in span order.
	combine func(f *Function, p *Partial, k int, src *Partial, i int)
	// addZeros adds count members of value 0 to p at k, out of span order, and
	// reports whether that is exact. nil: it never is.
	addZeros func(f *Function, p *Partial, k int, count int32) (exact bool)
}

// mergeSums is of functions that are made of a sum and a number of values.
var mergeSums = &merging{
	Mergeability: Mergeability{SkipsNaN: true, Proven: true},
	n:            true, a: true, combine: combineSums, addZeros: countZeros,
}

// mergeSumsOverZeros is of sums to which a member contributes 0 between two points.
var mergeSumsOverZeros = &merging{
	Mergeability: Mergeability{SkipsNaN: true, Proven: true, Gaps: true},
	n:            true, a: true, combine: combineSums, addZeros: countZeros,
}

var mergeSumsOfSquares = &merging{
	Mergeability: Mergeability{SkipsNaN: true, Proven: true, Gaps: true},
	n:            true, a: true, squares: true, combine: combineSums, addZeros: countZeros,
}

var mergeCounts = &merging{
	Mergeability: Mergeability{SkipsNaN: true, Gaps: true, AnyOrder: true},
	n:            true,
	combine:      func(_ *Function, p *Partial, k int, src *Partial, i int) { p.N[k] += src.N[i] },
	addZeros:     countZeros,
}

var mergeExtremes = &merging{
	Mergeability: Mergeability{SkipsNaN: true, Gaps: true, AnyOrder: true},
	a:            true, extreme: true,
	combine: func(f *Function, p *Partial, k int, src *Partial, i int) {
		f.double.add(p.columns(), k, src.A[i:i+1])
	},
	addZeros: func(f *Function, p *Partial, k int, _ int32) bool {
		tie := f.Tie(p, k, 0)
		f.double.add(p.columns(), k, zero[:])
		return !tie
	},
}

var mergeProducts = &merging{
	a:       true,
	combine: func(_ *Function, p *Partial, k int, src *Partial, i int) { p.A[k] *= src.A[i] },
}

var mergeDeviations = &merging{
	Mergeability: Mergeability{SkipsNaN: true},
	n:            true, a: true, b: true,
	combine: func(_ *Function, p *Partial, k int, src *Partial, i int) { p.combineDev(k, src, i) },
	addZeros: func(_ *Function, p *Partial, k int, count int32) bool {
		exact := p.Live[k] == 0
		p.combineDev(k, &Partial{N: []int32{count}, A: zero[:], B: zero[:]}, 0)
		return exact
	},
}

var mergeFirsts = &merging{
	Mergeability: Mergeability{InOrder: true},
	n:            true, a: true,
	combine: func(*Function, *Partial, int, *Partial, int) {}, // the value of the earlier members stays
}

var mergeLasts = &merging{
	Mergeability: Mergeability{InOrder: true},
	a:            true,
	combine:      func(_ *Function, p *Partial, k int, src *Partial, i int) { p.A[k] = src.A[i] },
}

var mergeDifferences = &merging{
	Mergeability: Mergeability{InOrder: true},
	n:            true, a: true, b: true,
	combine: func(_ *Function, p *Partial, k int, src *Partial, i int) { p.combineDiff(k, src, i) },
}

// mergeResults is of functions that need all values of a time at once. Nothing is combined: see Mergeability.
var mergeResults = &merging{
	Mergeability: Mergeability{SkipsNaN: true, AllAtOnce: true},
	a:            true,
	combine:      func(*Function, *Partial, int, *Partial, int) {},
}

var (
	nan  = math.NaN()
	zero = [1]float64{0}
)

// Merge adds the partial aggregates src to p, from index at on. The members of src
// come after those of p in span order.
func (f *Function) Merge(p *Partial, at int, src *Partial) {
	for i := range src.Live {
		k := at + i
		p.Real[k] = p.Real[k] || src.Real[i]

		// Where one of them has no members the other is taken as it is: adding to an
		// empty accumulator could change a bit.
		if src.Live[i] == 0 {
			continue
		}
		if p.Live[k] == 0 {
			p.set(k, src, i)
			continue
		}

		p.Live[k] += src.Live[i]
		f.merging.combine(f, p, k, src, i)
	}
}

// set copies the partial aggregate of src at i to k, where p has no members.
func (p *Partial) set(k int, src *Partial, i int) {
	p.Live[k], p.N[k] = src.Live[i], src.N[i]
	if p.A != nil {
		p.A[k] = src.A[i]
	}
	if p.B != nil {
		p.B[k] = src.B[i]
	}
	if p.Low != nil {
		p.Low[k], p.Bound[k] = src.Low[i], src.Bound[i]
	}
}

// combineSums adds sums, numbers of values and proofs.
func combineSums(_ *Function, p *Partial, k int, src *Partial, i int) {
	p.N[k] += src.N[i]
	p.A[k] += src.A[i]
	p.merge(k, &src.Proof, i)
}

// combineDev merges two means and sums of squared distances: the sum of squares
// grows by the distance of the means.
func (p *Partial) combineDev(k int, src *Partial, i int) {
	if src.N[i] == 0 {
		return // members of src have contributed NaN only
	}

	n, m := float64(p.N[k]), float64(src.N[i])
	d := src.A[i] - p.A[k]
	if p.N[k] == 0 { // members of p have contributed NaN only: it has no mean yet
		d = 0
		p.A[k] = src.A[i]
	}

	p.A[k] += d * m / (n + m)
	p.B[k] += src.B[i] + d*d*n*m/(n+m)
	p.N[k] += src.N[i]
}

// combineDiff keeps the first value of p and takes the last value of src, which is
// NaN if src has seen nothing else.
func (p *Partial) combineDiff(k int, src *Partial, i int) {
	switch {
	// Nothing but NaN before src: the first value is that of src.
	case p.N[k] == 0:
		p.N[k], p.A[k], p.B[k] = src.N[i], src.A[i], src.B[i]
		return
	case src.N[i] == 0:
		p.B[k] = nan
	case src.N[i] == 1: // its only value is its first and its last
		p.B[k] = src.A[i]
	default:
		p.B[k] = src.B[i]
	}
	p.N[k] = 2
}

// countZeros is addZeros of counts and sums: a sum begins at 0.0 and is never -0.0,
// so that a 0 changes no bit of it.
func countZeros(_ *Function, p *Partial, k int, count int32) (exact bool) {
	p.N[k] += count
	return true
}

// AddZeros adds count members of value 0 to the partial aggregates [at, to), out of
// span order. It reports whether the result has the same bits as with these members
// in their places; if it has not, p must not be used any more.
func (f *Function) AddZeros(p *Partial, at, to int, count int32) (exact bool) {
	if f.merging.addZeros == nil {
		return at >= to // nothing to add is exact
	}

	exact = true
	for k := at; k < to; k++ {
		exact = f.merging.addZeros(f, p, k, count) && exact
		p.Live[k] += count // not before addZeros, which looks at it
	}
	return exact
}
