package differential

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// Exp is a request of /api/query/exp.
type Exp struct {
	Time        ExpTime         `json:"time"`
	Filters     []ExpFilter     `json:"filters,omitempty"`
	Metrics     []ExpMetric     `json:"metrics"`
	Expressions []ExpExpression `json:"expressions,omitempty"`
	Outputs     []ExpOutput     `json:"outputs,omitempty"`
}

// ExpTime is what all metrics of a request share.
type ExpTime struct {
	Start       json.RawMessage `json:"start"`
	End         json.RawMessage `json:"end"`
	Timezone    string          `json:"timezone,omitempty"`
	Aggregator  string          `json:"aggregator"`
	Downsampler *ExpDownsampler `json:"downsampler,omitempty"`
	Rate        bool            `json:"rate,omitempty"`
}

// ExpDownsampler is a downsampling without its fill policy, which has no effect.
type ExpDownsampler struct {
	Interval   string `json:"interval"`
	Aggregator string `json:"aggregator"`
}

// ExpFilter are filters that metrics share.
type ExpFilter struct {
	ID           string   `json:"id"`
	Tags         []Filter `json:"tags"`
	ExplicitTags bool     `json:"explicitTags,omitempty"`
}

// ExpMetric is a variable whose values are a metric's.
type ExpMetric struct {
	ID         string   `json:"id"`
	Metric     string   `json:"metric"`
	Filter     string   `json:"filter,omitempty"`
	Aggregator string   `json:"aggregator,omitempty"`
	Fill       *ExpFill `json:"fillPolicy,omitempty"`
}

// ExpExpression is a variable whose values are computed.
type ExpExpression struct {
	ID   string   `json:"id"`
	Expr string   `json:"expr"`
	Join *ExpJoin `json:"join,omitempty"`
	Fill *ExpFill `json:"fillPolicy,omitempty"`
}

// ExpJoin says which series of variables belong together.
type ExpJoin struct {
	Operator       string `json:"operator"`
	UseQueryTags   bool   `json:"useQueryTags"`
	IncludeAggTags bool   `json:"includeAggTags"`
}

// ExpFill is a fill policy. A value belongs to the policy scalar alone.
type ExpFill struct {
	Policy string   `json:"policy"`
	Value  *float64 `json:"value,omitempty"`
}

// ExpOutput names a variable whose values are answered.
type ExpOutput struct {
	ID    string `json:"id"`
	Alias string `json:"alias,omitempty"`
}

// Body is the request as the body of a POST.
func (e Exp) Body() string {
	body, err := json.Marshal(e)
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return string(body)
}

// Listed counts the values that a filter lists by name.
func (f ExpFilter) Listed() int { return Sub{Filters: f.Tags}.Listed() }

// RandomExp draws a request about the data.
func RandomExp(r *rand.Rand, d *Data) Exp {
	e := Exp{Time: ExpTime{Aggregator: randomExpAggregator(r), Rate: r.IntN(4) == 0}}
	if r.IntN(3) == 0 {
		e.Time.Timezone = pick(r, zones)
	}
	of := Query{Subs: []Sub{{Metric: randomMetric(r, d)}}}
	randomTimes(r, d, &of)
	e.Time.Start, e.Time.End = timeJSON(of.Start), timeJSON(of.End)
	if interval, rest, ok := strings.Cut(randomDownsample(r, of.Subs[0].slow(d), of.span()), "-"); ok {
		function, _, _ := strings.Cut(rest, "-")
		// Calendar intervals and all are refused.
		if fixed := strings.TrimSuffix(interval, "c"); !strings.HasSuffix(fixed, "all") || r.IntN(20) == 0 {
			e.Time.Downsampler = &ExpDownsampler{fixed, inLowerCase(function)}
		}
	}

	for i := range r.IntN(3) {
		// A list without filters is empty rather than nil, which JSON would write as null.
		e.Filters = append(e.Filters, ExpFilter{
			ID:           fmt.Sprintf("f%d", i),
			Tags:         append([]Filter{}, randomFilters(r, d, of.Subs[0].Metric)...),
			ExplicitTags: r.IntN(8) == 0,
		})
	}
	alignGroupBy(e.Filters)
	// Cpu is a variable that expressions cannot find: they need ids in lower case.
	for _, id := range []string{"a", "b2", pick(r, []string{"cpu", "cpu", "cpu", "Cpu"})}[:1+r.IntN(3)] {
		e.Metrics = append(e.Metrics, randomExpMetric(r, d, &e, id, of.Subs[0].Metric))
	}
	for i := range r.IntN(4) {
		e.Expressions = append(e.Expressions, randomExpExpression(r, &e, fmt.Sprintf("e%d", i)))
	}
	for range r.IntN(4) {
		o := ExpOutput{ID: pick(r, e.variables())}
		if r.IntN(3) == 0 {
			o.Alias = "alias of " + o.ID
		}
		e.Outputs = append(e.Outputs, o)
	}
	return e
}

// alignGroupBy makes filters group by a tag in all places or in none. To OpenTSDB two metrics are
// equal whose filters differ in that alone, and it gives one of them the groups of the other.
// Source: TSSubQuery.equals, TagVFilter.equals, QueryExecutor.QueriesCB.
func alignGroupBy(filters []ExpFilter) {
	groups := map[string]bool{}
	for _, f := range filters {
		for i := range f.Tags {
			t := &f.Tags[i]
			if by, ok := groups[t.TagK]; ok {
				t.GroupBy = by
			}
			groups[t.TagK] = t.GroupBy
		}
	}
}

func randomExpAggregator(r *rand.Rand) string { return inLowerCase(randomAggregator(r)) }

// inLowerCase replaces the aggregator whose name is not in lower case, by which alone
// expressions find it.
func inLowerCase(aggregator string) string {
	if aggregator == "squareSum" {
		return "sum"
	}
	return aggregator
}

// randomExpMetric takes the request's first metric more often than others, which may have
// no point in its time.
func randomExpMetric(r *rand.Rand, d *Data, e *Exp, id, first string) ExpMetric {
	m := ExpMetric{ID: id, Metric: first, Fill: randomFill(r)}
	if r.IntN(2) == 0 {
		m.Metric = randomMetric(r, d)
	}
	if len(e.Filters) > 0 && r.IntN(5) > 0 {
		m.Filter = pick(r, e.Filters).ID
	}
	if r.IntN(3) == 0 {
		m.Aggregator = randomExpAggregator(r)
	}
	return m
}

func randomExpExpression(r *rand.Rand, e *Exp, id string) ExpExpression {
	x := ExpExpression{ID: id, Expr: randomExpr(r, e.variables()), Fill: randomFill(r)}
	if r.IntN(3) > 0 {
		x.Join = &ExpJoin{
			Operator:       pick(r, []string{"union", "intersection", "INTERSECTION"}),
			UseQueryTags:   r.IntN(3) == 0,
			IncludeAggTags: r.IntN(2) == 0,
		}
	}
	return x
}

func randomFill(r *rand.Rand) *ExpFill {
	switch policy := pick(r, []string{"", "", "", "none", "nan", "null", "zero", "scalar", "Scalar"}); policy {
	case "":
		return nil
	case "scalar", "Scalar":
		value := pick(r, []float64{0, 1, -2.5, 100})
		return &ExpFill{policy, &value}
	default:
		return &ExpFill{Policy: policy}
	}
}

// variables are the ids of all metrics and expressions.
func (e Exp) variables() (ids []string) {
	for _, m := range e.Metrics {
		ids = append(ids, m.ID)
	}
	for _, x := range e.Expressions {
		ids = append(ids, x.ID)
	}
	return ids
}

// randomExpr seldom draws a formula without a variable, which is refused.
func randomExpr(r *rand.Rand, variables []string) string {
	for {
		text := randomFormula(r, variables, 1+r.IntN(3))
		if slices.ContainsFunc(variables, func(v string) bool { return strings.Contains(text, v) }) || r.IntN(20) == 0 {
			return text
		}
	}
}

// randomFormula draws an expression that is some operators deep.
func randomFormula(r *rand.Rand, variables []string, deep int) string {
	if deep == 0 {
		if r.IntN(3) == 0 {
			return pick(r, []string{
				"1", "2", "7", "100", "2.5", "0.1", "0.123456789", "16777217.0", "0", "3.0d", "0.5d",
				"1000000000000l",
			})
		}
		return pick(r, variables)
	}
	part := func() string {
		// Parentheses keep a part with an operator one operand of the operator around it.
		text := randomFormula(r, variables, r.IntN(deep))
		if strings.ContainsAny(text, " -!") {
			return "(" + text + ")"
		}
		return text
	}
	switch r.IntN(12) {
	case 0:
		return "-" + part()
	case 1:
		return "!" + part()
	case 2:
		return part() + " " + pick(r, []string{"&&", "||", "and", "or"}) + " " + part()
	case 3, 4:
		return part() + " " + pick(r, []string{"==", "!=", "<", "<=", ">", ">=", "lt", "ge"}) + " " + part()
	case 5:
		return part() + " > " + part() + " ? " + part() + " : " + part()
	case 6:
		return part() + " ?: " + part()
	}
	return part() + " " + pick(r, []string{"+", "-", "*", "/", "/", "%", "div", "mod"}) + " " + part()
}

var variable = regexp.MustCompile(`[A-Za-z]\w*`)

// ShrinkExp returns the smallest request that it finds to fail still. fails is called at
// most attempts times; e itself is taken to fail.
func ShrinkExp(e Exp, attempts int, fails func(Exp) bool) Exp {
	return shrink(e, attempts, Exp.smaller, fails)
}

// smaller are requests that lack one thing that e has. Where the thing is a variable that is
// still used, both servers miss it and no longer differ, so that this one is not taken.
func (e Exp) smaller() (all []Exp) {
	for i := range e.Outputs {
		c := e
		c.Outputs = slices.Delete(slices.Clone(e.Outputs), i, i+1)
		all = append(all, c)
	}
	for i := range e.Expressions {
		c := e
		c.Expressions = slices.Delete(slices.Clone(e.Expressions), i, i+1)
		all = append(all, c)
	}
	if len(e.Metrics) > 1 {
		for i := range e.Metrics {
			c := e
			c.Metrics = slices.Delete(slices.Clone(e.Metrics), i, i+1)
			all = append(all, c)
		}
	}
	for i, f := range e.Filters {
		for j := range f.Tags {
			c := e
			c.Filters = slices.Clone(e.Filters)
			c.Filters[i].Tags = slices.Delete(slices.Clone(f.Tags), j, j+1)
			all = append(all, c)
		}
	}
	if c := e; c.Time.Downsampler != nil {
		c.Time.Downsampler = nil
		all = append(all, c)
	}
	if c := e; c.Time.Rate {
		c.Time.Rate = false
		all = append(all, c)
	}
	if c := e; c.Time.Timezone != "" {
		c.Time.Timezone = ""
		all = append(all, c)
	}
	for i, x := range e.Expressions {
		if id := variable.FindString(x.Expr); x.Expr != id {
			c := e
			c.Expressions = slices.Clone(e.Expressions)
			c.Expressions[i].Expr = id
			all = append(all, c)
		}
	}
	return all
}
