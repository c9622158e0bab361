// Package rules says how long the rows of each metric are kept. Rules are lines of text:
//
//	# PATTERN   AGE    of rollups
//	^sys\.      400d   rollups=5y
//	^net\.if\.  90d    1m=400d 1h=5y
//	^billing\.  keep
//	.           2y
//
// PATTERN is a regular expression (RE2) that finds any part of a metric's name. The first
// line that matches a metric counts for it, whatever follows; a metric that no line matches is
// kept. AGE is a number and a unit of OpenTSDB's (s, m, h, d, w, n for 30 days, y for 365 days)
// and at least an hour, or keep. It is that of points, histograms and annotations in the data
// table, and of pre-aggregates that are not rolled up. Rollups are kept, unless the line gives
// an age for all of them (rollups=AGE) or for one interval (INTERVAL=AGE), which takes
// precedence. They may not be younger than the points when they go.
//
// The package is pure.
package rules

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Rules are the rules of all metrics. They do not change.
type Rules struct {
	Lines []Rule // in their order
}

// Rule is one line.
type Rule struct {
	Line    int    // number in the text, from 1; 0 for the one rule of a setting that is an age
	Text    string // of the line, without blanks around it
	pattern *regexp.Regexp
	raw     Age
	rollups Age            // of intervals that have none of their own
	one     map[string]Age // by interval
}

// allRollups is the word for all intervals.
const allRollups = "rollups"

// maxText bounds the text of rules, in bytes.
const maxText = 1 << 20

// Parse reads rules, a line each. intervals are the names of the rollup intervals that there
// are. The error names each line that is wrong, what it has and what is wanted.
func Parse(text []byte, intervals []string) (*Rules, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("%d bytes, want at most %d", len(text), maxText)
	}

	out := &Rules{}
	var errs []error
	for i, line := range bytes.Split(text, []byte("\n")) {
		words := strings.Fields(string(line))
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		r := Rule{Line: i + 1, Text: strings.Join(words, " ")}
		if err := r.parse(words, intervals); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", r.Line, err))
		}
		out.Lines = append(out.Lines, r)
	}
	if len(out.Lines) == 0 {
		errs = append(errs, errors.New("no lines, want at least one PATTERN AGE"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// All returns the rules by which the points of all metrics have one age.
func All(age Age) *Rules {
	return &Rules{Lines: []Rule{{Text: age.String(), pattern: regexp.MustCompile(""), raw: age}}}
}

// parse reads the words of a line.
func (r *Rule) parse(words []string, intervals []string) (err error) {
	if len(words) < 2 {
		return fmt.Errorf("got %q, want PATTERN AGE", r.Text)
	}
	if r.pattern, err = regexp.Compile(words[0]); err != nil {
		return fmt.Errorf("pattern: got %q, want a regular expression: %w", words[0], err)
	}
	if r.raw, err = ParseAge(words[1]); err != nil {
		return fmt.Errorf("age: %w", err)
	}

	seen := map[string]bool{}
	r.one = map[string]Age{}
	for _, word := range words[2:] {
		name, text, ok := strings.Cut(word, "=")
		switch {
		case !ok || name != allRollups && !slices.Contains(intervals, name):
			return fmt.Errorf("got %q, want %s", word, wanted(intervals))
		case seen[name]:
			return fmt.Errorf("%s is there twice, want it once", name)
		}
		seen[name] = true

		age, err := ParseAge(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if age.lessThan(r.raw) {
			return fmt.Errorf("%s: got %s, which is less than the age of points, want at least %s", name, age, r.raw)
		}
		if name == allRollups {
			r.rollups = age
		} else {
			r.one[name] = age
		}
	}
	return nil
}

// wanted says which words may follow an age.
func wanted(intervals []string) string {
	words := []string{allRollups + "=AGE"}
	for _, name := range intervals {
		words = append(words, name+"=AGE")
	}
	return strings.Join(words, " or ")
}

// Of returns the rule of a metric: the first that matches it, nil for none.
func (r *Rules) Of(metric string) *Rule {
	for i := range r.Lines { //fault:retention-by-the-last-line TestParse
		if r.Lines[i].pattern.MatchString(metric) {
			return &r.Lines[i]
		}
	}
	return nil
}

// Text returns the rules as text, which differs for rules that differ.
func (r *Rules) Text() string {
	var b strings.Builder
	for i := range r.Lines {
		b.WriteString(r.Lines[i].Text + "\n")
	}
	return b.String()
}

// Age returns the age from which on rows go: those of the rollups of an interval, or, for "", those
// of points.
func (r *Rule) Age(interval string) Age {
	if interval == "" {
		return r.raw
	}
	if age, ok := r.one[interval]; ok {
		return age
	}
	return r.rollups
}

// String names the rule for people.
func (r *Rule) String() string {
	if r.Line == 0 {
		return r.Text
	}
	return fmt.Sprintf("line %d, %s", r.Line, r.Text)
}
