package picture

import (
	"math"

	"downpour/gateway/extra/graph"
)

// mostKnots bounds the points that a curve is laid through, and so its cost: more than one
// for a column of pixels change nothing that could be seen.
const mostKnots = 2048

// smoothed returns samples made of others, of those between the picture's times. Ways of
// smoothing that are not known here leave them as they are.
// Source: gnuplot's "plot … smooth".
func (p *Picture) smoothed(s samples, guard Guard) (samples, error) {
	how := p.Options.Smooth
	var combine func(sum float64, n int) float64
	switch how {
	case graph.Frequency, graph.NormalFrequency, graph.Cumulative, graph.NormalCumulative:
		combine = func(sum float64, _ int) float64 { return sum }
	// A curve, too, is laid through one point for each time, the mean.
	case graph.Unique, graph.Splines, graph.ApproximateSplines, graph.MonotoneSplines, graph.Bezier, graph.BezierUnique:
		combine = func(sum float64, n int) float64 { return sum / float64(n) }
	default:
		return s, nil
	}

	const second = 1000 // gnuplot gets whole seconds, so points of one second have one time
	m, err := p.gathered(s, second, combine, guard)
	if err != nil {
		return nil, err
	}

	switch how {
	case graph.NormalFrequency:
		m.divide(m.total())
	case graph.Cumulative:
		m.accumulate()
	case graph.NormalCumulative:
		// Before the values become sums.
		total := m.total()
		m.accumulate()
		m.divide(total)
	case graph.Splines, graph.ApproximateSplines, graph.MonotoneSplines, graph.Bezier, graph.BezierUnique:
		return p.curve(m, guard)
	}
	return m, nil
}

// gathered returns one sample for each stretch of so many ms that has any, at the time of
// its first.
func (p *Picture) gathered(
	s samples, width float64, combine func(sum float64, n int) float64, guard Guard,
) (made, error) {
	if err := guard.Reserve(int64(s.Len()) * sampleBytes); err != nil {
		return nil, err
	}
	out := make(made, 0, s.Len())

	sum, n, stretch := 0.0, 0, 0.0
	for i := range s.Len() {
		if i%checkEvery == 0 {
			if err := guard.Check(); err != nil {
				return nil, err
			}
		}
		ms, v, ok := s.At(i)
		if !ok || !p.contains(ms) {
			continue
		}
		if at := math.Floor(ms / width); n == 0 || at != stretch {
			sum, n, stretch = 0, 0, at
			out = append(out, sample{ms: ms})
		}
		// Each sample may be the last one of its stretch.
		sum, n = sum+v, n+1
		out[len(out)-1].value = combine(sum, n)
	}
	return out, nil
}

func (m made) total() (sum float64) {
	for _, s := range m {
		sum += s.value
	}
	return sum
}

func (m made) accumulate() {
	sum := 0.0
	for i := range m {
		sum += m[i].value
		m[i].value = sum
	}
}

// divide divides all values by n. By 0 they stay: then there is nothing to compare.
func (m made) divide(n float64) {
	for i := range m {
		if n != 0 {
			m[i].value /= n
		}
	}
}

// curve returns a curve through or along the samples, one for each column of pixels.
func (p *Picture) curve(m made, guard Guard) (made, error) {
	if len(m) > mostKnots {
		width := (m[len(m)-1].ms - m[0].ms) / mostKnots
		mean := func(sum float64, n int) float64 { return sum / float64(n) }
		var err error
		if m, err = p.gathered(m, width, mean, guard); err != nil {
			return nil, err
		}
	}
	if len(m) < 3 {
		return m, nil // a straight line
	}

	// The curve, and more than the slopes of the samples, or bezier's logarithms, take.
	if err := guard.Reserve(int64(p.Options.Width)*sampleBytes + int64(len(m))*4*sampleBytes); err != nil {
		return nil, err
	}

	var at func(ms float64) float64
	switch p.Options.Smooth {
	case graph.Bezier, graph.BezierUnique:
		return bezier(m, p.Options.Width, guard)
	case graph.MonotoneSplines:
		at = hermite(m, monotoneSlopes(m))
	default:
		at = hermite(m, naturalSlopes(m))
	}

	out := make(made, p.Options.Width)
	first, last := m[0].ms, m[len(m)-1].ms
	for i := range out {
		ms := first + (last-first)*float64(i)/float64(len(out)-1)
		out[i] = sample{ms, at(ms)}
	}
	return out, nil
}

// hermite returns the piecewise cubic through the samples that has these slopes there. It
// gets ascending times.
func hermite(m made, slope []float64) func(float64) float64 {
	i := 0
	return func(ms float64) float64 {
		for i < len(m)-2 && ms > m[i+1].ms {
			i++
		}
		h := m[i+1].ms - m[i].ms
		t := (ms - m[i].ms) / h
		u := 1 - t
		return u*u*(1+2*t)*m[i].value + t*u*u*h*slope[i] + t*t*(3-2*t)*m[i+1].value - t*t*u*h*slope[i+1]
	}
}

// naturalSlopes are those of a spline whose second derivative is continuous, and 0 at both
// ends: the solution of a tridiagonal system.
func naturalSlopes(m made) []float64 {
	n := len(m)
	slope, factor := make([]float64, n), make([]float64, n)
	// Row i of the system is a·s[i-1] + b·s[i] + c·s[i+1] = d.
	row := func(i int) (a, b, c, d float64) {
		switch i {
		case 0:
			h := m[1].ms - m[0].ms
			return 0, 2, 1, 3 * (m[1].value - m[0].value) / h
		case n - 1:
			h := m[n-1].ms - m[n-2].ms
			return 1, 2, 0, 3 * (m[n-1].value - m[n-2].value) / h
		}
		h, k := m[i].ms-m[i-1].ms, m[i+1].ms-m[i].ms
		return 1 / h, 2/h + 2/k, 1 / k, 3*(m[i].value-m[i-1].value)/(h*h) + 3*(m[i+1].value-m[i].value)/(k*k)
	}

	// Elimination downwards, then substitution upwards.
	for i := range n {
		a, b, c, d := row(i)
		if i > 0 {
			b -= a * factor[i-1]
			d -= a * slope[i-1]
		}
		factor[i], slope[i] = c/b, d/b
	}
	for i := n - 2; i >= 0; i-- {
		slope[i] -= factor[i] * slope[i+1]
	}
	return slope
}

// monotoneSlopes are those of a curve that rises where the samples rise and falls where they
// fall. Source: Fritsch and Carlson, Monotone Piecewise Cubic Interpolation, 1980.
func monotoneSlopes(m made) []float64 {
	n := len(m)
	secant := make([]float64, n-1)
	for i := range secant {
		secant[i] = (m[i+1].value - m[i].value) / (m[i+1].ms - m[i].ms)
	}
	slope := make([]float64, n)

	slope[0], slope[n-1] = secant[0], secant[n-2]
	for i := 1; i < n-1; i++ {
		// At a peak or in a trough the slope stays 0.
		if secant[i-1]*secant[i] > 0 {
			slope[i] = (secant[i-1] + secant[i]) / 2
		}
	}

	for i, s := range secant {
		if s == 0 {
			slope[i], slope[i+1] = 0, 0
			continue
		}
		a, b := slope[i]/s, slope[i+1]/s
		// Inside a circle of radius 3 the piece is monotone.
		if length := math.Hypot(a, b); length > 3 {
			slope[i], slope[i+1] = 3*a/length*s, 3*b/length*s
		}
	}
	return slope
}

// bezier returns the Bézier curve whose control points are the samples, at so many places, but
// at most 500.
func bezier(m made, places int, guard Guard) (made, error) {
	n := len(m) - 1
	// Logarithms, because the binomial coefficients of many samples exceed the largest double.
	logChoose := make([]float64, len(m))
	whole, _ := math.Lgamma(float64(n + 1))
	for i := range m {
		a, _ := math.Lgamma(float64(i + 1))
		b, _ := math.Lgamma(float64(n - i + 1))
		logChoose[i] = whole - a - b
	}

	places = min(places, 500) // it is smooth, and each costs as much as there are samples
	out := make(made, places)
	// The curve ends at the samples, where the logarithm of t or of 1-t is infinite.
	out[0], out[places-1] = m[0], m[n]
	for k := 1; k < places-1; k++ {
		if err := guard.Check(); err != nil {
			return nil, err
		}
		t := float64(k) / float64(places-1)
		logT, logU := math.Log(t), math.Log(1-t)
		for i, s := range m {
			weight := math.Exp(logChoose[i] + float64(i)*logT + float64(n-i)*logU)
			out[k].ms += weight * s.ms
			out[k].value += weight * s.value
		}
	}
	return out, nil
}
