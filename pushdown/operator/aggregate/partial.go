package aggregate

import "math"

// Mergeability says what of a function can be computed in parts, each of which knows
// some of a group's series and some of their hours.
type Mergeability struct {
	// AnyOrder: states of several parts at one time merge to the same bits as
	// the values themselves do, in whatever order.
	AnyOrder bool
	// InOrder: they do so if they are merged in span order.
	InOrder bool
	// Proven: they do so where the state's Proof is Exact. Double sums do not by
	// themselves: a+(b+c) is not (a+b)+c.
	Proven bool
	// Gaps: what a member contributes between two parts can be added to a
	// finished state and changes no bit, because the policy's value is 0 in a
	// sum, or only counts.
	Gaps bool
	// SkipsNaN: a value that is NaN changes nothing.
	SkipsNaN bool
}

// mergeabilities is the table of what is shipped as states of a group, one for each
// time, instead of values of each series. A function that is not in it needs all
// values of a time at once; so does a group of rates, of stored points, and of
// buckets that reach over rows. They are shipped series by series.
//
//	function                   state             contribution between two parts
//	sum, pfsum, avg            n, sum, proof     line, earlier value: by the proof
//	zimsum, squareSum          n, sum, proof     0
//	count                      n                 1 more
//	min, max                   smallest, largest line
//	mimmin, mimmax             the same          largest, smallest number
//	dev                        n, mean, squares  line: order matters
//	mult                       product           line: order matters
//	first, last, diff          by span order     order matters
var mergeabilities = map[string]Mergeability{
	"sum":       {SkipsNaN: true, Proven: true},
	"pfsum":     {SkipsNaN: true, Proven: true},
	"avg":       {SkipsNaN: true, Proven: true},
	"dev":       {SkipsNaN: true},
	"zimsum":    {SkipsNaN: true, Proven: true, Gaps: true},
	"squareSum": {SkipsNaN: true, Proven: true, Gaps: true},
	"count":     {SkipsNaN: true, Gaps: true, AnyOrder: true},
	"min":       {SkipsNaN: true, Gaps: true, AnyOrder: true},
	"max":       {SkipsNaN: true, Gaps: true, AnyOrder: true},
	"mimmin":    {SkipsNaN: true, Gaps: true, AnyOrder: true},
	"mimmax":    {SkipsNaN: true, Gaps: true, AnyOrder: true},
	"mult":      {},
	"first":     {InOrder: true},
	"last":      {InOrder: true},
	"diff":      {InOrder: true},
}

// Mergeability tells how the function can be computed in parts, false if it cannot.
func (f *Function) Mergeability() (Mergeability, bool) {
	s, ok := mergeabilities[string(f.Name)]
	return s, ok
}

// Mergeable tells whether the function can be computed in parts.
func (f *Function) Mergeable() bool {
	_, ok := f.Mergeability()
	return ok
}

// Partial is the state of a group's doubles at the times of a grid: columns of
// equal lengths, one element a time.
type Partial struct {
	Real []bool  // a member has a point there
	Live []int32 // members that contribute: those between first and last point
	// What the function remembers of their values; A and B may be nil.
	N     []int32
	A, B  []float64
	Proof // of A, if that is a sum
}

// NewPartial returns the state of size times at which nothing contributes.
func (f *Function) NewPartial(size int) *Partial {
	var c columns
	f.double.reset(&c, size)
	p := &Partial{Real: make([]bool, size), Live: make([]int32, size), N: c.n, A: c.a, B: c.b}
	if p.N == nil {
		p.N = make([]int32, size)
	}
	if s, _ := f.Mergeability(); s.Proven {
		p.Proof = newProof(size)
	}
	return p
}

// Columns tells which columns of a state the function uses beside Real and Live.
func (f *Function) Columns() (n, a, b bool) {
	var c columns
	f.double.reset(&c, 1)
	switch f.Name {
	case "min", "max", "mimmin", "mimmax", "mult", "last":
		return false, true, false
	}
	return true, c.a != nil, c.b != nil
}

// Holds tells whether a state has the columns that the function uses.
func (f *Function) Holds(p *Partial) bool {
	_, a, b := f.Columns()
	return (!a || len(p.A) == len(p.Live)) && (!b || len(p.B) == len(p.Live))
}

func (p *Partial) columns() *columns { return &columns{n: p.N, a: p.A, b: p.B} }

// AddMember adds a member to a state over the given times: its points, and
// between them what the function's policy says. Members come in span order.
// Value must be set and all its times be among the state's.
func (f *Function) AddMember(p *Partial, times []int64, s Series, scratch []float64) []float64 {
	if len(s.Time) == 0 {
		return scratch
	}
	at, values, scratch := f.Contribute(times, s, scratch)
	f.AddValues(p, at, values)
	p.MarkReal(times[at:][:len(values)], at, s.Time)
	return scratch
}

// Contribute is what a member gives at the times from index at on: its points,
// and between them what the policy says. values may be s.Value or in scratch,
// which is returned to be used again. s has a point.
func (f *Function) Contribute(times []int64, s Series, scratch []float64) (at int, values, _ []float64) {
	at = from(times, s.Time[0])
	own := times[at : from(times, s.Time[len(s.Time)-1])+1]
	if len(own) == len(s.Time) {
		return at, s.Value, scratch
	}
	scratch = sized(scratch, len(own), 0)
	contribute(doublePolicies.of(f.Interpolation), scratch, own, s.Time, s.Value, 0)
	return at, scratch, scratch
}

// MarkReal notes that a member has points; times are those of the states from
// index at on.
func (p *Partial) MarkReal(times []int64, at int, points []int64) {
	k := 0
	for i, t := range times {
		if k < len(points) && t == points[k] {
			p.Real[at+i] = true
			k++
		}
	}
}

// AddValues adds one member's contributions at the times from index at on.
func (f *Function) AddValues(p *Partial, at int, values []float64) {
	f.double.add(p.columns(), at, values)
	live := p.Live[at:][:len(values)]
	for i := range live {
		live[i]++
	}
	if p.Low != nil {
		f.prove(p, at, values)
	}
}

// prove takes what was added to a sum into its proof.
func (f *Function) prove(p *Partial, at int, values []float64) {
	squares := f.Name == "squareSum"
	for i, v := range values {
		if squares {
			v = float64(v * v)
		}
		if v == v {
			p.addend(at+i, v)
		}
	}
}

// Gap is what a member contributes at times between two of its points, (x0, y0)
// and (x1, y1), at ascending times strictly inside.
func (f *Function) Gap(out []float64, at []int64, x0, x1 int64, y0, y1 float64) {
	doublePolicies.of(f.Interpolation).gap(out, at, x0, x1, y0, y1)
}

// GapNeeds tells which of the two points the value of a gap depends on.
func (f *Function) GapNeeds() (earlier, later bool) {
	return f.Interpolation == LERP || f.Interpolation == PREV, f.Interpolation == LERP
}

// Tie tells whether adding v late to the state at i would have to know who came
// first: of 0.0 and -0.0 the first one stays the minimum and the maximum.
func (f *Function) Tie(p *Partial, i int, v float64) bool {
	if p.A == nil || p.Live[i] == 0 || !f.extreme() {
		return false
	}
	return v == 0 && p.A[i] == 0 && math.Signbit(v) != math.Signbit(p.A[i])
}

func (f *Function) extreme() bool {
	switch f.Name {
	case "min", "max", "mimmin", "mimmax":
		return true
	}
	return false
}

// Finish writes the results at the times from index at on. At each of them a
// member contributes.
func (f *Function) Finish(p *Partial, at int, out []float64) {
	c := &columns{n: p.N[at:]}
	if p.A != nil {
		c.a = p.A[at:]
	}
	if p.B != nil {
		c.b = p.B[at:]
	}
	f.double.finish(c, out)
}
