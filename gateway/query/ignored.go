package query

import (
	"fmt"
	"slices"
	"strings"
)

// Ignored returns what OpenTSDB passes over without a word, and so this does too, a sentence each: the answer may be
// another one than was meant.
//
//	m=sum:deriv:cpu          the part "deriv" of m=sum:deriv:cpu means nothing
//	m=sum:5min-avg:cpu       the duration "5min" is read as 5n, n is for months
//	start=90mins-ago         the duration "90mins" is read as 90s, s is for seconds
//	timezone=Europe/Berlin   a GET's timezone means nothing
func (q *Query) Ignored() (all []string) {
	for _, text := range []string{q.StartText, q.EndText} {
		if length := len(text) - len("-ago"); length > 0 && strings.EqualFold(text[length:], "-ago") {
			all = appendOdd(all, text[:length])
		}
	}
	all = append(all, q.ignored...)
	for i := range q.Queries {
		s := &q.Queries[i]
		all = append(all, s.ignored...)
		if d := s.Downsample; d != nil && !d.All {
			interval, _, _ := strings.Cut(s.DownsampleText, "-")
			if d.Calendar {
				interval = strings.TrimSuffix(interval, "c")
			}
			all = appendOdd(all, interval)
		}
	}
	return fewIgnored(all)
}

// mostIgnored bounds the sentences, which stand in headers.
const mostIgnored = 10

// fewIgnored removes sentences that are there already, and those that are too many.
func fewIgnored(all []string) (few []string) {
	for i, text := range all {
		if slices.Contains(all[:i], text) {
			continue
		}
		if len(few) == mostIgnored {
			return append(few, "and more")
		}
		few = append(few, text)
	}
	return few
}

// unitWords are what the units of durations stand for.
var unitWords = map[string]string{
	"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks", "n": "months",
	"y": "years",
}

// appendOdd appends how a duration is read if it has more between its number and its unit, see ParseDuration.
func appendOdd(all []string, text string) []string {
	digits := leadingDigits(text)
	written := text[len(digits):]
	if written == "" {
		return all
	}
	unit := unitOf(written)
	if len(written) == len(unit) {
		return all
	}
	return append(all, fmt.Sprintf("the duration %.100q is read as %s%s, %s is for %s", text, digits, unit, unit,
		unitWords[unit]))
}

// ignorePart notes a part of an m or tsuid parameter that means nothing.
func (s *SubQuery) ignorePart(text, part string) {
	s.ignored = append(s.ignored, fmt.Sprintf("the part %.100q of %.200s means nothing", part, text))
}
