package aggregate

import "math"

// Mergeability is the condition under which partial aggregates of a function merge to
// the same bits as the values themselves would. Each of them was computed from some of
// a group's series and some of their hours.
type Mergeability struct {
	// AnyOrder: partial aggregates at one time merge exactly in any order.
	AnyOrder bool
	// InOrder: they merge exactly if they are merged in span order.
	InOrder bool
	// Proven: they merge exactly where Proof.Exact is true. Sums of doubles need that:
	// a+(b+c) is not (a+b)+c.
	Proven bool
	// Gaps: what a member contributes between two parts can be added to a finished
	// partial aggregate and changes no bit, because the policy's value is 0 in a
	// sum, or is only counted.
	Gaps bool
	// SkipsNaN: a NaN changes nothing.
	SkipsNaN bool
	// AllAtOnce: they never merge, because the function needs all values of a time at once. One has them where all
	// members of the time are in its part, and none contributes between two parts.
	AllAtOnce bool
}

// Mergeability returns the conditions under which partial aggregates of f merge; ok
// is false if f has none. Such a function needs all values of a time at once. Rates,
// points without downsampling, and buckets that do not divide the hour are shipped
// series by series too, whatever the function.
func (f *Function) Mergeability() (m Mergeability, ok bool) {
	if f.merging == nil {
		return m, false
	}
	return f.merging.Mergeability, true
}

// Mergeable reports whether f has partial aggregates.
func (f *Function) Mergeable() bool { return f.merging != nil }

// Partial is partial aggregates of one group at the times of a grid: columns of
// equal lengths, one element for each time.
type Partial struct {
	Real []bool  // a member has a point there
	Live []int32 // members that contribute: those between their first and last point
	// The function's accumulators; A and B are nil if it does not use them.
	N     []int32
	A, B  []float64
	Proof // of A, if that is a sum
	// gathered are, at each time, the keys of the values of a function that needs all at once; nil for
	// others. Where it has none A is the result.
	gathered [][]int64

	view columns // what columns returns: it would be allocated for each member
}

// NewPartial returns partial aggregates at size times at which no member contributes.
func (f *Function) NewPartial(size int) *Partial {
	var c columns
	f.double.reset(&c, size)
	p := &Partial{Real: make([]bool, size), Live: make([]int32, size), N: c.n, A: c.a, B: c.b}
	// Merge copies N whatever the function.
	if p.N == nil {
		p.N = make([]int32, size)
	}

	switch s, _ := f.Mergeability(); {
	case s.Proven:
		p.Proof = newProof(size)
	case s.AllAtOnce:
		p.A, p.gathered = sized(p.A, size, nan), make([][]int64, size)
	}

	return p
}

// Columns reports which of N, A and B a function with partial aggregates uses.
func (f *Function) Columns() (n, a, b bool) {
	return f.merging.n, f.merging.a, f.merging.b
}

// Holds reports whether p has the columns that the function uses.
func (f *Function) Holds(p *Partial) bool {
	_, a, b := f.Columns()
	return (!a || len(p.A) == len(p.Live)) && (!b || len(p.B) == len(p.Live))
}

// columns returns the accumulators as the functions over groups know them.
func (p *Partial) columns() *columns {
	p.view.n, p.view.a, p.view.b = p.N, p.A, p.B
	return &p.view
}

// DropProof forgets the proof of sums: nothing will be added to them out of order.
func (p *Partial) DropProof() { p.Proof = Proof{} }

// AddMember adds a member to partial aggregates at the given times: its points, and
// between them what the interpolation says. Members come in span order. s.Value is
// set, and all times of s are among times. It returns scratch, which may have grown.
func (f *Function) AddMember(p *Partial, times []int64, s Series, scratch []float64) []float64 {
	if len(s.Time) == 0 {
		return scratch
	}

	at, values, scratch := f.Contribute(times, s, scratch)
	f.AddValues(p, at, values)
	p.MarkReal(times[at:][:len(values)], at, s.Time)
	return scratch
}

// Contribute returns what a member contributes at the times from index at on: its
// points, and between them what the interpolation says. s has at least one point.
// values is s.Value or in scratch, which is returned to be used again.
func (f *Function) Contribute(times []int64, s Series, scratch []float64) (at int, values, _ []float64) {
	at = from(times, s.Time[0])
	own := times[at : from(times, s.Time[len(s.Time)-1])+1]
	if len(own) == len(s.Time) {
		return at, s.Value, scratch // a point at each time: there is no gap
	}

	scratch = sized(scratch, len(own), 0)
	contribute(doublePolicies.of(f.Interpolation), scratch, own, s.Time, s.Value, 0)
	return at, scratch, scratch
}

// MarkReal sets Real at the times of a member's points: an answer has no point where all
// members are interpolated. times are those of p from index at on, points ascend and are
// among them.
func (p *Partial) MarkReal(times []int64, at int, points []int64) {
	k := 0
	for i, t := range times {
		if k < len(points) && t == points[k] {
			p.Real[at+i] = true
			k++
		}
	}
}

// AddValues adds the contributions of one member at the times from index at on.
func (f *Function) AddValues(p *Partial, at int, values []float64) {
	if p.gathered != nil {
		p.gather(at, values)
	} else {
		f.double.add(p.columns(), at, values)
	}

	live := p.Live[at:][:len(values)]
	for i := range live {
		live[i]++
	}

	if p.Low != nil {
		f.prove(p, at, values)
	}
}

// gather keeps values but NaN, from index at on.
func (p *Partial) gather(at int, values []float64) {
	for i, v := range values {
		if v == v {
			p.gathered[at+i] = append(p.gathered[at+i], key(v))
		}
	}
}

// Settle makes results of gathered values, which are freed: a batch has the results alone.
func (f *Function) Settle(p *Partial) {
	for i, keys := range p.gathered {
		if len(keys) > 0 {
			p.A[i] = f.scalar.value(&State{keys: keys})
		}
	}
	p.gathered = nil
}

// prove adds to the proof what AddValues has added to a sum: not NaN, which sums skip.
func (f *Function) prove(p *Partial, at int, values []float64) {
	squares := f.merging.squares
	for i, v := range values {
		if squares {
			v = float64(v * v) // float64 forbids fusing, see sumsOfSquares
		}
		if v == v {
			p.addend(at+i, v)
		}
	}
}

// Gap fills out with what a member contributes between two of its points, (x0, y0)
// and (x1, y1); at are ascending times strictly between x0 and x1.
func (f *Function) Gap(out []float64, at []int64, x0, x1 int64, y0, y1 float64) {
	doublePolicies.of(f.Interpolation).gap(out, at, x0, x1, y0, y1)
}

// GapNeeds reports which of the two points the values of Gap depend on.
func (f *Function) GapNeeds() (earlier, later bool) {
	return f.Interpolation == LERP || f.Interpolation == PREV, f.Interpolation == LERP
}

// Tie reports whether v cannot be added to the partial aggregate at i out of span
// order: of 0.0 and -0.0 the first one stays the minimum and the maximum.
func (f *Function) Tie(p *Partial, i int, v float64) bool {
	if p.A == nil || p.Live[i] == 0 || !f.merging.extreme {
		return false
	}
	return v == 0 && p.A[i] == 0 && math.Signbit(v) != math.Signbit(p.A[i])
}

// Finish writes the results at the times from index at on. At each of them a member
// contributes.
func (f *Function) Finish(p *Partial, at int, out []float64) {
	if f.merging.AllAtOnce {
		f.Settle(p)
		copy(out, p.A[at:])
		return
	}
	c := &columns{n: p.N[at:]}
	if p.A != nil {
		c.a = p.A[at:]
	}
	if p.B != nil {
		c.b = p.B[at:]
	}
	f.double.finish(c, out)
}
