package differential

import (
	"bytes"
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Query is one question to /api/query. Its zero options ask for nothing.
type Query struct {
	Start, End string // as written; digits alone are numbers in a POST
	Timezone   string // POST only
	Subs       []Sub

	MS, Arrays, ShowTSUIDs, ShowQuery bool
	NoAnnotations, GlobalAnnotations  bool
	UseCalendar, AsGET                bool // UseCalendar: POST only
}

// Sub is a sub-query.
type Sub struct {
	Aggregator string
	Metric     string
	TSUIDs     []string // instead of Metric
	Downsample string
	Rate       bool
	Options    *RateOptions
	Filters    []Filter
	// AsTags writes the filters as a tags map in a POST; they group then.
	AsTags       bool
	ExplicitTags bool

	// Of rollups, and of histograms.
	RollupUsage  string
	PreAggregate bool
	Percentiles  []float64
	ShowBuckets  bool
}

// RateOptions are those of a rate; 0 leaves a number out.
type RateOptions struct {
	Counter    bool  `json:"counter,omitempty"`
	CounterMax int64 `json:"counterMax,omitempty"`
	ResetValue int64 `json:"resetValue,omitempty"`
	DropResets bool  `json:"dropResets,omitempty"`
}

// Filter is a tag filter.
type Filter struct {
	Type    string `json:"type"`
	TagK    string `json:"tagk"`
	Text    string `json:"filter"`
	GroupBy bool   `json:"groupBy"`
}

// Short writes a filter as the value of a tags map or of a tag in braces.
func (f Filter) Short() string {
	switch {
	case f.Type == "literal_or", f.Type == "wildcard" && f.Text == "*":
		return f.Text
	}
	return f.Type + "(" + f.Text + ")"
}

// Listed counts the values that the filters list by name.
func (s Sub) Listed() (n int) {
	for _, f := range s.Filters {
		if f.Type == "literal_or" {
			n += strings.Count(f.Text, "|") + 1
		}
	}
	return n
}

type subJSON struct {
	Aggregator   string            `json:"aggregator"`
	Metric       string            `json:"metric,omitempty"`
	TSUIDs       []string          `json:"tsuids,omitempty"`
	Downsample   string            `json:"downsample,omitempty"`
	Rate         bool              `json:"rate,omitempty"`
	RateOptions  *RateOptions      `json:"rateOptions,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
	Filters      []Filter          `json:"filters,omitempty"`
	ExplicitTags bool              `json:"explicitTags,omitempty"`
	RollupUsage  string            `json:"rollupUsage,omitempty"`
	PreAggregate bool              `json:"preAggregate,omitempty"`
	Percentiles  []float64         `json:"percentiles,omitempty"`
	ShowBuckets  bool              `json:"showHistogramBuckets,omitempty"`
}

type queryJSON struct {
	Start             json.RawMessage `json:"start"`
	End               json.RawMessage `json:"end,omitempty"`
	Timezone          string          `json:"timezone,omitempty"`
	Queries           []subJSON       `json:"queries"`
	MSResolution      bool            `json:"msResolution,omitempty"`
	ShowTSUIDs        bool            `json:"showTSUIDs,omitempty"`
	ShowQuery         bool            `json:"showQuery,omitempty"`
	NoAnnotations     bool            `json:"noAnnotations,omitempty"`
	GlobalAnnotations bool            `json:"globalAnnotations,omitempty"`
	UseCalendar       bool            `json:"useCalendar,omitempty"`
}

// Body is the query as the body of a POST.
func (q Query) Body() string {
	j := queryJSON{
		Start: timeJSON(q.Start), End: timeJSON(q.End), Timezone: q.Timezone, MSResolution: q.MS,
		ShowTSUIDs: q.ShowTSUIDs, ShowQuery: q.ShowQuery, NoAnnotations: q.NoAnnotations,
		GlobalAnnotations: q.GlobalAnnotations, UseCalendar: q.UseCalendar,
	}
	for _, s := range q.Subs {
		j.Queries = append(j.Queries, s.json())
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(j); err != nil {
		panic(err) // nothing in it can fail
	}
	return strings.TrimSpace(b.String())
}

func timeJSON(text string) json.RawMessage {
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return json.RawMessage(strconv.Quote(text))
	}
	return json.RawMessage(text)
}

func (s Sub) json() subJSON {
	j := subJSON{
		Aggregator:   s.Aggregator,
		Metric:       s.Metric,
		TSUIDs:       s.TSUIDs,
		Downsample:   s.Downsample,
		Rate:         s.Rate,
		RateOptions:  s.Options,
		Filters:      s.Filters,
		ExplicitTags: s.ExplicitTags,
		RollupUsage:  s.RollupUsage,
		PreAggregate: s.PreAggregate,
		Percentiles:  s.Percentiles,
		ShowBuckets:  s.ShowBuckets,
	}
	if s.AsTags {
		j.Filters, j.Tags = nil, map[string]string{}
		for _, f := range s.Filters {
			j.Tags[f.TagK] = f.Short()
		}
	}
	return j
}

// Path is the path and parameters of the request: all of a GET, and what of a
// POST cannot stand in its body.
func (q Query) Path() string {
	if !q.AsGET {
		if q.Arrays {
			return "/api/query?arrays"
		}
		return "/api/query"
	}
	parameters := []string{"start=" + url.QueryEscape(q.Start)}
	if q.End != "" {
		parameters = append(parameters, "end="+url.QueryEscape(q.End))
	}
	for _, flag := range []struct {
		on   bool
		name string
	}{
		{q.MS, "ms"}, {q.Arrays, "arrays"}, {q.ShowTSUIDs, "show_tsuids"}, {q.ShowQuery, "show_query"},
		{q.NoAnnotations, "no_annotations"}, {q.GlobalAnnotations, "global_annotations"},
	} {
		if flag.on {
			parameters = append(parameters, flag.name)
		}
	}
	for _, s := range q.Subs {
		parameters = append(parameters, s.parameter())
	}
	return "/api/query?" + strings.Join(parameters, "&")
}

// parameter writes m=AGG:DOWNSAMPLE:RATE:METRIC{group}{other}, or tsuid=.
func (s Sub) parameter() string {
	parts := []string{s.Aggregator}
	if s.Downsample != "" {
		parts = append(parts, s.Downsample)
	}
	if s.Rate {
		parts = append(parts, "rate"+s.Options.braces())
	}
	// Only a POST can have filters next to TSUIDs, and none of the options below is drawn with TSUIDs.
	if len(s.TSUIDs) > 0 {
		return "tsuid=" + url.QueryEscape(strings.Join(append(parts, strings.Join(s.TSUIDs, ",")), ":"))
	}
	if s.ExplicitTags {
		parts = append(parts, "explicit_tags")
	}
	if s.PreAggregate {
		parts = append(parts, "pre-agg")
	}
	if s.RollupUsage != "" {
		parts = append(parts, strings.ToLower(s.RollupUsage))
	}
	if len(s.Percentiles) > 0 {
		list, err := json.Marshal(s.Percentiles)
		if err != nil {
			panic(err) // they are numbers
		}
		parts = append(parts, "percentiles"+string(list))
	}
	if s.ShowBuckets {
		parts = append(parts, "show-histogram-buckets")
	}
	// The first braces hold filters that group: before others they must stand, even empty.
	metric := s.Metric
	if group, other := s.braces(true), s.braces(false); other != "{}" {
		metric += group + other
	} else if group != "{}" {
		metric += group
	}
	return "m=" + url.QueryEscape(strings.Join(append(parts, metric), ":"))
}

func (s Sub) braces(group bool) string {
	var tags []string
	for _, f := range s.Filters {
		if f.GroupBy == group {
			tags = append(tags, f.TagK+"="+f.Short())
		}
	}
	return "{" + strings.Join(tags, ",") + "}"
}

func (o *RateOptions) braces() string {
	if o == nil || !o.Counter {
		return ""
	}
	words := []string{"counter"}
	if o.DropResets {
		words[0] = "dropcounter"
	}
	if most := o.CounterMax; most != 0 || o.ResetValue != 0 {
		if most == 0 {
			most = math.MaxInt64 // the default of a POST that leaves it out
		}
		words = append(words, strconv.FormatInt(most, 10))
	}
	if o.ResetValue != 0 {
		words = append(words, strconv.FormatInt(o.ResetValue, 10))
	}
	return "{" + strings.Join(words, ",") + "}"
}

// Curl is a command line that asks the server at base the query.
func (q Query) Curl(base string) string {
	if q.AsGET {
		return "curl -g '" + base + q.Path() + "'"
	}
	return "curl -g -d '" + strings.ReplaceAll(q.Body(), "'", `'\''`) + "' '" + base + q.Path() + "'"
}

// Clone is a copy that shares nothing.
func (q Query) Clone() Query {
	q.Subs = slices.Clone(q.Subs)
	for i := range q.Subs {
		s := &q.Subs[i]
		s.TSUIDs = slices.Clone(s.TSUIDs)
		s.Filters = slices.Clone(s.Filters)
		s.Percentiles = slices.Clone(s.Percentiles)
		if s.Options != nil {
			o := *s.Options
			s.Options = &o
		}
	}
	return q
}
