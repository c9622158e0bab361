package query

import "cmp"

// Echo returns sub-query i as showQuery prints it, for encoding/json.
// Source: HttpJsonSerializer, TSSubQuery's getters.
func (q *Query) Echo(i int) any { return q.Queries[i].echo() }

// EchoAll returns the whole query as /api/stats/query prints it, for encoding/json.
// Source: TSQuery's getters.
func (q *Query) EchoAll() any {
	subs := make([]echo, len(q.Queries))
	for i := range q.Queries {
		subs[i] = q.Queries[i].echo()
	}
	return map[string]any{
		"start": q.StartText, "end": nullable(q.EndText), "timezone": nullable(q.Timezone), "options": nil,
		"padding": q.Padding,
		"queries": subs, "delete": q.Delete, "noAnnotations": q.NoAnnotations, "globalAnnotations": q.GlobalAnnotations,
		"showTSUIDs": q.ShowTSUIDs, "msResolution": q.MSResolution, "showQuery": q.ShowQuery, "showStats": q.ShowStats,
		"showSummary": q.ShowSummary, "useCalendar": q.UseCalendar,
		"overrideByteLimit": q.OverrideByteLimit, "overrideDataPointLimit": q.OverrideDataPointLimit,
	}
}

// echo is a sub-query with OpenTSDB's field names, in its order.
type echo struct {
	Aggregator           string            `json:"aggregator"`
	Metric               *string           `json:"metric"`
	TSUIDs               []string          `json:"tsuids"`
	Downsample           *string           `json:"downsample"`
	Rate                 bool              `json:"rate"`
	Filters              []echoFilter      `json:"filters"`
	Percentiles          echoFloats        `json:"percentiles"`
	Index                int               `json:"index"`
	RateOptions          *echoRate         `json:"rateOptions"`
	FilterTagKs          [][]byte          `json:"filterTagKs"` // base64
	ExplicitTags         bool              `json:"explicitTags"`
	UseFuzzyFilter       bool              `json:"useFuzzyFilter"`
	PreAggregate         bool              `json:"preAggregate"`
	RollupUsage          *string           `json:"rollupUsage"`
	RollupTable          string            `json:"rollupTable"`
	ShowHistogramBuckets bool              `json:"showHistogramBuckets"`
	UseMultiGets         bool              `json:"useMultiGets"`
	Tags                 map[string]string `json:"tags"`
	HistogramQuery       bool              `json:"histogramQuery"`
}

type echoFilter struct {
	TagK    string `json:"tagk"`
	Filter  string `json:"filter"`
	GroupBy bool   `json:"group_by"`
	Type    string `json:"type"`
}

type echoRate struct {
	Counter    bool  `json:"counter"`
	CounterMax int64 `json:"counterMax"`
	ResetValue int64 `json:"resetValue"`
	DropResets bool  `json:"dropResets"`
}

// echo returns the sub-query as OpenTSDB prints it. The map of tags has the group-by
// filters alone.
func (s *SubQuery) echo() echo {
	e := echo{
		Aggregator:           s.Aggregator,
		Metric:               nullable(s.Metric),
		TSUIDs:               s.TSUIDs,
		Downsample:           nullable(s.DownsampleText),
		Rate:                 s.Rate,
		Filters:              []echoFilter{},
		Percentiles:          s.Percentiles,
		Index:                s.Index,
		ExplicitTags:         s.ExplicitTags,
		UseFuzzyFilter:       s.UseFuzzyFilter,
		PreAggregate:         s.PreAggregate,
		RollupUsage:          nullable(s.RollupUsage),
		RollupTable:          cmp.Or(s.RollupTable, "raw"),
		ShowHistogramBuckets: s.ShowHistogramBuckets,
		UseMultiGets:         s.UseMultiGets,
		Tags:                 map[string]string{},
		HistogramQuery:       s.Histogram(),
	}

	if r := s.RateOptions; r != nil {
		e.RateOptions = &echoRate{r.Counter, r.CounterMax, r.ResetValue, r.DropResets}
	}

	// Without filters OpenTSDB prints null.
	if len(s.Filters) > 0 {
		e.FilterTagKs = [][]byte{}
	}
	for _, k := range s.FilterTagKs {
		e.FilterTagKs = append(e.FilterTagKs, k)
	}

	for i := range s.Filters {
		f := &s.Filters[i]
		e.Filters = append(e.Filters, echoFilter{f.TagK, f.Text, f.GroupBy, f.Type})
		if f.GroupBy {
			e.Tags[f.TagK] = f.Type + "(" + f.Text + ")"
		}
	}
	return e
}

// nullable returns nil for "".
func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// echoFloats are floats as Java writes them, 50.0; nil is null.
type echoFloats []float32

// MarshalJSON writes the list.
func (f echoFloats) MarshalJSON() ([]byte, error) {
	if f == nil {
		return []byte("null"), nil
	}
	out := []byte{'['}
	for i, x := range f {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, javaFloat(x)...)
	}
	return append(out, ']'), nil
}
