package query

import (
	"slices"
	"strconv"
	"strings"
)

// parseMParameter reads AGG:part:…:METRIC{group tags}{filter tags}.
// Source: QueryRpc.parseMTypeSubQuery.
func parseMParameter(text string) (SubQuery, error) {
	s := newSubQuery()
	if text == "" {
		return s, bad("The query string was empty")
	}
	parts, err := parameterParts(text)
	if err != nil {
		return s, err
	}
	s.Aggregator = parts[0]
	if s.Metric, s.Filters, err = parseMetric(parts[len(parts)-1]); err != nil {
		return s, err
	}
	for _, part := range parts[1 : len(parts)-1] {
		known, err := s.commonPart(text, part)
		if err != nil {
			return s, err
		}
		if known {
			continue
		}
		switch lower := strings.ToLower(part); {
		case lower == "pre-agg":
			s.PreAggregate = true
		case strings.HasPrefix(lower, "rollup_"):
			s.RollupUsage = rollupUsage(part)
		case strings.HasPrefix(lower, "explicit_tags"):
			s.ExplicitTags = true
		}
	}
	return s, nil
}

// parseTSUIDParameter reads AGG:part:…:TSUID,TSUID,….
// Source: QueryRpc.parseTsuidTypeSubQuery.
func parseTSUIDParameter(text string) (SubQuery, error) {
	s := newSubQuery()
	if text == "" {
		return s, bad("The tsuid query string was empty")
	}
	parts, err := parameterParts(text)
	if err != nil {
		return s, err
	}
	s.Aggregator = parts[0]
	s.TSUIDs = javaSplit(parts[len(parts)-1], ",")
	for _, part := range parts[1 : len(parts)-1] {
		if _, err := s.commonPart(text, part); err != nil {
			return s, err
		}
	}
	return s, nil
}

func parameterParts(text string) ([]string, error) {
	parts := strings.Split(text, ":")
	switch {
	case len(parts) < 2:
		return nil, bad("Invalid parameter m=%s (not enough :-separated parts)", text)
	case len(parts) > 5:
		return nil, bad("Invalid parameter m=%s (too many :-separated parts)", text)
	}
	return parts, nil
}

// commonPart reads a middle part that m and tsuid parameters share.
func (s *SubQuery) commonPart(text, part string) (known bool, err error) {
	lower := strings.ToLower(part)
	switch {
	case part == "":
		return false, bad("Invalid parameter m=%s (an empty part)", text)
	case strings.HasPrefix(lower, "rate"):
		s.Rate = true
		if strings.Contains(part, "{") {
			s.RateOptions, err = parseRate(part)
		}
	case part[0] >= '0' && part[0] <= '9':
		s.DownsampleText = part
	case strings.HasPrefix(lower, "percentiles"):
		s.Percentiles, err = parsePercentiles(part)
	case strings.HasPrefix(lower, "show-histogram-buckets"):
		s.ShowHistogramBuckets = true
	default:
		return false, nil
	}
	return true, err
}

// parsePercentiles reads percentiles[p,p…]. Source: QueryRpc.parsePercentiles.
func parsePercentiles(part string) ([]float32, error) {
	open, end := strings.IndexByte(part, '['), strings.IndexByte(part, ']')
	if open < 0 || end < open {
		return nil, bad("Malformated percentile query paramater: %s", part)
	}
	var out []float32
	for p := range strings.SplitSeq(part[open+1:end], ",") {
		p = strings.TrimSpace(p)
		x, err := strconv.ParseFloat(p, 32)
		if p == "" {
			return nil, Broken("empty String")
		}
		if err != nil {
			return nil, Broken("For input string: \"%s\"", p)
		}
		out = append(out, float32(x))
	}
	slices.Sort(out)
	return out, nil
}

// parseMetric reads a metric and the filters in braces behind it: those of the
// second pair come first, and do not group. Source: Tags.parseWithMetricAndFilters.
func parseMetric(text string) (metric string, filters []Filter, err error) {
	if text == "" {
		return "", nil, Broken("Metric cannot be null or empty")
	}
	open := strings.IndexByte(text, '{')
	if open < 0 {
		return text, nil, nil
	}
	metric = text[:open]
	if !strings.HasSuffix(text, "}") {
		return "", nil, Broken("Missing '}' at the end of: %s", text)
	}
	end := strings.IndexByte(text, '}')
	switch {
	case open == len(text)-2:
		return metric, nil, nil
	case end < open:
		return "", nil, Broken("A '}' before the '{' of: %s", text)
	}
	two := end != len(text)-1
	if two {
		inner := text[strings.LastIndexByte(text, '{')+1 : len(text)-1]
		if filters, err = braces(nil, inner, false, true); err != nil {
			return "", nil, err
		}
	}
	filters, err = braces(filters, text[open+1:end], true, two)
	return metric, filters, err
}

// braces adds the filters of one pair of braces. An empty one ends the list
// where there are two pairs, and is a mistake where there is one.
func braces(filters []Filter, inner string, groupBy, emptyEnds bool) ([]Filter, error) {
	what := "filter"
	if groupBy {
		what = "tag"
	}
	for tag := range strings.SplitSeq(inner, ",") {
		if tag == "" && emptyEnds {
			break
		}
		k, v, _ := strings.Cut(tag, "=")
		if k == "" || v == "" || strings.Contains(v, "=") {
			return nil, Broken("When parsing %s '%s': invalid tag: %s", what, tag, tag)
		}
		if len(filters) == MaxFilters {
			return nil, TooMuch("Too many filters in one sub query, at most %d", MaxFilters)
		}
		var err error
		if filters, err = addShorthand(filters, k, v, groupBy); err != nil {
			return nil, bracesError(what, tag, err)
		}
		if stepsOf(filters) > MaxSteps {
			return nil, tooManySteps()
		}
	}
	return filters, nil
}

// bracesError is a 500 as the reference's, unless it would have run the filter.
func bracesError(what, tag string, err error) *Error {
	e := Broken("When parsing %s '%s': %v", what, tag, err)
	if _, ours := err.(*UnsupportedError); ours {
		e.Status = bad("").Status
	}
	return e
}
