package aggregate

import (
	"math"
	"sort"

	"downpour/encoding"
)

// This file is a second implementation of aggregation, slow and as close as possible to the steps
// of OpenTSDB's AggregationIterator: two slots for each series, one output time after the other,
// all values of a time collected before the function sees them.

// slot is the current or the next point of a series.
type slot struct {
	ms    int64
	value encoding.Value
	set   bool
}

type naiveSeries struct {
	rest          encoding.Points
	current, next slot
}

// advance moves next to current and loads the following point.
func (s *naiveSeries) advance() {
	s.current = s.next
	s.load()
}

func (s *naiveSeries) load() {
	s.next = slot{}
	if s.rest.Len() > 0 {
		ms, v := s.rest.At(0)
		s.next = slot{ms, v, true}
		s.rest = s.rest.Slice(1, s.rest.Len())
	}
}

// naiveGroup returns the points of a group and the time of the first infinite
// one, or 0.
func naiveGroup(name string, method Interpolation, q Query,
	members []encoding.Points) (out encoding.Points, infinite int64) {
	series := make([]*naiveSeries, len(members))
	for i, p := range members {
		s := &naiveSeries{rest: p}
		series[i] = s
		for s.load(); s.next.set && s.next.ms < q.From*1000; s.load() {
		}
		if q.Rate && s.next.set {
			if s.rest.Len() > 0 {
				s.advance()
			} else {
				s.next = slot{}
			}
		}
	}
	for {
		now, any := int64(math.MaxInt64), false
		for _, s := range series {
			if !s.next.set { // its last point has passed
				s.current = slot{}
			} else if s.next.ms <= q.To*1000 && s.next.ms < now {
				now, any = s.next.ms, true
			}
		}
		if !any {
			return out, 0
		}
		for _, s := range series {
			if s.next.set && s.next.ms == now {
				s.advance()
			}
		}
		if now < q.Start || now > q.End {
			continue
		}
		v := naiveValue(name, method, q.Rate, now, series)
		if v.Float && math.IsInf(v.Double(), 0) {
			return out, now
		}
		out.Append(now, v)
	}
}

// naiveValue is the value of a group at one time.
func naiveValue(name string, method Interpolation, rate bool, now int64, series []*naiveSeries) encoding.Value {
	float := rate
	for _, s := range series {
		float = float || s.current.set && s.current.value.Float || s.next.set && s.next.value.Float
	}
	var doubles []float64
	var longs []int64
	for _, s := range series {
		if !s.current.set {
			continue
		}
		own := rate || s.current.ms == now
		if float {
			doubles = append(doubles, naiveDouble(method, own, now, s))
		} else {
			longs = append(longs, naiveLong(method, own, now, s))
		}
	}
	if float {
		return encoding.FloatValue(naiveDoubles(name, doubles))
	}
	return encoding.IntValue(naiveLongs(name, longs))
}

func naiveDouble(method Interpolation, own bool, x int64, s *naiveSeries) float64 {
	y0 := s.current.value.Double()
	switch {
	case own || method == PREV:
		return y0
	case method == ZIM:
		return 0
	case method == MAX:
		return math.MaxFloat64
	case method == MIN:
		return -math.MaxFloat64
	}
	y1, x0, x1 := s.next.value.Double(), s.current.ms, s.next.ms
	product := float64(x-x0) * (y1 - y0)
	quotient := product / float64(x1-x0)
	return y0 + quotient
}

func naiveLong(method Interpolation, own bool, x int64, s *naiveSeries) int64 {
	y0 := s.current.value.Int()
	switch {
	case own || method == PREV:
		return y0
	case method == ZIM:
		return 0
	case method == MAX:
		return math.MaxInt64
	case method == MIN:
		return math.MinInt64
	}
	y1, x0, x1 := s.next.value.Int(), s.current.ms, s.next.ms
	return y0 + (x-x0)*(y1-y0)/(x1-x0)
}

// withoutNaN drops NaN.
func withoutNaN(xs []float64) (kept []float64) {
	for _, x := range xs {
		if !math.IsNaN(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

// naiveDoubles is an aggregator over doubles, at least one, in order.
func naiveDoubles(name string, xs []float64) float64 {
	kept := withoutNaN(xs)
	switch name {
	case "mult":
		product := 1.0
		for _, x := range xs {
			product *= x
		}
		return product
	case "count":
		return float64(len(kept))
	case "first", "none":
		return xs[0]
	case "last":
		return xs[len(xs)-1]
	}
	if len(kept) == 0 {
		return math.NaN()
	}
	switch name {
	case "sum", "zimsum", "pfsum", "avg", "squareSum":
		return naiveSums(name, kept)
	case "min", "mimmin", "max", "mimmax":
		return naiveExtreme(name, kept)
	case "dev":
		return naiveDev(kept)
	case "diff":
		for math.IsNaN(xs[0]) {
			xs = xs[1:]
		}
		if len(xs) == 1 {
			return 0
		}
		return xs[len(xs)-1] - xs[0]
	case "median":
		sortJava(kept)
		return kept[len(kept)/2]
	}
	return naiveQuantile(name, "", kept)
}

func naiveSums(name string, xs []float64) float64 {
	total := 0.0
	for _, x := range xs {
		if name == "squareSum" {
			x = float64(x * x)
		}
		total += x
	}
	if name == "avg" {
		total /= float64(len(xs))
	}
	return total
}

func naiveExtreme(name string, xs []float64) float64 {
	best := xs[0]
	minimum := name == "min" || name == "mimmin"
	for _, x := range xs {
		if minimum && x < best || !minimum && x > best {
			best = x
		}
	}
	if minimum && math.IsInf(best, 1) || !minimum && math.IsInf(best, -1) {
		return math.NaN()
	}
	return best
}

func naiveDev(xs []float64) float64 {
	mean, squares := xs[0], 0.0
	for k := 2; k <= len(xs); k++ {
		x := xs[k-1]
		next := mean + float64((x-mean)/float64(k))
		squares += float64((x - mean) * (x - next))
		mean = next
	}
	if len(xs) == 1 {
		return 0
	}
	return math.Sqrt(squares / float64(len(xs)))
}

// sortJava sorts with -0.0 before 0.0.
func sortJava(xs []float64) {
	sort.SliceStable(xs, func(i, j int) bool {
		return xs[i] < xs[j] || xs[i] == xs[j] && math.Signbit(xs[i]) && !math.Signbit(xs[j])
	})
}

// naiveQuantile is a percentile by its name: p95, ep95r3 …
func naiveQuantile(name, estimation string, xs []float64) float64 {
	p := map[string]float64{"50": 50, "75": 75, "90": 90, "95": 95, "99": 99, "999": 99.9}[digits(name)] / 100
	sortJava(xs)
	n := float64(len(xs))
	pos := p * (n + 1)
	switch {
	case estimation == "r3" && p <= 0.5/n:
		pos = 0
	case estimation == "r3":
		pos = math.RoundToEven(n * p)
	case estimation == "r7":
		pos = 1 + float64((n-1)*p)
	}
	if len(xs) == 1 || pos < 1 {
		return xs[0]
	}
	if pos >= n {
		return xs[len(xs)-1]
	}
	k := int(math.Floor(pos))
	return xs[k-1] + float64((pos-math.Floor(pos))*(xs[k]-xs[k-1]))
}

// digits are the digits behind the p of a name.
func digits(name string) string {
	begin := 1
	if name[0] == 'e' {
		begin = 2
	}
	end := begin
	for end < len(name) && name[end] >= '0' && name[end] <= '9' {
		end++
	}
	return name[begin:end]
}

// naiveLongs is an aggregator over integers, at least one, in order.
func naiveLongs(name string, xs []int64) int64 {
	switch name {
	case "count":
		return int64(len(xs))
	case "first", "none":
		return xs[0]
	case "last":
		return xs[len(xs)-1]
	case "diff":
		return xs[len(xs)-1] - xs[0]
	case "median":
		sort.Slice(xs, func(i, j int) bool { return xs[i] < xs[j] })
		return xs[len(xs)/2]
	case "sum", "zimsum", "pfsum", "avg", "squareSum", "mult", "min", "mimmin", "max", "mimmax":
		return naiveLongFold(name, xs)
	}
	doubles := make([]float64, len(xs))
	for i, x := range xs {
		doubles[i] = float64(x)
	}
	if name == "dev" {
		return javaLong(naiveDev(doubles))
	}
	return javaLong(naiveQuantile(name, name[max(0, len(name)-2):], doubles))
}

func naiveLongFold(name string, xs []int64) int64 {
	result := xs[0]
	if name == "squareSum" {
		result *= result
	}
	for _, x := range xs[1:] {
		switch name {
		case "mult":
			result *= x
		case "squareSum":
			result += x * x
		case "min", "mimmin":
			result = min(result, x)
		case "max", "mimmax":
			result = max(result, x)
		default:
			result += x
		}
	}
	if name == "avg" {
		result /= int64(len(xs))
	}
	return result
}

// javaLong converts a double to a long as Java's cast does.
func javaLong(v float64) int64 {
	if math.IsNaN(v) {
		return 0
	}
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	if v <= math.MinInt64 {
		return math.MinInt64
	}
	return int64(math.Trunc(v))
}
