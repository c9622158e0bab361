package aggregate

import (
	"math"
	mathbits "math/bits"
)

// Proof proves for sums of doubles that the order of their additions does not matter.
// If every addend is a multiple of 2^k and the sum of their absolute values is less
// than 2^(53+k), then every sum of some of them, in any order and grouping, is a
// whole number of at most 53 bits times 2^k, which a double holds exactly. No
// addition rounds, so all orders give the same bits. No sum is -0.0, because sums
// begin at +0.0.
//
// The sum of absolute values may itself have been rounded: while it is below
// 2^(53+k) no addition to it has rounded, and once it has reached that bound, adding
// numbers that are not negative never leads below it again.
//
// A Proof has columns of equal lengths, one element for each time. It is empty for
// functions that are no sums.
type Proof struct {
	Low   []int16   // k: the lowest bit of any addend; NoAddend if there is none but 0
	Bound []float64 // at least the sum of absolute values; +Inf proves nothing
}

// NoAddend is Low if nothing but zeros was added.
const NoAddend = math.MaxInt16

// newProof returns the proof of size sums without addends.
func newProof(size int) Proof {
	return Proof{Low: sized[int16](nil, size, NoAddend), Bound: make([]float64, size)}
}

// Exact reports whether the sum at i has the same bits in every order.
func (p *Proof) Exact(i int) bool { return exact(p.Low[i], p.Bound[i]) }

// exact reports whether sums are exact by the rule at Proof. It is false for a bound
// that is infinite: all powers of two are at most 2^1024, which as a double is +Inf.
func exact(low int16, bound float64) bool {
	return bound < math.Ldexp(1, 53+int(low)) //fault:one-bit-too-many TestProof_exact
}

// ExactWith reports whether the sum at i and the sum of o at k can be added with the
// same bits in every order.
func (p *Proof) ExactWith(i int, o *Proof, k int) bool {
	return exact(min(p.Low[i], o.Low[k]), p.Bound[i]+o.Bound[k])
}

// addend adds x, which is not NaN, to the proof of the sum at i.
func (p *Proof) addend(i int, x float64) {
	if x != 0 {
		p.Low[i] = min(p.Low[i], lowestBit(x))
		p.Bound[i] += math.Abs(x)
	}
}

// merge adds all addends of the sum of o at k to the proof of the sum at i.
func (p *Proof) merge(i int, o *Proof, k int) {
	p.Low[i] = min(p.Low[i], o.Low[k])
	p.Bound[i] += o.Bound[k]
}

// lowestBit returns the largest k such that x, which is not 0, is a multiple of 2^k.
func lowestBit(x float64) int16 {
	const mantissa, bias = 52, 1075 // a double is a whole number, m, times 2^(exponent-bias)
	b := math.Float64bits(x)
	m, e := b&(1<<mantissa-1), int(b>>mantissa&0x7FF)
	if e == 0 {
		e = 1 // a subnormal number: it has no leading bit, and the exponent of 1
	} else {
		m |= 1 << mantissa
	}
	return int16(e - bias + mathbits.TrailingZeros64(m))
}

// Shipped returns the proof in the form in which it is sent: low is Low, and the
// bound is less than 2^high. Both are nil if nothing is proven at any time. They are
// nil too if no sum has more than one addend, because then the sum is the addend and
// Receive can compute the proof.
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

// exponent returns the smallest e with bound < 2^e, or the largest number if bound
// is infinite.
func exponent(bound float64) int16 {
	if bound-bound != 0 { // Inf - Inf is NaN
		return math.MaxInt16
	}
	_, e := math.Frexp(bound)
	return int16(e)
}

// Receive sets the proof of sums that were sent, from what Shipped returned.
func (p *Partial) Receive(low, high []int16) {
	p.Proof = newProof(len(p.Live))
	for i, live := range p.Live {
		switch {
		case len(low) == 0 && live > 1: // nothing is proven
			p.Low[i], p.Bound[i] = 0, math.Inf(1)
		case len(low) == 0: // at most one addend, which then is the sum
			p.addend(i, p.A[i])
		case low[i] != NoAddend:
			p.Low[i], p.Bound[i] = low[i], math.Ldexp(1, int(high[i]))
		}
	}
}
