package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"downpour/encoding/scanplan"
	"downpour/gateway/jackson"
)

// JSON parses the body of POST /api/query. What follows the first JSON value is ignored.
// All errors are *Error.
// Source: HttpJsonSerializer.parseQueryV1, TSQuery.validateAndSetQuery.
func (p Parser) JSON(body []byte) (*Query, error) {
	switch {
	case len(body) == 0:
		e := Bad("Missing message content")
		e.Details = "Supply valid JSON formatted data in the body of your request"
		return nil, e
	case len(body) > MaxBody:
		return nil, TooMuch("Query body of %d bytes, at most %d", len(body), MaxBody)
	}

	q, err := readQuery(jackson.NewReader(body), p.MaxSubQueries())
	if err != nil {
		return nil, bodyError(err)
	}
	if q == nil || q.Queries == nil {
		return nil, nullPointer()
	}
	q.setFix(p.Fix)
	return p.complete(q)
}

// bodyError returns the *Error for a mistake in the body.
func bodyError(err error) error {
	var known *Error
	var unsupported *UnsupportedError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &unsupported):
		// OpenTSDB would run it. The message says why we do not, because some clients do
		// not show details.
		e := Bad("%s", unsupported.Error())
		e.Details = err.Error()
		return e
	}
	return unreadable(err)
}

// readQuery reads the object of a query; nil for null.
func readQuery(r *jackson.Reader, limit int) (*Query, error) {
	t, err := r.Next()
	if err != nil || t.Kind == jackson.Null {
		return nil, err
	}

	q := new(Query)
	flags := map[string]*bool{
		"padding": &q.Padding, "noAnnotations": &q.NoAnnotations, "globalAnnotations": &q.GlobalAnnotations,
		"showTSUIDs": &q.ShowTSUIDs, "msResolution": &q.MSResolution, "showQuery": &q.ShowQuery,
		"showStats": &q.ShowStats, "showSummary": &q.ShowSummary, "delete": &q.Delete,
		"useCalendar": &q.UseCalendar, "overrideByteLimit": &q.OverrideByteLimit,
		"overrideDataPointLimit": &q.OverrideDataPointLimit,
	}
	texts := map[string]*string{"start": &q.StartText, "end": &q.EndText, "timezone": &q.Timezone}

	err = r.Each(t, func(key string, v jackson.Token) (err error) {
		switch {
		case flags[key] != nil:
			return field(flags[key], jackson.Token.AsBool, v)
		case texts[key] != nil:
			return field(texts[key], jackson.Token.AsText, v)
		case key == "queries":
			q.Queries, err = readSubQueries(r, v, limit)
			return err
		case key == "options":
			return readOptions(r, v)
		}
		return r.Skip(v)
	})
	return q, err
}

// readOptions checks the form of the options of graphs, which are not used.
func readOptions(r *jackson.Reader, t jackson.Token) error {
	if t.Kind == jackson.Null {
		return nil
	}
	return r.Each(t, func(_ string, v jackson.Token) error {
		if v.Kind == jackson.Null {
			return nil
		}
		return r.EachElement(v, func(v jackson.Token) error { _, err := v.AsText(); return err })
	})
}

// readSubQueries reads "queries", at most limit of them. null is no list at all.
func readSubQueries(r *jackson.Reader, t jackson.Token, limit int) ([]SubQuery, error) {
	if t.Kind == jackson.Null {
		return nil, nil
	}
	subs := []SubQuery{}
	err := r.EachElement(t, func(v jackson.Token) error {
		if len(subs) == limit {
			return tooManySubQueries("", limit)
		}
		// The steps of regular expressions are counted after each sub-query, because reading one
		// compiles them: so hardly more is compiled than is allowed.
		s, err := readSubQuery(r, v)
		subs = append(subs, s)
		if err == nil {
			err = checkSteps(subs)
		}
		return err
	})
	return subs, err
}

func newSubQuery() SubQuery { return SubQuery{UseFuzzyFilter: true, UseMultiGets: true} }

// readSubQuery reads one element of "queries". Of "filters" and "tags" the later one
// counts: each replaces what the other has set. Source: TSSubQuery.
func readSubQuery(r *jackson.Reader, t jackson.Token) (SubQuery, error) {
	s := newSubQuery()
	var index int32 // checked and not used
	flags := map[string]*bool{
		"rate": &s.Rate, "explicitTags": &s.ExplicitTags, "useFuzzyFilter": &s.UseFuzzyFilter,
		"preAggregate": &s.PreAggregate, "showHistogramBuckets": &s.ShowHistogramBuckets,
		"useMultiGets": &s.UseMultiGets,
	}
	texts := map[string]*string{"aggregator": &s.Aggregator, "metric": &s.Metric, "downsample": &s.DownsampleText}

	err := r.Each(t, func(key string, v jackson.Token) (err error) {
		switch {
		case flags[key] != nil:
			return field(flags[key], jackson.Token.AsBool, v)
		case texts[key] != nil:
			return field(texts[key], jackson.Token.AsText, v)
		}

		switch key {
		case "index":
			return field(&index, jackson.Token.AsInt, v)
		case "tsuids":
			s.TSUIDs, err = readList(r, v, jackson.Token.AsText)
		case "percentiles":
			s.Percentiles, err = readList(r, v, toPercentile)
			slices.Sort(s.Percentiles)
		case "rollupUsage":
			s.RollupUsage, err = readRollupUsage(v)
		case "rateOptions":
			s.RateOptions, err = readRateOptions(r, v)
		case "filters":
			s.Filters, err = readFilters(r, v)
		case "tags":
			// OpenTSDB's setTags fails on null tags, whose size it asks for; where it has a list of
			// filters already, it clears that instead.
			if v.Kind == jackson.Null && s.Filters == nil {
				return errors.New("null where an object is wanted")
			}
			s.Filters, err = readTags(r, v)
		default:
			err = r.Skip(v)
		}
		return err
	})
	return s, err
}

// readList reads a list of scalars. null is nil, which showQuery prints as null again.
func readList[T any](r *jackson.Reader, t jackson.Token, read func(jackson.Token) (T, error)) (out []T, err error) {
	if t.Kind == jackson.Null {
		return nil, nil
	}
	out = []T{}
	err = r.EachElement(t, func(v jackson.Token) error {
		x, err := read(v)
		out = append(out, x)
		return err
	})
	return out, err
}

// rollupUsages are the values of rollupUsage. Source: TsdbQuery.ROLLUP_USAGE.
var rollupUsages = []string{RollupRaw, rollupNoFallback, RollupFallback, RollupFallbackRaw}

func readRollupUsage(t jackson.Token) (string, error) {
	text, err := t.AsText()
	if err != nil {
		return "", err
	}
	return ParseRollupUsage(text), nil
}

// ParseRollupUsage returns a rollup usage in upper case; an unknown one is the default.
func ParseRollupUsage(text string) string {
	for _, u := range rollupUsages {
		if strings.EqualFold(u, text) {
			return u
		}
	}
	return rollupNoFallback
}

// readRateOptions reads rate options. This is the only object in which an unknown key is
// an error.
func readRateOptions(r *jackson.Reader, t jackson.Token) (*scanplan.Rate, error) {
	if t.Kind == jackson.Null {
		return nil, nil
	}
	o := defaultRate()
	return &o, r.Each(t, func(key string, v jackson.Token) error {
		switch key {
		case "counter", "isCounter":
			return field(&o.Counter, jackson.Token.AsBool, v)
		case "dropResets":
			return field(&o.DropResets, jackson.Token.AsBool, v)
		case "counterMax":
			return field(&o.CounterMax, jackson.Token.AsLong, v)
		case "resetValue":
			return field(&o.ResetValue, jackson.Token.AsLong, v)
		}
		return fmt.Errorf("unknown rate option, want counter, counterMax, resetValue or dropResets")
	})
}

// readFilters reads "filters". null clears the list to nil: "tags" of null is an error after
// that, and none after an empty list, see readSubQuery.
func readFilters(r *jackson.Reader, t jackson.Token) (out []Filter, err error) {
	if t.Kind == jackson.Null {
		return nil, nil
	}
	out = []Filter{}
	err = r.EachElement(t, func(v jackson.Token) error {
		if len(out) == MaxFilters {
			return TooMuch("Too many filters in one sub query, at most %d", MaxFilters)
		}
		f, err := readFilter(r, v)
		out = append(out, f)
		// Steps are those of regular expressions, which reading a filter compiles.
		if err == nil && stepsOf(out) > MaxSteps {
			err = tooManySteps()
		}
		return err
	})
	return out, err
}

// readFilter reads one filter. Its group-by flag has two spellings.
func readFilter(r *jackson.Reader, t jackson.Token) (Filter, error) {
	var kind, tagk, text string
	var groupBy bool
	err := r.Each(t, func(key string, v jackson.Token) error {
		switch key {
		case "type":
			return field(&kind, jackson.Token.AsText, v)
		case "tagk":
			return field(&tagk, jackson.Token.AsText, v)
		case "filter":
			return field(&text, jackson.Token.AsText, v)
		case "groupBy", "group_by":
			return field(&groupBy, jackson.Token.AsBool, v)
		}
		return r.Skip(v)
	})
	if err != nil {
		return Filter{}, err
	}
	return NewFilter(kind, tagk, text, groupBy)
}

// readTags reads the older map of tags, whose entries are group-by filters. If a key comes
// twice, its later value counts, in the place of the earlier one.
func readTags(r *jackson.Reader, t jackson.Token) ([]Filter, error) {
	if t.Kind == jackson.Null { // readSubQuery lets null through only where there is a list to clear
		return []Filter{}, nil
	}
	var keys []string
	values := map[string]string{}
	err := r.Each(t, func(key string, v jackson.Token) error {
		value, err := v.AsText()
		if _, there := values[key]; !there {
			keys = append(keys, key)
		}
		values[key] = value
		return err
	})
	if err != nil {
		return nil, err
	}

	if len(keys) > MaxFilters {
		return nil, TooMuch("Too many filters in one sub query, at most %d", MaxFilters)
	}

	filters := []Filter{}
	for _, k := range keys {
		if filters, err = addShorthand(filters, k, values[k], groupingBraces); err != nil {
			return nil, err
		}
		// A value may be regexp(…), which is compiled by now.
		if stepsOf(filters) > MaxSteps {
			return nil, tooManySteps()
		}
	}
	return filters, nil
}

// toPercentile converts a percentile. Text may be a flag or null, a percentile may not.
func toPercentile(t jackson.Token) (float32, error) {
	if t.Kind == jackson.Null || t.Kind == jackson.Bool {
		return 0, fmt.Errorf("%s where a number is wanted", t)
	}
	return t.AsFloat()
}

// field converts a scalar and stores it in place.
func field[T any](place *T, read func(jackson.Token) (T, error), t jackson.Token) (err error) {
	*place, err = read(t)
	return err
}
