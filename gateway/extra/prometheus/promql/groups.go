package promql

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/schema"

	"downpour/encoding"
	"downpour/gateway/extra/prometheus/names"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator/window"
	"downpour/pushdown/process/memory"
)

// Groups is an aggregation of windows whose parts may be aggregated where the points are: there its result depends
// neither on the order of the series, but for the sign of a zero, nor on what was aggregated before.
type Groups struct {
	Function string // of package window
	// Labels are those that separate groups; if Without is set, all others but the metric do.
	Labels  []string
	Without bool
}

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

// groupFunctions are those of package window.
var groupFunctions = map[parser.ItemType]string{
	parser.MIN: window.Min, parser.MAX: window.Max, parser.COUNT: window.Count, parser.GROUP: window.Any,
}

// groupsOf returns the selector of the windows that an aggregation groups, nil if it groups none.
func (p windowParser) groupsOf(e *parser.AggregateExpr) *parser.VectorSelector {
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
	w.Groups = &Groups{Function: function, Labels: e.Grouping, Without: e.Without}
	s.LabelMatchers, s.PosRange = append(matchers, w.matcher()), e.PosRange
	return s
}

// ordered reports whether the order in which a function gets series may change its values, or whether it looks at what
// its argument is.
func ordered(function string) bool {
	switch function {
	case "absent", "info", "timestamp", "start_timestamp":
		return true
	}
	return strings.HasPrefix(function, "sort") || strings.HasPrefix(function, "histogram_")
}

// mayGroup reports whether the series of a selection may be aggregated where they are read. Those of several metrics
// may have the same labels without their names, which the engine refuses.
func (p *pushed) mayGroup(s selection) bool {
	return p.Groups != nil && s.exact && (p.keepsName() || len(s.metrics) < 2)
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

// merge returns the groups of series, in the order of their first series, which are in that of the engine. grouped is
// set if they are groups already, of parts of the series or of one metric.
func (g *Groups) merge(ctx context.Context, found []series, grouped bool) ([]series, error) {
	var merged []series
	var members [][]int // of merged, in found
	index := map[string]int{}
	builder, key := labels.NewBuilder(labels.EmptyLabels()), []byte(nil)
	for i, s := range found {
		l := g.labelsOf(builder, s.labels)
		key = l.Bytes(key)
		at, known := index[string(key)]
		if !known {
			at = len(merged)
			index[string(key)] = at
			merged, members = append(merged, series{labels: l}), append(members, nil)
		}
		members[at] = append(members[at], i)
	}

	var values []float64
	for at := range merged {
		var sum window.Group
		sum.Begin(g.Function, !grouped)
		for _, i := range members[at] {
			values = found[i].points.AppendDoubles(values[:0])
			if grouped {
				sum.AddGroup(found[i].points.Time, values)
			} else {
				sum.AddSeries(found[i].points.Time, values)
			}
		}
		if err := memory.Reserve(ctx, sum.Bytes()); err != nil {
			return nil, err
		}
		times, values := sum.Values()
		for i, v := range values {
			if grouped && window.IsMixed(math.Float64bits(v)) {
				return nil, fmt.Errorf("%w: of 0 and -0 the first is the result", plan.ErrUngrouped)
			}
			merged[at].points.Append(times[i], encoding.FloatValue(v))
		}
	}
	return merged, nil
}
