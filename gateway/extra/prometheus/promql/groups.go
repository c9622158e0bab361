package promql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/schema"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/extra/prometheus/names"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator/window"
	"downpour/pushdown/process/memory"
)

// Groups is an aggregation of windows, whose series need not be those of the engine.
type Groups struct {
	Function string // of package window, or one that is only for all series in order
	// Labels are those that separate groups; if Without is set, all others but the metric do.
	Labels  []string
	Without bool
	// InOrder is set if something around the aggregation depends on the order of its groups, which is that of their
	// first series.
	InOrder bool
}

// Functions that depend on the order of the series.
const (
	sumOf     = "sum"
	averageOf = "avg"
)

// TagKeys returns the tag keys under which the labels may be stored, each once.
func (g *Groups) TagKeys() (keys []string) {
	for _, label := range g.Labels {
		if label != model.MetricNameLabel {
			keys = append(keys, names.Of(label)...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

var groupFunctions = map[parser.ItemType]string{
	parser.MIN: window.Min, parser.MAX: window.Max, parser.COUNT: window.Count, parser.GROUP: window.Any,
	parser.SUM: sumOf, parser.AVG: averageOf,
}

// groupsOf returns the selector of the windows that an aggregation groups, nil if it groups none.
func (p windowParser) groupsOf(e *parser.AggregateExpr, inOrder bool) *parser.VectorSelector {
	function, inner := groupFunctions[e.Op], e.Expr
	for {
		paren, ok := inner.(*parser.ParenExpr)
		if !ok {
			break
		}
		inner = paren.Expr
	}
	s := p.windowsOf(inner)
	if function == "" || s == nil {
		return nil
	}
	matchers, w, err := cutWindow(s.LabelMatchers)
	if err != nil {
		return nil
	}
	w.Groups = &Groups{Function: function, Labels: e.Grouping, Without: e.Without, InOrder: inOrder}
	s.LabelMatchers, s.PosRange = append(matchers, w.matcher()), e.PosRange
	return s
}

// place is what an expression is an argument of.
type place int

const (
	// anywhere: the order of the series of the expression changes nothing.
	anywhere place = iota
	// inOrder: it may change a value.
	inOrder
	// seen: what is around looks at what the expression is.
	seen
)

// inside returns the place of what is inside an expression at a place, unless it says more.
func (p place) inside() place { return min(p, inOrder) }

// inAggregation returns the place of what an aggregation aggregates.
func (p place) inAggregation(of parser.ItemType) place {
	if of == parser.COUNT || of == parser.GROUP {
		return p.inside()
	}
	return inOrder
}

// inCall returns the place of an argument of a function.
func (p place) inCall(function string) place {
	switch {
	case function == "absent", function == "info", function == "timestamp", function == "start_timestamp":
		return seen
	case strings.HasPrefix(function, "sort"), strings.HasPrefix(function, "histogram_"):
		return inOrder
	}
	return p.inside()
}

// mayMerge reports whether the series of a selection may be aggregated where they are read, part by part. Those of
// several metrics may have the same labels without their names, which the engine refuses.
func (p *pushed) mayMerge(s selection) bool {
	g := p.Groups
	return g != nil && !g.InOrder && g.Function != sumOf && g.Function != averageOf && s.exact &&
		(p.keepsName() || len(s.metrics) < 2)
}

// labelsOf returns the labels of the group of a series.
func (g *Groups) labelsOf(b *labels.Builder, series labels.Labels) labels.Labels {
	b.Reset(series)
	if g.Without {
		b.Del(g.Labels...)
		schema.Metadata{}.SetToLabels(b)
	} else {
		b.Keep(g.Labels...)
	}
	return b.Labels()
}

// merge returns the groups of series, in the order of their first series, which are in that of the engine. merged is
// set if they are groups already, of parts of the series or of one metric.
func (g *Groups) merge(ctx context.Context, w *scanplan.Window, found []series, merged bool) ([]series, error) {
	var groups []series
	var members [][]int // of groups, in found
	index := map[string]int{}
	builder, key := labels.NewBuilder(labels.EmptyLabels()), []byte(nil)
	for i, s := range found {
		l := g.labelsOf(builder, s.labels)
		key = l.Bytes(key)
		at, known := index[string(key)]
		if !known {
			at = len(groups)
			index[string(key)] = at
			groups, members = append(groups, series{labels: l}), append(members, nil)
		}
		members[at] = append(members[at], i)
	}

	points := g.mergedPoints
	if merged {
		points = g.joinedPoints
	}
	if g.Function == sumOf || g.Function == averageOf {
		if err := memory.Reserve(ctx, int64(w.Len())*sumBytes); err != nil {
			return nil, err
		}
		s := newSums(w, g.Function == averageOf)
		points = s.ofSeries
	}
	var err error
	for at := range groups {
		if groups[at].points, err = points(found, members[at]); err != nil {
			return nil, err
		}
		if err := memory.Reserve(ctx, int64(groups[at].points.Len())*merge.PointBytes); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// mergedPoints returns the points of the group of some series.
func (g *Groups) mergedPoints(found []series, members []int) (p encoding.Points, err error) {
	var all window.Group
	all.Begin(g.Function, true)
	var values []float64
	for _, i := range members {
		values = found[i].points.AppendDoubles(values[:0])
		all.AddSeries(found[i].points.Time, values)
	}
	return groupPoints(&all), nil
}

// joinedPoints returns the points of the group that some groups make. The error is plan.ErrUngrouped if they depend on
// the order of the series.
func (g *Groups) joinedPoints(found []series, members []int) (p encoding.Points, err error) {
	var all window.Group
	all.Begin(g.Function, false)
	for _, i := range members {
		all.AddGroup(found[i].points.Time, found[i].points.AppendDoubles(nil))
	}
	if p = groupPoints(&all); slices.ContainsFunc(p.Bits, window.IsMixed) {
		return p, fmt.Errorf("%w: of 0 and -0 the first is the result", plan.ErrUngrouped)
	}
	return p, nil
}

func groupPoints(g *window.Group) (p encoding.Points) {
	times, values := g.Values()
	for i, v := range values {
		p.Append(times[i], encoding.FloatValue(v))
	}
	return p
}
