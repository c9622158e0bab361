package exp

import (
	"encoding/json"
	"math"

	"downpour/encoding"
	"downpour/gateway/query"
)

// MarshalJSON writes the request as the answer repeats it: every field of OpenTSDB, null
// where it was not given, and those of our own that were given. Source: the getters of net.opentsdb.query.pojo.
func (r *Request) MarshalJSON() ([]byte, error) {
	return json.Marshal(echoRequest{
		Name: r.Name, Time: r.Time.echo(),
		Filters: each(r.Filters, (*Filter).echo),
		Metrics: each(r.Metrics, func(m *Metric) echoMetric {
			return echoMetric{m.Metric, m.ID, m.Filter, m.Aggregator, m.TimeOffset, m.Fill}
		}),
		Expressions: each(r.Expressions, func(e *Expression) echoExpression {
			return echoExpression{e.ID, e.Expr, echoJoin(e.Join), e.Fill}
		}),
		Outputs: each(r.Outputs, func(o *OutputRef) echoOutput { return echoOutput(*o) }),
	})
}

// each converts the elements of a list; nil, which becomes null, stays nil.
func each[From, To any](in []From, convert func(*From) To) []To {
	if in == nil {
		return nil
	}
	out := make([]To, len(in))
	for i := range in {
		out[i] = convert(&in[i])
	}
	return out
}

type echoRequest struct {
	Name        *string          `json:"name"`
	Time        echoTime         `json:"time"`
	Filters     []echoFilter     `json:"filters"`
	Metrics     []echoMetric     `json:"metrics"`
	Expressions []echoExpression `json:"expressions"`
	Outputs     []echoOutput     `json:"outputs"`
}

type echoTime struct {
	Start       *string          `json:"start"`
	End         *string          `json:"end"`
	Timezone    *string          `json:"timezone"`
	Downsampler *echoDownsampler `json:"downsampler"`
	Aggregator  *string          `json:"aggregator"`
	Rate        bool             `json:"rate"`
	RollupUsage *string          `json:"rollupUsage,omitempty"`
}

type echoDownsampler struct {
	Interval   *string `json:"interval"`
	Aggregator *string `json:"aggregator"`
	Fill       *Fill   `json:"fillPolicy"`
}

type echoFilter struct {
	ID           *string    `json:"id"`
	Tags         []echoTags `json:"tags"`
	ExplicitTags bool       `json:"explicitTags"`
}

type echoTags struct {
	TagK    string `json:"tagk"`
	Filter  string `json:"filter"`
	GroupBy bool   `json:"group_by"`
	Type    string `json:"type"`
}

type echoMetric struct {
	Metric     *string `json:"metric"`
	ID         *string `json:"id"`
	Filter     *string `json:"filter"`
	Aggregator *string `json:"aggregator"`
	TimeOffset *string `json:"timeOffset"`
	Fill       *Fill   `json:"fillPolicy"`
}

type echoExpression struct {
	ID   *string  `json:"id"`
	Expr *string  `json:"expr"`
	Join echoJoin `json:"join"`
	Fill *Fill    `json:"fillPolicy"`
}

type echoJoin struct {
	Operator       string `json:"operator"`
	UseQueryTags   bool   `json:"useQueryTags"`
	IncludeAggTags bool   `json:"includeAggTags"`
	UseGroupTags   bool   `json:"useGroupTags,omitempty"`
}

type echoOutput struct {
	ID    *string `json:"id"`
	Alias *string `json:"alias"`
}

func (t *Time) echo() echoTime {
	e := echoTime{
		Start:       t.Start,
		End:         t.End,
		Timezone:    t.Timezone,
		Aggregator:  t.Aggregator,
		Rate:        t.Rate,
		RollupUsage: t.RollupUsage,
	}
	if d := t.Downsampler; d != nil {
		e.Downsampler = &echoDownsampler{d.Interval, d.Aggregator, d.Fill}
	}
	return e
}

func (f *Filter) echo() echoFilter {
	return echoFilter{ID: f.ID, ExplicitTags: f.ExplicitTags, Tags: each(f.Tags, echoCondition)}
}

func echoCondition(f *query.Filter) echoTags {
	return echoTags{TagK: f.TagK, Filter: f.Text, GroupBy: f.GroupBy, Type: f.Type}
}

// MarshalJSON writes the policy with its value, NaN as a string.
func (f *Fill) MarshalJSON() ([]byte, error) {
	if math.IsNaN(f.Value) {
		return json.Marshal(map[string]any{"policy": f.Policy, "value": "NaN"})
	}
	return json.Marshal(map[string]any{"policy": f.Policy, "value": encodedDouble(f.Value)})
}

// encodedDouble is a double that keeps its point: 1 is written as 1.0.
type encodedDouble float64

// MarshalJSON writes the double as Java does.
func (d encodedDouble) MarshalJSON() ([]byte, error) {
	return encoding.AppendJavaDouble(nil, float64(d)), nil
}
