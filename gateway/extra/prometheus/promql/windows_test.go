package promql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator/window"
)

// windowFunctions are those of package window, by their names in PromQL.
var windowFunctions = []string{
	window.Last, "rate", "increase", "delta", "irate", "idelta", "sum_over_time", "avg_over_time", "min_over_time",
	"max_over_time", "count_over_time", "last_over_time", "first_over_time", "present_over_time", "stdvar_over_time",
	"stddev_over_time", "changes", "resets",
}

// Windows have the bits of Prometheus' engine over the same points, also of infinities, NaN, sums that overflow, and
// marks of series that have ended.
//
//fault:window-closed-on-the-left <= t-width => < t-width
func TestWindows_law(t *testing.T) {
	r := seedtest.Rand(t)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute,
		Parser: parser.NewParser(ParserOptions)})
	for i := range 3000 {
		w := &scanplan.Window{
			Function: windowFunctions[i%len(windowFunctions)], Range: []int64{1, 50, 1000, 61_003, 300_000}[r.IntN(5)],
			First: 1e12 + r.Int64N(100_000), Step: []int64{1, 100, 5000, 60_000, 400_000}[r.IntN(5)],
		}
		w.Last = w.First + w.Step*r.Int64N(50)
		points := drawHardPoints(r)
		checkWindow(t, engine, w, points)
	}
}

// checkWindow compares a window of points with Prometheus' engine.
func checkWindow(t *testing.T, engine *promql.Engine, w *scanplan.Window, points []promql.FPoint) {
	t.Helper()
	text := fmt.Sprintf("%s(x[%dms])", w.Function, w.Range)
	if w.Function == window.Last {
		text = "x"
	}
	q, err := engine.NewRangeQuery(t.Context(), hardSeries{points},
		promql.NewPrometheusQueryOpts(false, time.Duration(w.Range)*time.Millisecond, nil), text,
		time.UnixMilli(w.First), time.UnixMilli(w.Last), time.Duration(w.Step)*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	result := q.Exec(t.Context())
	matrix, err := result.Matrix()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range matrix {
		for _, p := range s.Floats {
			want = append(want, bitsAt(p.T, p.F))
		}
	}
	q.Close()

	c, err := window.New(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		c.Add([]int64{p.T}, []float64{p.F})
	}
	times, values := c.Append(nil, nil, 0, w.Len())
	var got []string
	for i := range times {
		got = append(got, bitsAt(times[i], values[i]))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s of %v:\ngot  %v\nwant %v", w, points, got, want)
	}
}

// So have windows of points that stand at exact distances, do not change, or are zeros of both signs.
func TestWindows_exact(t *testing.T) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute,
		Parser: parser.NewParser(ParserOptions)})
	negative := math.Copysign(0, -1)
	for _, values := range [][]float64{
		{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {5, 5, 5, 5, 5}, {5, 7, 7, 3, 3, 3}, {0, negative, 0}, {negative, 0, negative},
		{3, 2, 1, 0}, {1, 1e16, -1e16, 1}, {math.MaxFloat64, math.MaxFloat64, -1}, {math.Inf(1), 1, math.Inf(-1)},
		{math.Inf(-1), 1, 2},
	} {
		for _, fn := range windowFunctions {
			// To both ends of the window: 1.1 distances of points are far.
			for _, margin := range []int64{0, 500, 999, 1000, 1099, 1100, 1101, 2500} {
				const first = 1e12
				end := first + int64(len(values)-1)*1000 + margin
				w := &scanplan.Window{Function: fn, Range: end - first + margin, First: end - 2000, Last: end + 2000,
					Step: 1000}
				var points []promql.FPoint
				for i, v := range values {
					points = append(points, promql.FPoint{T: first + int64(i)*1000, F: v})
				}
				if w.Range > 0 {
					checkWindow(t, engine, w, points)
				}
			}
		}
	}
}

// Groups have the bits of Prometheus' engine, and so have those that are merged of groups of some of the series in any
// order, or they say that a zero has the sign of the first.
func TestGroups_law(t *testing.T) {
	r, mixed := seedtest.Rand(t), 0
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute,
		Parser: parser.NewParser(ParserOptions)})
	for range 3000 {
		var all hardSeries
		var found []series
		for i := range 1 + r.IntN(6) {
			points := drawHardPoints(r) // at some of 20 times that are a second apart
			points = points[:min(len(points), 1+r.IntN(20))]
			for k, at := range r.Perm(20)[:len(points)] {
				points[k].T = 1e12 + int64(at)*1000
			}
			slices.SortFunc(points, func(a, b promql.FPoint) int { return cmp.Compare(a.T, b.T) })
			all = append(all, points)
			s := series{labels: hardLabels(i)}
			for _, p := range points {
				if math.Float64bits(p.F) != window.StaleNaN { // windows have no value there
					s.points.Append(p.T, encoding.FloatValue(p.F))
				}
			}
			found = append(found, s)
		}
		g := &Groups{Function: []string{window.Min, window.Max, window.Count, window.Any, sumOf, averageOf}[r.IntN(6)]}
		w := &scanplan.Window{First: 1e12, Last: 1e12 + 19_000, Step: 1000}
		text := fmt.Sprintf("%s by (b) (last_over_time(x[1s]))", g.Function)
		if g.Labels = []string{"b"}; r.IntN(2) == 0 {
			g.Without, text = true, strings.Replace(text, "by", "without", 1)
		}
		q, err := engine.NewRangeQuery(t.Context(), all, promql.NewPrometheusQueryOpts(false, 0, nil), text,
			time.UnixMilli(1e12), time.UnixMilli(1e12+19_000), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		matrix, err := q.Exec(t.Context()).Matrix()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]string{}
		for _, s := range matrix {
			for _, p := range s.Floats {
				want[s.Metric.String()] = append(want[s.Metric.String()], bitsAt(p.T, p.F))
			}
		}
		q.Close()
		compare := func(what string, got []series) {
			t.Helper()
			bits := map[string][]string{}
			for _, s := range got {
				for i := range s.points.Len() {
					at, v := s.points.At(i)
					bits[s.labels.String()] = append(bits[s.labels.String()], bitsAt(at, math.Float64frombits(v.Bits)))
				}
			}
			if !reflect.DeepEqual(bits, want) {
				t.Fatalf("%s, %s of %v: got\n%v\nwant\n%v", what, text, all, bits, want)
			}
		}
		merged, err := g.merge(t.Context(), w, slices.Clone(found), false)
		if err != nil {
			t.Fatal(err)
		}
		compare("in order", merged)
		if g.Function == sumOf || g.Function == averageOf {
			continue
		}
		merged, err = g.merge(t.Context(), w, drawPartial(r, g, found), true)
		switch {
		case errors.Is(err, plan.ErrUngrouped):
			mixed++
		case err != nil:
			t.Fatal(err)
		default:
			compare("of parts", merged)
		}
	}
	if mixed == 0 || mixed > 1000 {
		t.Errorf("%d of 3000 have a 0 and a -0, want some and not most", mixed)
	}
}

// drawPartial returns the series of groups that parts would make, each of some of the series.
func drawPartial(r *rand.Rand, g *Groups, found []series) (partial []series) {
	parts := make([]map[string]*window.Group, 3)
	shown := map[string]labels.Labels{}
	for _, i := range r.Perm(len(found)) {
		part := r.IntN(len(parts))
		if parts[part] == nil {
			parts[part] = map[string]*window.Group{}
		}
		l := g.labelsOf(labels.NewBuilder(labels.EmptyLabels()), found[i].labels)
		shown[l.String()] = l
		group := parts[part][l.String()]
		if group == nil {
			group = new(window.Group)
			group.Begin(g.Function, false)
			parts[part][l.String()] = group
		}
		group.AddSeries(found[i].points.Time, found[i].points.AppendDoubles(nil))
	}
	for _, part := range parts {
		for name, group := range part {
			s := series{labels: shown[name]}
			times, values := group.Values()
			for i, at := range times {
				s.points.Append(at, encoding.FloatValue(values[i]))
			}
			partial = append(partial, s)
		}
	}
	return partial
}

func bitsAt(ms int64, v float64) string {
	if math.IsNaN(v) {
		return fmt.Sprint(ms, " NaN")
	}
	return fmt.Sprintf("%d %x %v", ms, math.Float64bits(v), v)
}

func drawHardPoints(r *rand.Rand) (points []promql.FPoint) {
	hard := []float64{0, math.Copysign(0, -1), 1, -1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64,
		math.Inf(1), math.Inf(-1), math.NaN(), math.Float64frombits(window.StaleNaN), 1e300, 0.1}
	at, odd := int64(1e12)-r.Int64N(100_000), r.IntN(3)
	for range r.IntN(80) {
		v := r.NormFloat64()
		switch {
		case odd == 1 && r.IntN(3) == 0:
			v = hard[r.IntN(len(hard))]
		case odd == 2:
			v = math.MaxFloat64 / 4 * r.Float64()
		case r.IntN(4) == 0:
			v = 0
		}
		points = append(points, promql.FPoint{T: at, F: v})
		at += 1 + r.Int64N([]int64{2, 50, 1000, 20_000}[r.IntN(4)])
	}
	return points
}

// hardSeries are series of a metric x, in the order of their label a.
type hardSeries [][]promql.FPoint

func (s hardSeries) Querier(int64, int64) (storage.Querier, error) {
	return hardQuerier{storage.NoopQuerier(), s}, nil
}

type hardQuerier struct {
	storage.Querier
	series hardSeries
}

func (q hardQuerier) Select(context.Context, bool, *storage.SelectHints, ...*labels.Matcher) storage.SeriesSet {
	set := &listSet{at: -1}
	for i, points := range q.series {
		var all []chunks.Sample
		for _, p := range points {
			all = append(all, hardPoint{p})
		}
		set.series = append(set.series, storage.NewListSeries(hardLabels(i), all))
	}
	return set
}

func hardLabels(i int) labels.Labels {
	return labels.FromStrings("__name__", "x", "a", fmt.Sprintf("%03d", i), "b", fmt.Sprint(i%2))
}

// listSet is a set of series.
type listSet struct {
	series []storage.Series
	at     int
}

func (s *listSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *listSet) At() storage.Series                { return s.series[s.at] }
func (s *listSet) Err() error                        { return nil }
func (s *listSet) Warnings() annotations.Annotations { return nil }

type hardPoint struct{ promql.FPoint }

func (p hardPoint) T() int64                      { return p.FPoint.T }
func (p hardPoint) ST() int64                     { return 0 }
func (p hardPoint) F() float64                    { return p.FPoint.F }
func (p hardPoint) H() *histogram.Histogram       { return nil }
func (p hardPoint) FH() *histogram.FloatHistogram { return nil }
func (p hardPoint) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p hardPoint) Copy() chunks.Sample           { return p }

// What is in the place of a function or a selector, and what stays as the text has it.
func TestWindows_found(t *testing.T) {
	p := windowParser{parser.NewParser(ParserOptions), true}
	for text, want := range map[string][]string{
		`x`:                               {"last 0 0 0 0"},
		`x / on (a) max_over_time(y[1s])`: {"last 0 0 0 0", "max_over_time 1000 0 25 30"},
		`topk(scalar(x), -y)`:             {"last 0 0 0 0", "last 0 0 0 0"},

		`sum by (a) (rate(x{b="c"}[5m] offset 1m))`: {"rate 300000 60000 17 39 sum by [a]"},
		`max(x)`: {"last 0 0 0 0 max by []"},
		`min by (a, b) ((rate(x[5m] offset 1m))) > 1`: {"rate 300000 60000 21 36 min by [a b]"},
		`count without (a) (x) / group(y)`:            {"last 0 0 0 0 count without [a]", "last 0 0 0 0 group by []"},
		`count(max by (a) (x))`:                       {"last 0 0 0 0 max by [a]"},
		`label_replace(-max(x), "a", "b", "c", "d")`:  {"last 0 0 0 0 max by []"},
		`max(x > 1)`: {"last 0 0 0 0"},
		`stddev(x)`:  {"last 0 0 0 0"},
		// Where the order of the groups may change a value.
		`sum(max by (a) (x))`:                    {"last 0 0 0 0 max by [a] in order"},
		`min(max by (a) (x))`:                    {"last 0 0 0 0 max by [a] in order"},
		`topk(1, -avg by (a) (x))`:               {"last 0 0 0 0 avg by [a] in order"},
		`sort(max by (a) (x))`:                   {"last 0 0 0 0 max by [a] in order"},
		`histogram_quantile(1, max by (le) (x))`: {"last 0 0 0 0 max by [le] in order"},
		`absent(-max(x))`:                        {"last 0 0 0 0 max by [] in order"},
		// What looks at the aggregation.
		`absent(sum(x))`: {"last 0 0 0 0"}, `absent((max(x)))`: {"last 0 0 0 0"}, `timestamp(max(x))`: {"last 0 0 0 0"},
		`max(x @ 5)`: nil, `max_over_time(max(x)[5m:])`: nil,

		`absent(x)`: nil, `absent((x))`: nil, `absent(rate(x[5m]))`: nil, `timestamp(x)`: nil, `timestamp(((x)))`: nil,
		`x @ 5`: nil, `rate(x[5m] @ end())`: nil, `rate(x[5m:1m])`: nil, `sum_over_time((x)[5m:])`: nil,
		`deriv(x[5m])`: nil, `quantile_over_time(0.5, x[5m])`: nil, `absent_over_time(x[5m])`: nil, `1`: nil,
		`rate(x[5m*2])`: nil, `x offset (5*1m)`: nil, `rate(x[5m] anchored)`: nil,
	} {
		expr, err := parser.NewParser(ParserOptions).ParseExpr(text)
		if err != nil {
			t.Logf("%s: %v", text, err) // a feature that is off
			continue
		}
		position := expr.PositionRange()
		expr, err = p.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if s, ok := node.(*parser.VectorSelector); ok {
				_, w, err := cutWindow(s.LabelMatchers)
				if err != nil {
					t.Error(err)
				}
				if w != nil {
					got = append(got, textOf(w))
				}
			}
			return nil
		})
		if !slices.Equal(got, want) || expr.PositionRange() != position {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	if expr, err := (windowParser{p.Parser, false}).ParseExpr("x + rate(y[1m])"); err != nil ||
		strings.Count(expr.String(), windowLabel[1:]) != 1 {
		t.Errorf("got %s, %v, want windows of the rate alone", expr, err)
	}
	if _, err := p.ParseExpr(`{"\xff window"="{}", a="b"}`); err == nil {
		t.Error("a text with the label of windows is parsed, want an error")
	}
}

func textOf(w *pushed) string {
	text := fmt.Sprint(w.Function, " ", w.Range, w.Offset, w.Selector.Start, w.Selector.End)
	if g := w.Groups; g != nil {
		text += fmt.Sprintf(" %s %s %v", g.Function, map[bool]string{true: "without", false: "by"}[g.Without], g.Labels)
		if g.InOrder {
			text += " in order"
		}
	}
	return text
}
