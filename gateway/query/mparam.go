package query

import (
	"net/http"
	"slices"
	"strings"

	"downpour/gateway/java"
)

// parseMParameter parses AGG:part:…:METRIC{group tags}{filter tags}.
// Source: QueryRpc.parseMTypeSubQuery.
func parseMParameter(text string) (SubQuery, error) {
	s := newSubQuery()
	if text == "" {
		return s, Bad("The query string was empty")
	}
	if tag := tagWithColon(text); tag != "" {
		return s, Bad("Invalid parameter m=%s (a ':' in the tag '%s', which only POST takes)", text, tag)
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

		// Like OpenTSDB, pass over parts that mean nothing.
		switch lower := strings.ToLower(part); {
		case lower == "pre-agg":
			s.PreAggregate = true
		case strings.HasPrefix(lower, "rollup_"):
			s.RollupUsage = ParseRollupUsage(part)
		case strings.HasPrefix(lower, "explicit_tags"):
			s.ExplicitTags = true
		default:
			s.ignorePart("m="+text, part)
		}
	}
	return s, nil
}

// parseTSUIDParameter parses AGG:part:…:TSUID,TSUID,….
// Source: QueryRpc.parseTsuidTypeSubQuery.
func parseTSUIDParameter(text string) (SubQuery, error) {
	s := newSubQuery()
	if text == "" {
		return s, Bad("The tsuid query string was empty")
	}
	parts, err := parameterParts(text)
	if err != nil {
		return s, err
	}

	s.Aggregator = parts[0]
	s.TSUIDs = javaSplit(parts[len(parts)-1], ",")
	for _, part := range parts[1 : len(parts)-1] {
		// Parts that mean nothing are passed over, as in m.
		known, err := s.commonPart(text, part)
		if err != nil {
			return s, err
		}
		if !known {
			s.ignorePart("tsuid="+text, part)
		}
	}
	return s, nil
}

// tagWithColon returns the tag of an m parameter that has its last colon, "" if that stands
// outside of braces. What is behind such a colon would be taken for the metric.
func tagWithColon(text string) string {
	last := strings.LastIndexByte(text, ':')
	if last < 0 {
		return ""
	}
	end := strings.IndexAny(text[last:], ",{}")
	if end < 0 || text[last+end] == '{' { // braces that OpenTSDB passes over, with a metric behind them
		return ""
	}

	begin, depth := 0, 0 // of the present tag
	for i, c := range []byte(text[:last]) {
		switch {
		case c == '{':
			if depth++; depth == 1 {
				begin = i + 1
			}
		case c == '}':
			depth = max(0, depth-1)
		case c == ',' && depth == 1:
			begin = i + 1
		}
	}
	if depth == 0 || !strings.Contains(text[begin:last], "=") { // options of a rate are no tags
		return ""
	}
	return text[begin : last+end]
}

// parameterParts splits a parameter at its colons, into two to five parts.
func parameterParts(text string) ([]string, error) {
	parts := strings.Split(text, ":")
	switch {
	case len(parts) < 2:
		return nil, Bad("Invalid parameter m=%s (not enough :-separated parts)", text)
	case len(parts) > 5:
		return nil, Bad("Invalid parameter m=%s (too many :-separated parts)", text)
	}
	return parts, nil
}

// commonPart parses a middle part of a kind that both m and tsuid parameters may have.
func (s *SubQuery) commonPart(text, part string) (known bool, err error) {
	lower := strings.ToLower(part)
	switch {
	case part == "":
		return false, Bad("Invalid parameter m=%s (an empty part)", text)
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

// parsePercentiles parses percentiles[p,p…]. Source: QueryRpc.parsePercentiles.
func parsePercentiles(part string) ([]float32, error) {
	open, end := strings.IndexByte(part, '['), strings.IndexByte(part, ']')
	if open < 0 || end < open {
		return nil, Bad("Malformated percentile query paramater: %s", part)
	}

	var out []float32
	for p := range strings.SplitSeq(part[open+1:end], ",") {
		p = strings.TrimSpace(p)
		x, err := java.ParseFloat(p)
		if p == "" {
			return nil, Broken("empty String")
		}
		if err != nil {
			return nil, Broken("For input string: \"%s\"", p)
		}
		out = append(out, x)
	}
	slices.Sort(out)
	return out, nil
}

// parseMetric parses a metric and the filters in up to two pairs of braces after it,
// metric{grouping tags}{filtering tags}. The filters of the second pair come first, as in
// OpenTSDB. Source: Tags.parseWithMetricAndFilters.
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
	case open == len(text)-2: // {}
		return metric, nil, nil
	case end < open:
		return "", nil, Broken("A '}' before the '{' of: %s", text)
	}

	// As in OpenTSDB, an empty tag is an error only where there is one pair.
	onePair := end == len(text)-1
	if onePair {
		filters, err = appendBraces(nil, text[open+1:end], groupingBraces, emptyTagFails)
		return metric, filters, err
	}
	second := text[strings.LastIndexByte(text, '{')+1 : len(text)-1]
	if filters, err = appendBraces(nil, second, filteringBraces, emptyTagEnds); err != nil {
		return "", nil, err
	}
	filters, err = appendBraces(filters, text[open+1:end], groupingBraces, emptyTagEnds)
	return metric, filters, err
}

// bracesKind is what the tags of one pair of braces do: group, as those of a JSON query's
// "tags" do too, or filter only. Its text names such a tag in errors.
type bracesKind string

const (
	groupingBraces  bracesKind = "tag"
	filteringBraces bracesKind = "filter"
)

// emptyTag says what an empty tag between commas means.
type emptyTag int

const (
	emptyTagFails emptyTag = iota // where there is one pair of braces
	emptyTagEnds                  // where there are two pairs: the tags after it are ignored
)

// appendBraces appends the filters of one pair of braces.
func appendBraces(filters []Filter, inner string, kind bracesKind, empty emptyTag) ([]Filter, error) {
	for tag := range strings.SplitSeq(inner, ",") {
		if tag == "" && empty == emptyTagEnds {
			break
		}
		k, v, _ := strings.Cut(tag, "=")
		if k == "" || v == "" || strings.Contains(v, "=") {
			return nil, Broken("When parsing %s '%s': invalid tag: %s", kind, tag, tag)
		}
		if len(filters) == MaxFilters {
			return nil, TooMuch("Too many filters in one sub query, at most %d", MaxFilters)
		}

		var err error
		if filters, err = addShorthand(filters, k, v, kind); err != nil {
			return nil, bracesError(kind, tag, err)
		}
		// A value may be regexp(…), which is compiled by now.
		if stepsOf(filters) > MaxSteps {
			return nil, tooManySteps()
		}
	}
	return filters, nil
}

// bracesError returns a 500, as OpenTSDB does. A filter that OpenTSDB would have run is a
// 400.
func bracesError(kind bracesKind, tag string, err error) *Error {
	e := Broken("When parsing %s '%s': %v", kind, tag, err)
	if _, ours := err.(*UnsupportedError); ours {
		e.Status = http.StatusBadRequest
	}
	return e
}
