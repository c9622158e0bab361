package metaroutes

import (
	"errors"
	"fmt"
	"strings"
)

// parseSeries reads metric{k=v,…}. Its errors have OpenTSDB's texts.
// Source: Tags.parseWithMetric.
func parseSeries(text string) (metric string, tags map[string]string, err error) {
	metric, inner, err := cutBraces(text)
	tags = map[string]string{}
	if err != nil || inner == "" {
		return metric, tags, err
	}
	for tag := range strings.SplitSeq(inner, ",") {
		k, v, _ := strings.Cut(tag, "=")
		old, there := tags[k]
		switch {
		case k == "" || v == "" || strings.Contains(v, "="):
			return "", nil, fmt.Errorf("When parsing tag '%s': invalid tag: %s", tag, tag)
		case there && old != v:
			return "", nil, fmt.Errorf("When parsing tag '%s': duplicate tag: %s, tags={%s=%s}", tag, tag, k, old)
		}
		tags[k] = v
	}
	return metric, tags, nil
}

// cutBraces splits metric{inner}; inner is empty if there are no braces.
func cutBraces(text string) (metric, inner string, err error) {
	metric, inner, found := strings.Cut(text, "{")
	if !found {
		return text, "", nil
	}
	inner, closed := strings.CutSuffix(inner, "}")
	if !closed {
		return "", "", errors.New("Missing '}' at the end of: " + text)
	}
	return metric, inner, nil
}
