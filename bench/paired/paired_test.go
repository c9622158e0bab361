package paired

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"downpour/encoding/seedtest"
)

// noise is the kinds of noise: each function draws a factor near 1, by which measurements of the
// same thing differ.
var noise = map[string]func(r *rand.Rand) float64{
	"even": func(r *rand.Rand) float64 { return 1 + 0.03*r.NormFloat64() },
	"skewed": func(r *rand.Rand) float64 { // noise only ever makes a measurement longer
		return 1 + 0.05*r.ExpFloat64()
	},
	"wild": func(r *rand.Rand) float64 { // now and then another program takes the machine
		f := math.Exp(0.02 * r.NormFloat64())
		if r.IntN(10) == 0 {
			f *= 1 + 5*r.Float64()
		}
		return f
	},
}

// pairs draws n measurements of two things; the second takes ratio times as long. Both
// drift together, as on one machine.
func pairs(r *rand.Rand, n int, ratio float64, noise func(*rand.Rand) float64) (a, b []float64) {
	level := 1.0
	for range n {
		level *= math.Exp(0.2 * r.NormFloat64())
		a, b = append(a, level*noise(r)), append(b, level*ratio*noise(r))
	}
	return a, b
}

// Whatever the noise, the interval holds the true ratio as often as its confidence says.
func TestRatio_coverage(t *testing.T) {
	const runs, truth, seed = 4000, 1.07, 7
	for kind, made := range noise {
		for _, n := range []int{Fewest, 9, 12, 30} {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			held, said := 0, 0.0
			for range runs {
				x, err := Ratio(pairs(r, n, truth, made))
				if err != nil {
					t.Fatal(err)
				}
				said = x.Confidence
				if x.Low <= truth && truth <= x.High {
					held++
				}
			}

			// Four standard deviations of a count of that many runs.
			got, slack := float64(held)/runs, 4*math.Sqrt(said*(1-said)/runs)
			if math.Abs(got-said) > slack || said < Confidence {
				t.Errorf("%s noise, %d pairs, seed %d: %.4f hold the truth, said %.4f ± %.4f",
					kind, n, seed, got, said, slack)
			}
		}
	}
}

// Swapping both sides inverts the interval, another unit scales it, and the order of the pairs does
// not matter.
func TestRatio_invariances(t *testing.T) {
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*math.Abs(y) }
	r := seedtest.Rand(t)
	for range 200 {
		n := 1 + r.IntN(15)
		a, b := pairs(r, n, 0.5+r.Float64(), noise["wild"])
		x, err := Ratio(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if x.Low > x.Median || x.Median > x.High || x.Sure() != (n >= Fewest) {
			t.Errorf("%d pairs: %+v", n, x)
		}

		back, _ := Ratio(b, a)
		if !near(back.Low, 1/x.High) || !near(back.High, 1/x.Low) || !near(back.Median, 1/x.Median) {
			t.Errorf("%+v, the other way round %+v", x, back)
		}

		other := slices.Clone(b)
		for i := range other {
			other[i] *= 3
		}
		if y, _ := Ratio(a, other); !near(y.Low, 3*x.Low) || !near(y.High, 3*x.High) || !near(y.Median, 3*x.Median) {
			t.Errorf("%+v, three times that %+v", x, y)
		}

		r.Shuffle(n, func(i, j int) { a[i], a[j], b[i], b[j] = a[j], a[i], b[j], b[i] })
		if y, _ := Ratio(a, b); !near(y.Low, x.Low) || !near(y.High, x.High) {
			t.Errorf("%+v, in another order %+v", x, y)
		}
	}
}

// tail leaves out as many pairs at each end as tables of the sign test say, and none of fewer than
// 9.
func TestTail(t *testing.T) {
	for n, want := range map[int]int{6: 0, 8: 0, 9: 1, 11: 1, 12: 2, 15: 3, 20: 5, 25: 7, 40: 13, 100: 39} {
		if left, confidence := tail(n); left != want || confidence < Confidence {
			t.Errorf("%d pairs: %d left out, want %d; confidence %v", n, left, want, confidence)
		}
	}
	for n, want := range map[int]float64{1: 0, 2: 0.5, 5: 0.9375, 6: 0.96875} {
		if left, confidence := tail(n); left != 0 || confidence != want {
			t.Errorf("%d pairs: %d left out with confidence %v, want 0 and %v", n, left, confidence, want)
		}
	}
}

// Two wild pairs of twelve, no more than are left out at an end, move neither end of the interval.
func TestRatio_wildPairs(t *testing.T) {
	a := slices.Repeat([]float64{1}, 12)
	b := []float64{1.01, 0.99, 1, 1.02, 0.98, 1, 1.01, 0.99, 40, 1.03, 0.97, 30}
	x, err := Ratio(a, b)
	if err != nil || x.Low != 0.99 || x.High != 1.03 || math.Abs(x.Median-1.005) > 0.001 {
		t.Errorf("interval %+v, error %v; want 0.99 to 1.03 around 1.005", x, err)
	}
	if got := x.String(); got != "1.005x (0.990 to 1.030)" {
		t.Errorf("%s, want 1.005x (0.990 to 1.030)", got)
	}
}

func TestRatio_refused(t *testing.T) {
	f := func(want string, a, b []float64) {
		t.Helper()
		if _, err := Ratio(a, b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f("got 0 and 0", nil, nil)
	f("got 1 and 2", []float64{1}, []float64{1, 2})
	f("pair 1: got 2 and 0", []float64{1, 2}, []float64{1, 0})
	f("pair 0: got NaN", []float64{math.NaN()}, []float64{1})
	f("pair 0: got 1 and +Inf", []float64{1}, []float64{math.Inf(1)})
}
