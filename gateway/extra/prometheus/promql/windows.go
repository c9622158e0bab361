package promql

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
	"github.com/prometheus/prometheus/schema"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator/window"
)

// windowLabel is the name of a matcher that makes a selector stand for windows of its series: those have one value at
// each time of the query. No text has it: a label's name is UTF-8.
const windowLabel = "\xff window"

// pushed is what such a selector stands for.
type pushed struct {
	Function string // of package window
	Range    int64  // ms; 0 for the lookback of the query
	// Offset moves the windows back, in ms, and Selector is where the text has the selector of the points.
	Offset   int64
	Selector posrange.PositionRange
	// Groups, if set, aggregates the values of series.
	Groups *Groups `json:",omitempty"`
}

// matcher returns the matcher of a selector that stands for windows.
func (p pushed) matcher() *labels.Matcher {
	text, _ := json.Marshal(p) // texts and numbers can always be written
	return labels.MustNewMatcher(labels.MatchEqual, windowLabel, string(text))
}

// cutWindow returns matchers without that of a window; w is nil if there was none.
func cutWindow(matchers []*labels.Matcher) (rest []*labels.Matcher, w *pushed, err error) {
	for i, m := range matchers {
		if m.Name == windowLabel {
			w = &pushed{}
			err := json.Unmarshal([]byte(m.Value), w)
			return slices.Delete(slices.Clone(matchers), i, i+1), w, err
		}
	}
	return matchers, nil, nil
}

// windowParser is a parser of expressions whose windows are computed where the points are.
type windowParser struct {
	parser.Parser
	plain bool // also those of plain selectors
}

// ParseExpr parses an expression, and puts selectors of windows in the place of functions of range vectors and of
// plain selectors.
func (p windowParser) ParseExpr(text string) (parser.Expr, error) {
	expr, err := p.Parser.ParseExpr(text)
	if err != nil {
		return expr, err
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok && slices.ContainsFunc(s.LabelMatchers,
			func(m *labels.Matcher) bool { return m.Name == windowLabel }) {
			err = errors.New("a label's name is no UTF-8")
		}
		return nil
	})
	return p.push(expr, anywhere), err
}

// push returns an expression with selectors of windows. Subqueries, whose times are others, stay as they are.
func (p windowParser) push(expr parser.Expr, at place) parser.Expr {
	if s := p.windowsOf(expr); s != nil {
		return s
	}
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		if s := p.groupsOf(e, at == inOrder); s != nil && at != seen {
			return s
		}
		e.Expr = p.push(e.Expr, at.inAggregation(e.Op))
		if e.Param != nil {
			e.Param = p.push(e.Param, at.inside())
		}
	case *parser.BinaryExpr:
		e.LHS, e.RHS = p.push(e.LHS, at.inside()), p.push(e.RHS, at.inside())
	case *parser.Call:
		for i, arg := range e.Args {
			if !needsSelector(e.Func.Name, arg) {
				e.Args[i] = p.push(arg, at.inCall(e.Func.Name))
			}
		}
	case *parser.ParenExpr:
		e.Expr = p.push(e.Expr, at)
	case *parser.UnaryExpr:
		e.Expr = p.push(e.Expr, at.inside())
	}
	return expr
}

// windowsOf returns the selector of the windows that an expression is, nil if it stays as the text has it.
func (p windowParser) windowsOf(expr parser.Expr) *parser.VectorSelector {
	if _, plain := expr.(*parser.VectorSelector); plain && !p.plain {
		return nil
	}
	return windowsOf(expr)
}

// needsSelector reports whether a function wants an argument as the text has it: it looks at the times of a selector's
// points, or at its matchers.
func needsSelector(function string, arg parser.Expr) bool {
	switch function {
	case "info":
		return true
	case "timestamp", "start_timestamp", "absent":
		for {
			p, ok := arg.(*parser.ParenExpr)
			if !ok {
				return windowsOf(arg) != nil
			}
			arg = p.Expr
		}
	}
	return false
}

// windowsOf returns the selector of the windows that an expression is, nil if it is none, or has times of its own.
func windowsOf(expr parser.Expr) *parser.VectorSelector {
	w, selector, at := pushed{Function: window.Last}, expr, expr.PositionRange()
	if call, ok := expr.(*parser.Call); ok {
		if len(call.Args) != 1 || !window.Known(call.Func.Name) || call.Func.Name == window.Last {
			return nil
		}
		m, ok := call.Args[0].(*parser.MatrixSelector)
		if !ok || m.RangeExpr != nil || m.Range.Milliseconds() <= 0 {
			return nil
		}
		w.Function, w.Range, w.Selector = call.Func.Name, m.Range.Milliseconds(), m.PositionRange()
		selector = m.VectorSelector
	}
	s, ok := selector.(*parser.VectorSelector)
	if !ok || s.Timestamp != nil || s.StartOrEnd != 0 || s.OriginalOffsetExpr != nil || s.Anchored || s.Smoothed ||
		s.BypassEmptyMatcherCheck {
		return nil
	}
	w.Offset = s.OriginalOffset.Milliseconds()
	return &parser.VectorSelector{
		Name: s.Name, OriginalOffset: s.OriginalOffset, PosRange: at,
		LabelMatchers: append(slices.Clone(s.LabelMatchers), w.matcher()),
	}
}

// windowAt returns the window of a query's times.
func (p *pushed) windowAt(t Times) *scanplan.Window {
	w := &scanplan.Window{Function: p.Function, Range: p.Range, First: t.Start.UnixMilli() - p.Offset, Step: 1}
	w.Last = w.First
	if !t.instant() {
		w.Step = t.Step.Milliseconds()
		w.Last += (t.End.UnixMilli() - t.Start.UnixMilli()) / w.Step * w.Step
	}
	if w.Range == 0 {
		w.Range = Lookback.Milliseconds()
		if t.Lookback > 0 {
			w.Range = max(1, t.Lookback.Milliseconds())
		}
	}
	return w
}

// keepsName reports whether series of values have the name of the metric.
func (p *pushed) keepsName() bool {
	return p.Function == window.Last || p.Function == "last_over_time" || p.Function == "first_over_time"
}

// result returns the series of values as the function has them, in the same order: without names, which may make
// several series one.
func (p *pushed) result(found []series) ([]series, error) {
	if p.keepsName() {
		return found, nil
	}
	p.dropNames(found)
	byLabels := make(map[uint64]int, len(found))
	kept := found[:0]
	for _, s := range found {
		i, known := byLabels[s.labels.Hash()]
		if !known || !labels.Equal(kept[i].labels, s.labels) {
			byLabels[s.labels.Hash()] = len(kept)
			kept = append(kept, s)
			continue
		}
		joined, err := joinPoints(kept[i].points, s.points)
		if err != nil {
			return nil, err
		}
		kept[i].points = joined
	}
	return kept, nil
}

// dropNames removes the names of metrics if the function has none.
func (p *pushed) dropNames(found []series) {
	for i := range found {
		if !p.keepsName() {
			found[i].labels = found[i].labels.DropReserved(schema.IsMetadataLabel)
		}
	}
}

// joinPoints joins the points of two series that have the same labels.
func joinPoints(a, b encoding.Points) (all encoding.Points, err error) {
	i, k := 0, 0
	for i < a.Len() || k < b.Len() {
		switch {
		case k == b.Len() || i < a.Len() && a.Time[i] < b.Time[k]:
			all.Append(a.At(i))
			i++
		case i == a.Len() || b.Time[k] < a.Time[i]:
			all.Append(b.At(k))
			k++
		default:
			return all, &EvaluationError{errors.New("vector cannot contain metrics with the same labelset")}
		}
	}
	return all, nil
}

// notes returns what the engine says of the series that a function has values of, before their names are dropped.
func (p *pushed) notes(found []series) annotations.Annotations {
	notes := annotations.New()
	if p.Function != "rate" && p.Function != "increase" {
		return *notes
	}
	last := ""
	for _, s := range found {
		name := s.labels.Get(model.MetricNameLabel)
		if name == "" || name == last {
			continue
		}
		last = name
		if !slices.ContainsFunc([]string{"_total", "_sum", "_count", "_bucket"},
			func(suffix string) bool { return strings.HasSuffix(name, suffix) }) {
			notes.Add(annotations.NewPossibleNonCounterInfo(name, p.Selector))
		}
	}
	return *notes
}

// windowIterator walks the values of a series at the times of a query. After a value that no other follows at the next
// time stands the mark of a series that has ended, so that nobody takes the value for that of a later time.
type windowIterator struct {
	iterator
	step   int64
	marked bool // at the mark behind the present value
}

// Next goes to the next value or mark.
func (it *windowIterator) Next() chunkenc.ValueType {
	if !it.marked && it.at >= 0 && it.at < len(it.points.Time) && it.endsAt(it.at) {
		it.marked = true
		return chunkenc.ValFloat
	}
	it.marked = false
	return it.iterator.Next()
}

// endsAt reports whether value i has no other one step later.
func (it *windowIterator) endsAt(i int) bool {
	return i+1 == len(it.points.Time) || it.points.Time[i+1] > it.points.Time[i]+it.step
}

// Seek goes to the first value or mark at t or later that is not before the present one.
func (it *windowIterator) Seek(t ms) chunkenc.ValueType {
	if it.at < 0 && it.Next() == chunkenc.ValNone {
		return chunkenc.ValNone
	}
	for it.at < len(it.points.Time) {
		if it.AtT() >= t {
			return chunkenc.ValFloat
		}
		it.Next()
	}
	return chunkenc.ValNone
}

// At returns the value, or the mark.
func (it *windowIterator) At() (int64, float64) {
	if it.marked {
		return it.AtT(), math.Float64frombits(window.StaleNaN)
	}
	return it.iterator.At()
}

// AtT returns its time.
func (it *windowIterator) AtT() int64 {
	if it.marked {
		return it.points.Time[it.at] + it.step
	}
	return it.points.Time[it.at]
}

// selectWindows returns the series of values of windows that match.
func selectWindows(ctx context.Context, src Source, matchers []*labels.Matcher, p *pushed,
	t Times) (found []series, notes annotations.Annotations, err error) {
	w := p.windowAt(t)
	defer func() {
		for i := range found {
			found[i].step = w.Step
		}
	}()
	r := Read{Start: w.First - w.Range + 1, End: w.Last, Window: w}
	s, err := choose(ctx, src, matchers)
	if err != nil {
		return nil, nil, err
	}
	if p.mayMerge(s) {
		grouped := r
		grouped.Groups = p.Groups
		found, err = readSeries(ctx, src, s, matchers, grouped)
		if err == nil {
			notes = p.notes(found)
			p.dropNames(found)
			found, err = p.Groups.merge(ctx, w, found, true)
		}
		if !errors.Is(err, plan.ErrUngrouped) {
			return found, notes, err
		}
	}

	if found, err = readSeries(ctx, src, s, matchers, r); err != nil {
		return nil, nil, err
	}
	notes = p.notes(found)
	if found, err = p.result(found); err == nil && p.Groups != nil {
		found, err = p.Groups.merge(ctx, w, found, false)
	}
	return found, notes, err
}
