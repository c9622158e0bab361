package query

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// complete removes equal sub-queries and validates the rest.
func (p Parser) complete(q *Query) (*Query, error) {
	q.removeEqual()
	if err := q.validate(clock{p.Now, p.Zone}); err != nil {
		return nil, &Error{Status: http.StatusBadRequest, Message: err.Error(), Details: q.String()}
	}
	if err := q.checkBounds(); err != nil {
		return nil, err
	}
	return q, nil
}

// Complete validates a query that was put together of parts, as that of an expression is,
// and sets what follows from them. Equal sub-queries stay. All errors are *Error.
func (p Parser) Complete(q *Query) error {
	if err := checkSteps(q.Queries); err != nil {
		return err
	}
	q.setFix(p.Fix)
	if err := q.validate(clock{p.Now, p.Zone}); err != nil {
		return Bad("%s", err.Error())
	}
	return q.checkBounds()
}

// removeEqual removes sub-queries that equal an earlier one.
func (q *Query) removeEqual() {
	seen := map[string]bool{}
	kept := q.Queries[:0]
	for _, s := range q.Queries {
		if id := s.identity(); !seen[id] {
			seen[id] = true
			kept = append(kept, s)
		}
	}
	q.Queries = kept
}

// identity returns a text that is equal for sub-queries that OpenTSDB considers equal. The
// rollup usage and the group-by of filters do not count. Source: TSSubQuery.equals.
func (s *SubQuery) identity() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %#v %q %t %t %t %t %t %t %#v", s.Aggregator, s.Metric, s.TSUIDs, s.DownsampleText,
		s.Rate, s.ExplicitTags, s.PreAggregate, s.UseFuzzyFilter, s.UseMultiGets, s.ShowHistogramBuckets, s.Percentiles)
	if s.RateOptions != nil {
		fmt.Fprintf(&b, " %+v", *s.RateOptions)
	}
	if s.Filters == nil { // not the same as an empty list
		b.WriteString(" no filters")
	}
	for i := range s.Filters {
		fmt.Fprintf(&b, " %q", s.Filters[i].identity())
	}
	return b.String()
}

// validate checks in OpenTSDB's order. Source: TSQuery.validateAndSetQuery.
func (q *Query) validate(c clock) (err error) {
	if q.StartText == "" {
		return Bad("Missing start time")
	}
	if q.Start, err = c.parseTime(q.StartText, q.Timezone); err != nil {
		return err
	}

	q.NoEnd = q.EndText == ""
	if q.End = c.now.UnixMilli(); !q.NoEnd {
		if q.End, err = c.parseTime(q.EndText, q.Timezone); err != nil {
			return err
		}
	}
	if q.End <= q.Start {
		return Bad("End time [%d] must be greater than the start time [%d]", q.End, q.Start)
	}

	if len(q.Queries) == 0 {
		return Bad("Missing queries")
	}
	for i := range q.Queries {
		s := &q.Queries[i]
		if err := s.validate(); err != nil {
			return err
		}
		if err := q.resolveDownsample(s); err != nil {
			return err
		}
		s.Index = i
	}
	return nil
}

// validate checks one sub-query. Source: TSSubQuery.validateAndSetQuery.
func (s *SubQuery) validate() (err error) {
	if s.Aggregator == "" {
		return Bad("Missing the aggregation function")
	}
	if _, ok := aggregate.Lookup(scanplan.Aggregator(s.Aggregator)); !ok {
		return Bad("No such aggregation function: %s", s.Aggregator)
	}

	if len(s.TSUIDs) == 0 && s.Metric == "" {
		return Bad("Missing the metric or tsuids, provide at least one")
	}
	if s.DownsampleText != "" {
		if s.Downsample, err = parseDownsample(s.DownsampleText); err != nil {
			return err
		}
	}
	return s.validateHistogram()
}

// maxPercentiles bounds the lines that each group of histograms has.
const maxPercentiles = 1000

// validateHistogram checks a query of histograms, which have few functions.
// Source: TSSubQuery.checkHistogramQuery.
func (s *SubQuery) validateHistogram() error {
	if !s.Histogram() {
		return nil
	}
	if s.Aggregator != "none" && s.Aggregator != "sum" {
		return Bad("Only NONE or SUM aggregation function supported for histogram query")
	}
	if s.Downsample != nil && s.Downsample.Function != "sum" {
		return Bad("Only SUM downsampling aggregation supported for histogram query")
	}

	if n := len(s.Percentiles); n > maxPercentiles {
		return Bad("Too many percentiles in one sub query: %d, at most %d", n, maxPercentiles)
	}
	for _, p := range s.Percentiles {
		if !(p >= 0 && p <= 100) { // NaN is outside, too
			return Bad("Invalid percentile parameters: %s", javaFloat(p))
		}
	}
	return nil
}

// javaFloat formats a float with at least one digit after the point, as Java does.
func javaFloat(x float32) string {
	if x != x {
		return "NaN"
	}
	s := strconv.FormatFloat(float64(x), 'f', -1, 32)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// resolveDownsample applies the query's zone and calendar to the downsampling, and sets RunError for
// mistakes that OpenTSDB finds only when it runs the query.
func (q *Query) resolveDownsample(s *SubQuery) error {
	d := s.Downsample
	if d == nil {
		return nil
	}

	// An unknown zone is an error of fixed buckets too, which have no use for it.
	z := zone{name: "UTC"}
	if q.Timezone != "" {
		var ok bool
		if z, ok = lookUpZone(q.Timezone); !ok {
			return Bad("The timezone specification could not be found")
		}
	}

	d.Calendar = (d.Calendar || q.UseCalendar) && !d.All
	if d.Calendar {
		d.Zone = z.name
	}

	if err := splitInterval(d, s.DownsampleText); err != nil {
		s.RunError = RunFault("%s", err.Error())
	}
	if d.Fill == fillScalar {
		s.RunError = RunFault("unhandled fill policy")
	}
	return nil
}

// maxTime is the last time, in ms, that OpenTSDB accepts.
const maxTime = 9999999999999

// checkBounds returns an error for times that OpenTSDB's query object does not accept.
// Source: TsdbQuery.setStartTime, setEndTime.
func (q *Query) checkBounds() error {
	for _, t := range []int64{q.Start, q.End} {
		if t < 0 || t > maxTime {
			return RunFault("Invalid timestamp: %d", t)
		}
	}
	return nil
}

// String returns the query in one line, as the details of errors show it.
func (q *Query) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "query from %q to %q, timezone %q:", q.StartText, q.EndText, q.Timezone)
	for i := range q.Queries {
		s := &q.Queries[i]
		fmt.Fprintf(&b, " [%s", s.Aggregator)
		if s.DownsampleText != "" {
			fmt.Fprintf(&b, " downsample %s", s.DownsampleText)
		}
		if s.Rate {
			b.WriteString(" rate")
		}
		fmt.Fprintf(&b, " metric %q", s.Metric)
		if n := len(s.TSUIDs); n > 0 {
			fmt.Fprintf(&b, " or %d TSUIDs", n)
		}
		for j := range s.Filters {
			f := &s.Filters[j]
			fmt.Fprintf(&b, " %s=%s(%s)", f.TagK, f.Type, f.Text)
		}
		b.WriteString("]")
	}
	return b.String()
}
