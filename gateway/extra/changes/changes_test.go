package changes

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/seedtest"
)

// two are stretches of 12 buckets of 10 s each.
var two = Stretches{From: 120_000, Turn: 240_000, End: 360_000, Step: 10_000}

// points has values at the buckets of two from the first on; NaN where there is none.
func points(values ...float64) *encoding.Points {
	p := &encoding.Points{}
	for i, v := range values {
		if !math.IsNaN(v) {
			p.Append(two.From+int64(i)*two.Step, encoding.FloatValue(v))
		}
	}
	return p
}

func repeated(n int, v float64) []float64 { return slices.Repeat([]float64{v}, n) }

// alternating are 12 values, a and b by turns.
func alternating(a, b float64) []float64 { return slices.Repeat([]float64{a, b}, 6) }

// line are n values that begin with v and grow by step.
func line(n int, v, step float64) (out []float64) {
	for i := range n {
		out = append(out, v+float64(i)*step)
	}
	return out
}

func TestCompare(t *testing.T) {
	none := repeated(12, math.NaN())
	falls := slices.Concat(line(12, 0, 5), line(12, 0, 5))
	for name, c := range map[string]struct {
		values []float64
		want   Change
	}{
		"constant":       {repeated(24, 3), Change{Kind: Changed, Before: 3, After: 3}},
		"a step":         {append(repeated(12, 2), repeated(12, 4)...), Change{Changed, 2, 4, 50, false}},
		"from nothing":   {append(repeated(12, 0), repeated(12, 7)...), Change{Changed, 0, 7, 100, false}},
		"another sign":   {append(repeated(12, -7), repeated(12, 7)...), Change{Changed, -7, 7, 200, false}},
		"restless":       {append(alternating(0, 2), alternating(10, 12)...), Change{Changed, 1, 11, 10 / 1.11, false}},
		"a counter":      {line(24, 1e9, 50), Change{Changed, 5, 5, 0, true}},
		"one that stops": {append(line(12, 0, 50), repeated(12, 550)...), Change{Changed, 5, 0, 100, true}},
		"one that falls": {falls, Change{Changed, 27.5, 27.5, 0, false}},
		"appears":        {append(none, repeated(3, 4)...), Change{Appeared, math.NaN(), 4, 0, false}},
		"vanishes":       {repeated(3, 4), Change{Vanished, 4, math.NaN(), 0, false}},
		"too few":        {repeated(14, 4), Change{Kind: Sparse}},
		"two appear":     {append(none, 4, 4), Change{Kind: Sparse}},
		"infinities": {append(repeated(12, 1), repeated(12, math.Inf(1))...),
			Change{Vanished, 1, math.NaN(), 0, false}},
		"largest": {append(repeated(12, -math.MaxFloat64), repeated(12, math.MaxFloat64)...),
			Change{Changed, -math.MaxFloat64, math.MaxFloat64, 200, false}},
		"nothing": {nil, Change{Kind: Sparse}},
	} {
		near := cmp.Comparer(func(a, b float64) bool {
			return a == b || math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) || math.IsNaN(a) && math.IsNaN(b)
		})
		if d := cmp.Diff(c.want, Compare(points(c.values...), two), near); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// What is outside of the stretches does not count, and the bucket at the turn belongs to the stretch after it.
func TestCompare_bounds(t *testing.T) {
	p := &encoding.Points{}
	p.Append(two.From-1, encoding.IntValue(1000))
	for _, v := range append(repeated(12, 2), repeated(12, 4)...) {
		p.Append(two.From+int64(p.Len()-1)*two.Step, encoding.FloatValue(v))
	}
	p.Append(two.End, encoding.IntValue(1000))
	if c := Compare(p, two); c.Before != 2 || c.After != 4 {
		t.Errorf("got %+v, want means of 2 and 4", c)
	}
}

// The unit and the sign of a series do not change its score, nor does the order of the stretches.
func TestCompare_laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 24, 24).Draw(t, "values")
		values[0], values[1] = 1e7, -1e7 // no counter, nor is its negative
		scale := rapid.SampledFrom([]float64{-1, 1e-3, 1024, -7}).Draw(t, "scale")
		scaled := make([]float64, len(values))
		for i, v := range values {
			scaled[i] = v * scale
		}
		c, other := Compare(points(values...), two), Compare(points(scaled...), two)
		if math.Abs(c.Score-other.Score) > 1e-6*max(1, c.Score) || c.Score < 0 || c.Score > 200.1 {
			t.Errorf("score %v, times %v it is %v", c.Score, scale, other.Score)
		}
		swapped := Compare(points(slices.Concat(values[12:], values[:12])...), two)
		if math.Abs(c.Score-swapped.Score) > 1e-6*max(1, c.Score) {
			t.Errorf("score %v, with the stretches swapped %v", c.Score, swapped.Score)
		}
	})
}

// Of a thousand noisy series those come first that moved by eight deviations, however large the others are.
func TestCompare_findsWhatMoved(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 0))
	r := Ranking{Limit: 5}
	for i := range 1000 {
		level, noise := math.Exp(20*random.Float64()-10), random.Float64()
		moved := 0.0
		if i%200 == 7 {
			moved = 8 * noise * level
		}
		var values []float64
		for k := range 24 {
			v := level * (1 + noise*random.NormFloat64())
			if k >= 12 {
				v += moved
			}
			values = append(values, v)
		}
		r.Add(Series{Metric: strconv.Itoa(i), Change: Compare(points(values...), two)})
	}
	got := map[string]bool{}
	most, all := r.List(Changed)
	for _, s := range most {
		got[s.Metric] = true
	}
	want := map[string]bool{"7": true, "207": true, "407": true, "607": true, "807": true}
	if d := cmp.Diff(want, got); d != "" || all > 100 {
		t.Errorf("%d series changed; the first, -want +got:\n%s", all, d)
	}
}

// Drawn series give the same lists whole, in parts that are joined, and as a sort of all.
func TestRanking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		kinds := rapid.SampledFrom([]Kind{Sparse, Changed, Appeared, Vanished})
		whole, joined := Ranking{Limit: limit}, Ranking{Limit: limit}
		lists := map[Kind][]Series{}
		counts := map[Kind]int{}
		for i := range rapid.IntRange(0, 400).Draw(t, "series") {
			s := Series{Metric: strconv.Itoa(i), Tags: [][2]string{{"k", "v"}}}
			s.Kind = kinds.Draw(t, "kind")
			s.Before, s.After = float64(i%5), float64(i%3)
			if s.Kind == Changed {
				s.Score = float64(rapid.IntRange(0, 9).Draw(t, "score"))
			}
			whole.Add(s)
			part := Ranking{Limit: limit}
			part.Add(s)
			joined.Join(&part)
			counts[s.Kind]++
			if s.Listed() {
				lists[s.Kind] = append(lists[s.Kind], s)
			}
		}
		for _, k := range []Kind{Changed, Appeared, Vanished} {
			want := lists[k]
			slices.SortFunc(want, before)
			for name, r := range map[string]*Ranking{"whole": &whole, "joined": &joined} {
				got, all := r.List(k)
				if all != len(want) || len(got) != min(limit, all) {
					t.Fatalf("%s: %d of %d series of kind %d, want %d", name, len(got), all, k, len(want))
				}
				for i := range got {
					if got[i].Metric != want[i].Metric {
						t.Errorf("%s, kind %d: place %d has %+v, want %+v", name, k, i, got[i], want[i])
					}
				}
			}
		}
		if whole.Sparse != counts[Sparse] || joined.Sparse != counts[Sparse] || whole.Looked != joined.Looked {
			t.Errorf("sparse %d and %d, want %d; looked at %d and %d", whole.Sparse, joined.Sparse, counts[Sparse],
				whole.Looked, joined.Looked)
		}
	})
}

// Both stretches have the same width, of 12 to 35 buckets, and their bounds are nearly those of the request.
func TestBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(1e9, 4e12).Draw(t, "start")
		width := rapid.Int64Range(12_000, 24*3600_000*30).Draw(t, "width")
		s := Before(start, start+width)
		n := (s.End - s.Turn) / s.Step
		if s.Turn-s.From != s.End-s.Turn || s.Turn%s.Step != 0 || n*s.Step != s.End-s.Turn ||
			n < leastBuckets-1 || n > 36 {
			t.Errorf("%d buckets: %+v", n, s)
		}
		if d := s.Turn - start; max(d, -d) > s.Step/2 {
			t.Errorf("it begins %d ms from the start, with buckets of %d ms", d, s.Step)
		}
		if d := s.End - start - width; max(d, -d) > s.Step/2 {
			t.Errorf("it ends %d ms from the end, with buckets of %d ms", d, s.Step)
		}
	})
	if s := Before(1_000_000, 1_000_001); s != (Stretches{999_000, 1_000_000, 1_001_000, 1000}) {
		t.Errorf("a millisecond: %+v, want one bucket of a second on both sides", s)
	}
}
