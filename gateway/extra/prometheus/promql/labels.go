package promql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Labels are the labels of a series, __name__ among them.
type Labels struct{ of labels.Labels }

// Get returns a label, "" if it is absent.
func (l Labels) Get(name string) string { return l.of.Get(name) }

// Each calls each with every label.
func (l Labels) Each(each func(name, value string)) {
	l.of.Range(func(l labels.Label) { each(l.Name, l.Value) })
}

// MarshalJSON is the labels as an object.
func (l Labels) MarshalJSON() ([]byte, error) { return appendLabels(nil, l.of), nil }

// Series returns the labels of the series that match one of some selectors, sorted, each once: those that have rows
// in the hours of the times. The errors are those of Query.
func (e *Engine) Series(ctx context.Context, src Source, selectors []string, start, end int64) ([]Labels, error) {
	var all []Labels
	for _, text := range selectors {
		matchers, err := e.selector(ctx, text)
		if err != nil {
			return nil, err
		}
		found, err := selectSeries(ctx, src, matchers, Read{Start: start, End: end, NoPoints: true})
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			all = append(all, Labels{s.labels})
		}
	}
	slices.SortFunc(all, func(a, b Labels) int { return labels.Compare(a.of, b.of) })
	return slices.CompactFunc(all, func(a, b Labels) bool { return labels.Equal(a.of, b.of) }), nil
}

// Metrics returns the metrics that some selectors match by their name alone; ok is false if one of them says more,
// and its series must be looked for. Without selectors they are all metrics.
func (e *Engine) Metrics(ctx context.Context, src Source, selectors []string) (names []string, ok bool, err error) {
	if len(selectors) == 0 {
		selectors = []string{`{__name__=~".+"}`}
	}
	seen := map[string]bool{}
	for _, text := range selectors {
		matchers, err := e.selector(ctx, text)
		if err != nil {
			return nil, false, err
		}
		if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return m.Name != model.MetricNameLabel }) {
			return nil, false, nil
		}
		found, err := chooseMetrics(ctx, src, matchers, maxListedMetrics)
		if err != nil {
			return nil, false, err
		}
		for _, m := range found {
			seen[m.shown] = true
		}
	}
	return slices.Sorted(maps.Keys(seen)), true, nil
}

// selector parses a selector.
func (e *Engine) selector(ctx context.Context, text string) ([]*labels.Matcher, error) {
	if err := reserveText(ctx, text); err != nil {
		return nil, err
	}
	matchers, err := e.parser.ParseMetricSelector(text)
	if err != nil {
		return nil, &BadDataError{err}
	}
	for _, m := range matchers {
		if !m.Matches("") {
			return matchers, nil
		}
	}
	return nil, &BadDataError{errMatchesAll}
}

// LabelName returns the name of a label as a path has it: what begins with U__ is escaped. The error refuses a name
// that no label has.
func LabelName(text string) (string, error) {
	if strings.HasPrefix(text, "U__") {
		text = model.UnescapeName(text, model.ValueEncodingEscaping)
	}
	if !model.UTF8Validation.IsValidLabelName(text) {
		return "", fmt.Errorf("invalid label name: %q", text)
	}
	return text, nil
}
