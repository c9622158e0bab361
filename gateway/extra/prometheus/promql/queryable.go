package promql

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/extra/prometheus/names"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/pushdown/process/memory"
)

// Source is where an engine finds names and points. Its errors end the query.
type Source interface {
	// Metrics returns the metrics that begin with a prefix. An error comes last.
	Metrics(ctx context.Context, prefix string) iter.Seq2[string, error]
	// KnownMetric reports whether there is a metric of a name.
	KnownMetric(ctx context.Context, name string) (bool, error)
	// TagValues returns the tag values that begin with a prefix; complete is false if they are more than limit.
	TagValues(ctx context.Context, prefix string, limit int) (names []string, complete bool, err error)
	// KnownTagValues returns those of some tag values that there are.
	KnownTagValues(ctx context.Context, names []string) ([]string, error)
	// Read returns the series of metrics, each with its points from start to end, both inclusive, in ms. Series that
	// have none there may be left out. Filters are one for each tag key. A tag key that there is not has no series.
	Read(ctx context.Context, r Read) ([]engine.Result, error)
}

// Read says what to read.
type Read struct {
	Start, End int64 // ms since 1970, both inclusive
	Metrics    []string
	Filters    []query.Filter
	// Window asks for the values of windows in place of points; nil for points. Series without a value may be left out.
	Window *scanplan.Window
	// Groups asks for series of groups in place of those whose values they are made of. Where these cannot be made,
	// the error is a plan.ErrUngrouped.
	Groups *Groups
	// NoPoints asks for the series that have rows in these times, and not for their points.
	NoPoints bool
}

// maxTime is the last time, in ms, that a query may have.
const maxTime = 9999999999999

// queryable is a source as the engine sees it.
type queryable struct {
	src   Source
	times Times
}

// Querier returns what reads points from mint to maxt.
func (q queryable) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{src: q.src, times: q.times, mint: mint, maxt: maxt}, nil
}

type querier struct {
	src        Source
	times      Times
	mint, maxt int64
}

// Select returns a set that is read when its first series is.
func (q *querier) Select(ctx context.Context, _ bool, hints *storage.SelectHints,
	matchers ...*labels.Matcher) storage.SeriesSet {
	start, end, steps := q.mint, q.maxt, int64(1)
	if hints != nil {
		start, end = max(start, hints.Start), min(end, hints.End)
		if hints.Step > 0 {
			steps += (hints.End - hints.Start - hints.Range) / hints.Step
		}
	}
	return &seriesSet{read: func() (found []series, notes annotations.Annotations, err error) {
		matchers, pushed, err := cutWindow(matchers)
		switch {
		case err != nil:
			return nil, nil, err
		case pushed != nil:
			found, notes, err = selectWindows(ctx, q.src, matchers, pushed, q.times)
		default:
			found, err = selectSeries(ctx, q.src, matchers, Read{Start: start, End: end})
		}
		if err != nil {
			return nil, nil, err
		}
		// The engine makes a point of each series and step, twice: as an operand and as a result.
		each := int64(2 * pointBytes * len(found))
		return found, notes, memory.Reserve(ctx, each*max(steps, 1)) //fault:promql-steps-not-reserved TestPromQL_memory
	}}
}

// LabelValues is not asked by the engine.
func (q *querier) LabelValues(context.Context, string, *storage.LabelHints,
	...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, fmt.Errorf("promql: the engine asks for values of labels")
}

// LabelNames is not asked by the engine.
func (q *querier) LabelNames(context.Context, *storage.LabelHints,
	...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, fmt.Errorf("promql: the engine asks for names of labels")
}

// Close has nothing to close.
func (q *querier) Close() error { return nil }

// series is a series that was read, with the labels that it has in the answer.
type series struct {
	labels labels.Labels
	points encoding.Points
	step   int64 // of values of windows, in ms; 0 for points
}

// seriesBytes is about the memory of a series without its points.
const seriesBytes = 600

// selectSeries returns the series that match, in the order of their labels.
func selectSeries(ctx context.Context, src Source, matchers []*labels.Matcher, r Read) ([]series, error) {
	s, err := choose(ctx, src, matchers)
	if err != nil {
		return nil, err
	}
	return readSeries(ctx, src, s, matchers, r)
}

// readSeries returns the series of a selection that match, in the order of their labels.
func readSeries(ctx context.Context, src Source, s selection, matchers []*labels.Matcher, r Read) ([]series, error) {
	r.Start, r.End = max(r.Start, 0), min(r.End, maxTime)
	if r.End < r.Start || len(s.metrics) == 0 {
		return nil, nil
	}
	shown := map[string]string{}
	for _, m := range s.metrics {
		shown[m.metric] = m.shown
		r.Metrics = append(r.Metrics, m.metric)
	}
	r.Filters = s.filters
	read, err := src.Read(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := memory.Reserve(ctx, int64(len(read))*seriesBytes); err != nil {
		return nil, err
	}
	return admitted(read, shown, matchers, r)
}

// admitted returns the series that match, of those that were read.
func admitted(read []engine.Result, shown map[string]string, matchers []*labels.Matcher, r Read) ([]series, error) {
	found := make([]series, 0, len(read))
	var b labels.ScratchBuilder
	for i := range read {
		s := &read[i]
		points := s.Points
		if r.Window == nil {
			points = within(points, r.Start, r.End)
		}
		if points.Len() == 0 && !r.NoPoints {
			continue
		}
		if err := checkTimes(s, points.Time); err != nil {
			return nil, err
		}
		b.Reset()
		b.Add(model.MetricNameLabel, shown[s.Metric])
		for _, t := range s.Tags {
			if t.K == names.None && t.V == names.None { //fault:promql-no-labels-shown TestPromQL_escaped
				continue // the series has no labels
			}
			if t.K == model.MetricNameLabel {
				return nil, fmt.Errorf("a series of %s has a tag %s, which PromQL has no place for", s.Metric, t.K)
			}
			b.Add(names.Shown(t.K), names.Shown(t.V))
		}
		b.Sort()
		l := b.Labels()
		if name, twice := l.HasDuplicateLabelNames(); twice {
			return nil, fmt.Errorf("a series of %s has two tags that are the label %q", s.Metric, name)
		}
		// Groups lack labels, and each of their series matches, see selection.exact.
		if r.Groups != nil || matches(matchers, l) {
			found = append(found, series{labels: l, points: points})
		}
	}
	slices.SortFunc(found, func(a, b series) int { return labels.Compare(a.labels, b.labels) })
	for i := 1; i < len(found); i++ {
		if labels.Equal(found[i-1].labels, found[i].labels) && !r.NoPoints && r.Groups == nil {
			return nil, fmt.Errorf("the tables have %s twice, under two row keys", found[i].labels)
		}
	}
	return found, nil
}

// matches reports whether labels satisfy all matchers. A label that is absent is "".
func matches(matchers []*labels.Matcher, l labels.Labels) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) { //fault:promql-labels-not-checked-again TestPromQL_law
			return false
		}
	}
	return true
}

// within returns the points from start to end.
func within(p encoding.Points, start, end int64) encoding.Points {
	from := sort.Search(len(p.Time), func(i int) bool { return p.Time[i] >= start })
	to := sort.Search(len(p.Time), func(i int) bool {
		return p.Time[i] > end //fault:promql-end-excluded TestPromQL_names
	})
	return p.Slice(from, max(from, to))
}

// checkTimes returns an error for times that do not ascend: the engine relies on that.
func checkTimes(s *engine.Result, times []int64) error {
	for i := 1; i < len(times); i++ {
		if times[i] <= times[i-1] {
			return fmt.Errorf("a series of %s has two points at %d ms", s.Metric, times[i])
		}
	}
	return nil
}

// seriesSet is a set of series that is read once the first is wanted.
type seriesSet struct {
	read  func() ([]series, annotations.Annotations, error)
	all   []series
	at    int
	notes annotations.Annotations
	err   error
}

// Next goes to the next series.
func (s *seriesSet) Next() bool {
	if s.read != nil {
		all, notes, err := s.read()
		if err != nil {
			s.err = sourceError{err}
		}
		s.all, s.notes, s.read, s.at = all, notes, nil, -1
	}
	if s.err != nil {
		return false
	}
	s.at++
	return s.at < len(s.all)
}

// At returns the series.
func (s *seriesSet) At() storage.Series { return &s.all[s.at] }

// Err returns why the set could not be read.
func (s *seriesSet) Err() error { return s.err }

// Warnings returns what functions of windows say of the series.
func (s *seriesSet) Warnings() annotations.Annotations { return s.notes }

// Labels returns the labels.
func (s *series) Labels() labels.Labels { return s.labels }

// Iterator returns the points. It uses one that the engine has no more use for.
func (s *series) Iterator(again chunkenc.Iterator) chunkenc.Iterator {
	if s.step > 0 {
		it, ok := again.(*windowIterator)
		if !ok {
			it = new(windowIterator)
		}
		*it = windowIterator{iterator: iterator{points: s.points, at: -1}, step: s.step}
		return it
	}
	it, ok := again.(*iterator)
	if !ok {
		it = new(iterator)
	}
	it.points, it.at = s.points, -1
	return it
}

// ms is a time. By another name than int64, Seek is not taken for an io.Seeker's with a wrong signature.
type ms = int64

// iterator walks the points of a series. Integers become the nearest double.
type iterator struct {
	points encoding.Points
	at     int
}

// Next goes to the next point.
func (it *iterator) Next() chunkenc.ValueType { return it.to(it.at + 1) }

// Seek goes to the first point at t or later that is not before the present one.
func (it *iterator) Seek(t ms) chunkenc.ValueType {
	from := max(it.at, 0)
	if from >= len(it.points.Time) {
		return it.to(from)
	}
	// What is sought is near, as a rule.
	step := 1
	to := from
	for to < len(it.points.Time) && it.points.Time[to] < t {
		from = to + 1
		to += step
		step *= 2
	}
	to = min(to, len(it.points.Time))
	return it.to(from + sort.Search(to-from, func(i int) bool { return it.points.Time[from+i] >= t }))
}

func (it *iterator) to(i int) chunkenc.ValueType {
	it.at = min(i, len(it.points.Time))
	if it.at == len(it.points.Time) {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

// At returns the point.
func (it *iterator) At() (int64, float64) {
	bits := it.points.Bits[it.at]
	if it.points.Float[it.at] {
		return it.points.Time[it.at], math.Float64frombits(bits)
	}
	return it.points.Time[it.at], float64(int64(bits))
}

// AtT returns the point's time.
func (it *iterator) AtT() int64 { return it.points.Time[it.at] }

// AtST returns that no start is known.
func (it *iterator) AtST() int64 { return 0 }

// AtHistogram is never called: no point is a histogram.
func (it *iterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) { return 0, nil }

// AtFloatHistogram is never called: no point is a histogram.
func (it *iterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return 0, nil
}

// Err returns that there is no fault.
func (it *iterator) Err() error { return nil }
