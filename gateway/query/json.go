package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"downpour/encoding/scanplan"
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

	q, err := readQuery(newJSONReader(body), p.MaxSubQueries())
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
func readQuery(r *jsonReader, limit int) (*Query, error) {
	t, err := r.next()
	if err != nil || t == nil {
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

	err = r.object(t, func(key string, v json.Token) (err error) {
		switch {
		case flags[key] != nil:
			return field(flags[key], toBool, v)
		case texts[key] != nil:
			return field(texts[key], toString, v)
		case key == "queries":
			q.Queries, err = readSubQueries(r, v, limit)
			return err
		case key == "options":
			return readOptions(r, v)
		}
		return r.skip(v)
	})
	return q, err
}

// readOptions checks the form of the options of graphs, which are not used.
func readOptions(r *jsonReader, t json.Token) error {
	if t == nil {
		return nil
	}
	return r.object(t, func(_ string, v json.Token) error {
		if v == nil {
			return nil
		}
		return r.list(v, func(v json.Token) error { _, err := toString(v); return err })
	})
}

// readSubQueries reads "queries", at most limit of them. null is no list at all.
func readSubQueries(r *jsonReader, t json.Token, limit int) ([]SubQuery, error) {
	if t == nil {
		return nil, nil
	}
	subs := []SubQuery{}
	err := r.list(t, func(v json.Token) error {
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
func readSubQuery(r *jsonReader, t json.Token) (SubQuery, error) {
	s := newSubQuery()
	var index int64 // checked and not used
	flags := map[string]*bool{
		"rate": &s.Rate, "explicitTags": &s.ExplicitTags, "useFuzzyFilter": &s.UseFuzzyFilter,
		"preAggregate": &s.PreAggregate, "showHistogramBuckets": &s.ShowHistogramBuckets, "useMultiGets": &s.UseMultiGets,
	}
	texts := map[string]*string{"aggregator": &s.Aggregator, "metric": &s.Metric, "downsample": &s.DownsampleText}

	err := r.object(t, func(key string, v json.Token) (err error) {
		switch {
		case flags[key] != nil:
			return field(flags[key], toBool, v)
		case texts[key] != nil:
			return field(texts[key], toString, v)
		}

		switch key {
		case "index":
			return field(&index, toInt, v)
		case "tsuids":
			s.TSUIDs, err = readList(r, v, toString)
		case "percentiles":
			s.Percentiles, err = readList(r, v, toFloat)
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
			if v == nil && s.Filters == nil {
				return errors.New("null where an object is wanted")
			}
			s.Filters, err = readTags(r, v)
		default:
			err = r.skip(v)
		}
		return err
	})
	return s, err
}

// readList reads a list of scalars. null is nil, which showQuery prints as null again.
func readList[T any](r *jsonReader, t json.Token, read func(json.Token) (T, error)) (out []T, err error) {
	if t == nil {
		return nil, nil
	}
	out = []T{}
	err = r.list(t, func(v json.Token) error {
		x, err := read(v)
		out = append(out, x)
		return err
	})
	return out, err
}

// rollupUsages are the values of rollupUsage. Source: TsdbQuery.ROLLUP_USAGE.
var rollupUsages = []string{RollupRaw, rollupNoFallback, RollupFallback, RollupFallbackRaw}

func readRollupUsage(t json.Token) (string, error) {
	text, err := toString(t)
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
func readRateOptions(r *jsonReader, t json.Token) (*scanplan.Rate, error) {
	if t == nil {
		return nil, nil
	}
	o := defaultRate()
	return &o, r.object(t, func(key string, v json.Token) error {
		switch key {
		case "counter", "isCounter":
			return field(&o.Counter, toBool, v)
		case "dropResets":
			return field(&o.DropResets, toBool, v)
		case "counterMax":
			return field(&o.CounterMax, toLong, v)
		case "resetValue":
			return field(&o.ResetValue, toLong, v)
		}
		return fmt.Errorf("unknown rate option, want counter, counterMax, resetValue or dropResets")
	})
}

// readFilters reads "filters". null clears the list to nil: "tags" of null is an error after
// that, and none after an empty list, see readSubQuery.
func readFilters(r *jsonReader, t json.Token) (out []Filter, err error) {
	if t == nil {
		return nil, nil
	}
	out = []Filter{}
	err = r.list(t, func(v json.Token) error {
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
func readFilter(r *jsonReader, t json.Token) (Filter, error) {
	var kind, tagk, text string
	var groupBy bool
	err := r.object(t, func(key string, v json.Token) error {
		switch key {
		case "type":
			return field(&kind, toString, v)
		case "tagk":
			return field(&tagk, toString, v)
		case "filter":
			return field(&text, toString, v)
		case "groupBy", "group_by":
			return field(&groupBy, toBool, v)
		}
		return r.skip(v)
	})
	if err != nil {
		return Filter{}, err
	}
	return NewFilter(kind, tagk, text, groupBy)
}

// readTags reads the older map of tags, whose entries are group-by filters. If a key comes
// twice, its later value counts, in the place of the earlier one.
func readTags(r *jsonReader, t json.Token) ([]Filter, error) {
	if t == nil { // readSubQuery lets null through only where there is a list to clear
		return []Filter{}, nil
	}
	var keys []string
	values := map[string]string{}
	err := r.object(t, func(key string, v json.Token) error {
		value, err := toString(v)
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
