package extra_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/almost"

	"downpour/gateway/extra/prometheus/promql"
)

// scripted is what a script expects of an expression.
type scripted struct {
	fails, ordered, histograms bool
	scalar                     *float64
	text                       *string
	series                     []string // labels as JSON, in their order
	values                     [][]parser.SequenceValue
	start, step                int64    // ms from the script's time 0, of the first value of a series and between them
	notes                      []string // of what the answer must have: warn, info, no_warn, no_info
}

// readScripted reads the lines below an eval, whose suffix is how, as in eval_ordered.
func (s *scripts) readScripted(how string, block []string, start, step int64) (w scripted) {
	s.Helper()
	w.start, w.step = start, step
	w.fails, w.ordered = how == "_fail", how == "_ordered"
	if how == "_warn" || how == "_info" {
		w.notes = append(w.notes, how[1:])
	}
	for _, line := range block {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "expected_fail"):
		case strings.HasPrefix(line, "expect range vector"): // from A to B step C
			w.start, w.step = scriptTime(s.T, words[4]), scriptTime(s.T, words[8])
		case strings.HasPrefix(line, "expect string"):
			text, err := strconv.Unquote(strings.TrimSpace(strings.TrimPrefix(line, "expect string")))
			if err != nil {
				s.Fatalf("%s: %v", line, err)
			}
			w.text = &text
		case words[0] == "expect":
			w.fails, w.ordered = w.fails || words[1] == "fail", w.ordered || words[1] == "ordered"
			w.notes = append(w.notes, words[1])
		default:
			if v, err := strconv.ParseFloat(line, 64); err == nil {
				w.scalar = &v
				continue
			}
			l, values, err := parser.NewParser(promql.ParserOptions).ParseSeriesDesc(line)
			if err != nil {
				s.Fatalf("%s: %v", line, err)
			}
			text, _ := json.Marshal(l.Map())
			w.series, w.values = append(w.series, string(text)), append(w.values, values)
			w.histograms = w.histograms || slices.ContainsFunc(values,
				func(v parser.SequenceValue) bool { return v.Histogram != nil })
		}
	}
	return w
}

// differs returns how an answer differs from what is written, "" if it does not. The script's time 0 is at zero.
func (w scripted) differs(a promAnswer, zero int64) string {
	if w.fails || a.failed {
		if w.fails != a.failed {
			return fmt.Sprintf("failed %t (%s), want %t", a.failed, a.text, w.fails)
		}
		return ""
	}
	for _, kind := range []string{"warn", "info"} {
		has := slices.ContainsFunc(a.notes, func(n string) bool { return strings.HasPrefix(n, "PromQL "+kind) })
		if slices.Contains(w.notes, kind) && !has || slices.Contains(w.notes, "no_"+kind) && has {
			return fmt.Sprintf("notes %q, want %q", a.notes, w.notes)
		}
	}
	switch {
	case w.text != nil:
		if a.text != *w.text {
			return fmt.Sprintf("got %q, want %q", a.text, *w.text)
		}
		return ""
	case w.scalar != nil:
		w.series, w.values = []string{"{}"}, [][]parser.SequenceValue{{{Value: *w.scalar}}}
		if a.kind != "scalar" {
			return "got a " + a.kind + ", want a scalar"
		}
	}
	if w.ordered && !slices.Equal(a.series, w.series) {
		return fmt.Sprintf("got the order %q, want %q", a.series, w.series)
	}
	if got, want := sorted(a.series), sorted(w.series); !slices.Equal(got, want) {
		return fmt.Sprintf("got the series %q, want %q", got, want)
	}
	for i, name := range w.series {
		points := a.points[slices.Index(a.series, name)]
		for j, v := range w.values[i] {
			if v.Omitted {
				continue
			}
			if len(points) == 0 {
				return fmt.Sprintf("%s ends before %v", name, v.Value)
			}
			at, got := readPoint(points[0])
			points = points[1:]
			if want := zero + w.start + int64(j)*w.step; a.kind == "matrix" && at != want {
				return fmt.Sprintf("%s has a point at %d, want %d", name, at-zero, want-zero)
			}
			if v.Histogram != nil || !almost.Equal(got, v.Value, 1e-6) {
				return fmt.Sprintf("%s: got %v, want %v", name, got, v)
			}
		}
		if len(points) > 0 {
			return fmt.Sprintf("%s has more points, %q", name, points)
		}
	}
	return ""
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// readPoint reads what promPoint has written.
func readPoint(text string) (ms int64, v float64) {
	words := strings.Fields(text)
	seconds, err := strconv.ParseFloat(words[0], 64)
	if v = math.NaN(); err == nil && words[1] != "NaN" {
		var bits uint64
		bits, err = strconv.ParseUint(words[1], 16, 64)
		v = math.Float64frombits(bits)
	}
	if err != nil {
		panic(err)
	}
	return int64(math.Round(seconds * 1000)), v
}

// leftOut is a series of a script that is not in the tables as it is written, and why.
type leftOut struct {
	labels labels.Labels
	why    string
}

// clockFunctions have answers that depend on the time of day, and move with a script.
var clockFunctions = []string{"time", "timestamp", "hour", "minute", "month", "year", "day_of_month", "day_of_week",
	"day_of_year", "days_in_month", "ts_of_max_over_time", "ts_of_min_over_time", "ts_of_last_over_time",
	"ts_of_first_over_time", "start", "end"}

// excuse names the class of what a script expects and the tables cannot give, "" if they can.
func (s *scripts) excuse(q promQuestion, w scripted) (class string) {
	if w.histograms {
		return "native histograms"
	}
	late := promPeer{engine: newPromEngine(true), series: s.peer.series}
	if w.differs(late.ask(s.Context(), q), s.shift) == "" {
		return "promql-delayed-name-removal"
	}
	expr, err := parser.NewParser(promql.ParserOptions).ParseExpr(q.text)
	if err != nil {
		return ""
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			for _, left := range s.without {
				if !slices.ContainsFunc(n.LabelMatchers, func(m *labels.Matcher) bool {
					return !m.Matches(left.labels.Get(m.Name))
				}) {
					class = left.why
				}
			}
			if n.Timestamp != nil && class == "" {
				class = "times from 1970 on"
			}
		case *parser.SubqueryExpr:
			if n.Timestamp != nil && class == "" {
				class = "times from 1970 on"
			}
		case *parser.Call:
			if slices.Contains(clockFunctions, n.Func.Name) && class == "" {
				class = "times from 1970 on"
			}
		}
		return nil
	})
	return class
}
