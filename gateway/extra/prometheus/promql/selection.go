package promql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"downpour/gateway/extra/prometheus/names"
	"downpour/gateway/query"
	"downpour/pushdown/process/memory"
)

// errMatchesAll is Prometheus' refusal of a selector that would match every series.
var errMatchesAll = errors.New("match[] must contain at least one non-empty matcher")

const (
	// maxMetrics bounds the metrics of one selector: each is read on its own.
	maxMetrics = 1000
	// maxListedMetrics bounds the metrics of a list of names.
	maxListedMetrics = 1_000_000
	// maxListed bounds the tag values among which a regular expression chooses those that are read.
	maxListed = 4096
	// maxFilterText bounds the values of one filter, in bytes.
	maxFilterText = 64 << 10
)

// selection is what a selector reads.
type selection struct {
	metrics []metricAs
	filters []query.Filter
	// exact is set if no series is chosen that does not match.
	exact bool
}

// metricAs is a metric, as it is stored, and the name that its series have in the answer: a metric that is found by
// another name has that one, so that every series satisfies its matchers.
type metricAs struct{ metric, shown string }

// choose turns matchers into metrics and filters. It may choose more series than match; none means that nothing does.
func choose(ctx context.Context, src Source, matchers []*labels.Matcher) (s selection, err error) {
	var onName []*labels.Matcher
	byKey := map[string][]*labels.Matcher{}
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel {
			onName = append(onName, m)
		} else {
			byKey[m.Name] = append(byKey[m.Name], m)
		}
	}
	if s.metrics, err = chooseMetrics(ctx, src, onName, maxMetrics); err != nil || len(s.metrics) == 0 {
		return selection{}, err
	}
	s.exact = true
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		f, none, err := chooseFilter(ctx, src, key, byKey[key])
		if err != nil || none {
			return selection{}, err
		}
		s.exact = s.exact && isExact(f, byKey[key]) && len(s.filters) < query.MaxFilters
		if f != nil && len(s.filters) < query.MaxFilters {
			s.filters = append(s.filters, *f)
		}
	}
	return s, nil
}

// isExact reports whether a filter, nil for none, admits just the series that matchers match.
func isExact(f *query.Filter, matchers []*labels.Matcher) bool {
	if f != nil && f.Type == query.LiteralOr {
		return true // the values that match, of those that there are
	}
	for _, m := range matchers {
		everything := m.Type == labels.MatchRegexp && m.Value == ".*"
		present := m.Type == labels.MatchRegexp && m.Value == ".+" || m.Type == labels.MatchNotEqual && m.Value == ""
		if !everything && (f == nil || !present) { //fault:promql-groups-of-more-than-match TestPromQL_law
			return false
		}
	}
	return true
}

// matchAll reports whether all matchers match a value.
func matchAll(matchers []*labels.Matcher, value string) bool {
	for _, m := range matchers {
		if !m.Matches(value) {
			return false
		}
	}
	return true
}

// chooseFilter returns the filter that admits the series with a tag key that may match, nil for all. None is set
// if no series can match.
func chooseFilter(ctx context.Context, src Source, key string,
	matchers []*labels.Matcher) (f *query.Filter, none bool, err error) {
	if matchAll(matchers, "") { //fault:promql-absent-tag-demanded TestPromQL_law
		return nil, false, nil // a series without the key matches, too, and any filter demands the key
	}
	if key == "" {
		return nil, true, nil // no label has this name
	}
	if len(names.Of(key)) > 1 { //fault:promql-one-key-of-two TestPromQL_specialChars
		return nil, false, nil // a filter is for one key, and this label may be stored under several
	}
	key = names.Stored(key)
	values, known, err := candidates(ctx, src, matchers)
	if err != nil {
		return nil, false, err
	}
	present, err := query.NewFilter(query.Wildcard, key, "*", false)
	if err != nil || !known {
		return &present, false, err
	}

	values = slices.DeleteFunc(values, func(v string) bool { return !matchAll(matchers, names.Shown(v)) })
	if values, err = src.KnownTagValues(ctx, values); err != nil {
		return nil, false, err
	}
	text := strings.Join(values, "|")
	switch {
	case len(values) == 0:
		return nil, true, nil
	case strings.Count(text, "|") >= len(values), len(text) > maxFilterText: // a value has the sign that separates them
		return &present, false, nil
	}
	filter, err := query.NewFilter(query.LiteralOr, key, text, false)
	return &filter, false, err
}

// candidates returns tag values, as they are stored, among which all are that match; known is false if they are too
// many.
func candidates(ctx context.Context, src Source, matchers []*labels.Matcher) (values []string, known bool, err error) {
	prefix, listed := "", false
	for _, m := range matchers {
		switch {
		case m.Type == labels.MatchEqual:
			return names.Of(m.Value), true, nil
		case m.Type == labels.MatchRegexp && len(m.SetMatches()) > 0:
			for _, text := range m.SetMatches() {
				values = append(values, names.Of(text)...)
			}
			return values, true, nil
		case m.Type == labels.MatchRegexp:
			listed = true
			if p := m.Prefix(); len(p) > len(prefix) {
				prefix = p
			}
		case m.Type == labels.MatchNotRegexp:
			listed = true
		}
	}
	if !listed { // x!="" and the like admit nearly all
		return nil, false, nil
	}
	for _, start := range names.Starts(prefix) {
		found, complete, err := src.TagValues(ctx, start, maxListed)
		if err != nil || !complete || len(values)+len(found) > maxListed {
			return nil, false, err
		}
		values = append(values, found...)
	}
	return values, true, nil
}

// metricBytes is about the memory of a metric that was found, without its name.
const metricBytes = 100

// chooseMetrics returns the metrics whose names match. The error refuses more than limit.
func chooseMetrics(ctx context.Context, src Source, matchers []*labels.Matcher,
	limit int) (found []metricAs, err error) {
	for _, m := range matchers {
		if m.Type == labels.MatchEqual {
			if m.Value == "" || !matchAll(matchers, m.Value) {
				return nil, nil
			}
			return metricNamed(ctx, src, m.Value)
		}
	}

	prefix := ""
	for _, m := range matchers {
		if p := m.Prefix(); m.Type == labels.MatchRegexp && len(p) > len(prefix) {
			prefix = p
		}
	}
	for _, start := range names.Starts(prefix) {
		for name, err := range src.Metrics(ctx, start) {
			if err != nil {
				return nil, err
			}
			shown := names.Shown(name)
			if !matchAll(matchers, shown) {
				continue
			}
			if len(found) == limit {
				return nil, &EvaluationError{fmt.Errorf(
					"a selector matches more than %d metrics: name one metric, or more of its name", limit)}
			}
			if err := memory.Reserve(ctx, metricBytes+int64(len(name))); err != nil {
				return nil, err
			}
			found = append(found, metricAs{name, shown})
		}
	}
	return found, nil
}

// metricNamed returns the metric of a name: what is stored for it, or else the only one whose name becomes it where
// only letters, digits, _ and : are allowed.
func metricNamed(ctx context.Context, src Source, name string) (found []metricAs, err error) {
	for _, stored := range names.Of(name) {
		known, err := src.KnownMetric(ctx, stored)
		if err != nil {
			return nil, err
		}
		if known {
			found = append(found, metricAs{stored, name})
		}
	}
	prefix, _, escaped := strings.Cut(name, "_")
	if len(found) > 0 || !escaped || Escape(name) != name {
		return found, nil
	}

	for _, start := range names.Starts(prefix) {
		for metric, err := range src.Metrics(ctx, start) {
			if err != nil {
				return nil, err
			}
			if Escape(names.Shown(metric)) != name {
				continue
			}
			if found = append(found, metricAs{metric, name}); len(found) == 2 {
				one, other := names.Shown(found[0].metric), names.Shown(metric)
				return nil, &EvaluationError{fmt.Errorf("%s stands for several metrics, %s and %s: name one as {%q}",
					name, one, other, one)}
			}
		}
	}
	return found, nil
}

// Escape returns the name that a metric has where only letters, digits, _ and : are allowed, with _ for all else.
// Source: Prometheus' UnderscoreEscaping.
func Escape(metric string) string {
	var b strings.Builder
	for i, c := range metric {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':'
		if letter || c >= '0' && c <= '9' && i > 0 {
			b.WriteRune(c)
		} else {
			b.WriteByte('_')
		}
	}
	return b.String()
}
