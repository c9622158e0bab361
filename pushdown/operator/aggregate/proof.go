package aggregate

import (
	"math"
	mathbits "math/bits"
)

// Proof shows of sums of doubles that the order of their additions does not
// matter. If every addend is a multiple of 2^k, and the absolute values of all
// together are less than 2^(53+k), then so is every sum of some of them, in
// whatever order and grouping: a whole number of 53 bits, times 2^k, which is a
// double. No addition rounds, so all orders give the same bits. As sums begin at
// +0.0 none is -0.0.
//
// The bound may itself be a rounded sum: as long as it stays below 2^(53+k) no
// addition to it has rounded, and once it has reached that, adding what is not
// negative never leads below it again.
//
// A Proof has columns of equal lengths, one element a time; it is empty for
// functions that are no sums.
type Proof struct {
	Low   []int16   // k: the lowest bit of any addend; NoAddend where there is none but 0
	Bound []float64 // at least the sum of absolute values; +Inf proves nothing
}

// NoAddend is Low where nothing but zeros was added.
const NoAddend = math.MaxInt16

// newProof is the proof of sums without addends.
func newProof(size int) Proof {
	return Proof{Low: sized[int16](nil, size, NoAddend), Bound: make([]float64, size)}
}

// Exact tells whether the sum at i has the same bits in every order.
func (p *Proof) Exact(i int) bool { return exact(p.Low[i], p.Bound[i]) }

// exact is false for a bound that is not finite: nothing is less than 2^1024 but
// what is.
func exact(low int16, bound float64) bool { return bound < math.Ldexp(1, 53+int(low)) }

// ExactWith tells whether the sum at i and that of o at k, added up, have the
// same bits in every order.
func (p *Proof) ExactWith(i int, o *Proof, k int) bool {
	return exact(min(p.Low[i], o.Low[k]), p.Bound[i]+o.Bound[k])
}

// addend takes x into the proof of the sum at i; x is not NaN.
func (p *Proof) addend(i int, x float64) {
	if x != 0 {
		p.Low[i] = min(p.Low[i], lowestBit(x))
		p.Bound[i] += math.Abs(x)
	}
}

// merge takes all addends of another sum.
func (p *Proof) merge(i int, o *Proof, k int) {
	p.Low[i] = min(p.Low[i], o.Low[k])
	p.Bound[i] += o.Bound[k]
}

// lowestBit is the largest k such that x, not 0, is a multiple of 2^k.
func lowestBit(x float64) int16 {
	const mantissa, bias = 52, 1075 // a double is a whole number times 2^(exponent-bias)
	b := math.Float64bits(x)
	m, e := b&(1<<mantissa-1), int(b>>mantissa&0x7FF)
	if e == 0 {
		e = 1 // without the leading bit
	} else {
		m |= 1 << mantissa
	}
	return int16(e - bias + mathbits.TrailingZeros64(m))
}

// Shipped returns the proof in the form in which it is sent: high is such that
// the bound is less than 2^high. Both are nil if nothing is proven at any time, and
// if no sum has more than one addend, which then is the sum.
func (p *Partial) Shipped() (low, high []int16) {
	proven, several := false, false
	for i := range p.Low {
		proven = proven || p.Exact(i)
		several = several || p.Live[i] > 1
		high = append(high, exponent(p.Bound[i]))
	}
	if !proven || !several {
		return nil, nil
	}
	return p.Low, high
}

// exponent is the least e with bound < 2^e.
func exponent(bound float64) int16 {
	if bound-bound != 0 { // infinite
		return math.MaxInt16
	}
	_, e := math.Frexp(bound)
	return int16(e)
}

// Receive sets the proof of a sum that was sent: what Shipped returned.
func (p *Partial) Receive(low, high []int16) {
	p.Proof = newProof(len(p.Live))
	for i, live := range p.Live {
		switch {
		case len(low) == 0 && live > 1:
			p.Low[i], p.Bound[i] = 0, math.Inf(1)
		case len(low) == 0:
			p.addend(i, p.A[i])
		case low[i] != NoAddend:
			p.Low[i], p.Bound[i] = low[i], math.Ldexp(1, int(high[i]))
		}
	}
}
