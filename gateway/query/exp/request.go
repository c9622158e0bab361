package exp

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"

	"downpour/gateway/jackson"
	"downpour/gateway/query"
	"downpour/gateway/query/expression"
)

// Limits of a request. One beyond them is refused with status 413. The number of
// metrics has the limit of sub-queries, see query.Parser.
const (
	// MaxExpressions bounds the expressions. Each makes a table of its own.
	MaxExpressions = 64
	// MaxOutputs bounds the outputs, which may repeat: all metrics and expressions once.
	MaxOutputs = 128
	// MaxFilters bounds the conditions of all filters together.
	MaxFilters = query.MaxFilters
)

// Request is a request that is sound in itself. Names of metrics and tags may be
// unknown. A text or a list that is nil was not given.
type Request struct {
	Name        *string
	Time        Time
	Filters     []Filter
	Metrics     []Metric
	Expressions []Expression
	Outputs     []OutputRef

	order []int // expressions, each after those that it uses
}

// Time is what all metrics have in common.
type Time struct {
	Start, End, Timezone *string
	Downsampler          *Downsampler
	Aggregator           *string
	Rate                 bool
	// RollupUsage is that of all metrics, as in a sub-query; OpenTSDB has no such field.
	RollupUsage *string
}

// Downsampler is the downsampling of all metrics. Its fill policy is not used.
type Downsampler struct {
	Interval, Aggregator *string
	Fill                 *Fill
}

// Filter is a list of conditions on tags.
type Filter struct {
	ID           *string
	Tags         []query.Filter // nil if not given
	ExplicitTags bool
}

// Metric is a variable that is read. Its time offset is checked and not used.
type Metric struct {
	ID, Metric, Filter, Aggregator, TimeOffset *string
	Fill                                       *Fill
}

// Expression is a variable that is computed.
type Expression struct {
	ID, Expr *string
	Join     Join
	Fill     *Fill

	parsed *expression.Expression
}

// Join is which series of several variables belong together.
type Join struct {
	// Operator is "union" or "intersection", "" if a join is given without one.
	Operator string
	// UseQueryTags leaves of the common tags those that the metric's filter names.
	UseQueryTags bool
	// IncludeAggTags makes the keys of aggregated tags part of what is compared.
	IncludeAggTags bool
	// UseGroupTags keeps only those common tags that the metric's filter groups by;
	// OpenTSDB has no such field.
	UseGroupTags bool
}

// OutputRef is a requested output: the id of a metric or an expression.
type OutputRef struct{ ID, Alias *string }

// Fill is the value where a series has no point.
type Fill struct {
	Policy string
	Value  float64
}

// Parse reads and checks the body of a request. parser parses times, and bounds the metrics as
// sub-queries. All errors are *query.Error.
func Parse(body []byte, parser query.Parser) (*Request, error) {
	r, err := read(body, parser.MaxSubQueries())
	if err == nil {
		err = r.validate(parser)
	}
	if err == nil {
		r.order, err = r.inOrder()
	}
	return r, asFault(err)
}

// asFault returns err as a *query.Error: a 400 for any other error.
func asFault(err error) error {
	var known *query.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return fault("%s", err.Error())
}

// fault returns a 400. OpenTSDB answers most of these faults with 500.
func fault(format string, args ...any) error {
	return query.Bad(format, args...)
}

func tooMany(what string, limit int) error {
	return query.TooMuch("Too many %s, at most %d", what, limit)
}

// read reads the fields of a body, of at most maxMetrics metrics; validate checks them.
func read(body []byte, maxMetrics int) (*Request, error) {
	if len(body) == 0 {
		return nil, fault("Incoming data was null or empty")
	}
	// The syntax of the whole body comes first: its error has a text of its own.
	var raw jackson.Raw
	if err := jackson.Unmarshal(body, &raw); err != nil {
		return nil, fmt.Errorf("Unable to parse the given JSON: %w", err)
	}
	o, err := readObject(raw, "the query")
	if err != nil {
		return nil, err
	}

	r := new(Request)
	if r.Name, err = o.text("name"); err != nil {
		return nil, err
	}
	if err := r.readTime(o["time"]); err != nil {
		return nil, err
	}
	if err := r.readFilters(o); err != nil {
		return nil, err
	}
	if r.Metrics, err = readList(o, "metrics", maxMetrics, readMetric); err != nil {
		return nil, err
	}
	if r.Expressions, err = readList(o, "expressions", MaxExpressions, readExpression); err != nil {
		return nil, err
	}
	r.Outputs, err = readList(o, "outputs", MaxOutputs, readOutput)
	return r, err
}

// texts are fields of an object that are text, and where they are kept.
type texts []struct {
	key   string
	place **string
}

// readTexts reads fields that are text.
func readTexts(o object, fields texts) (err error) {
	for _, f := range fields {
		if *f.place, err = o.text(f.key); err != nil {
			return err
		}
	}
	return nil
}

// readTime reads what all metrics have in common. It must be there; its downsampler need not.
func (r *Request) readTime(raw jackson.Raw) error {
	o, err := readObject(raw, "time")
	if err != nil {
		return err
	}
	if o == nil {
		return fault("missing time")
	}
	t := &r.Time
	if err := readTexts(o, texts{{"start", &t.Start}, {"end", &t.End}, {"timezone", &t.Timezone},
		{"aggregator", &t.Aggregator}, {"rollupUsage", &t.RollupUsage}}); err != nil {
		return err
	}
	if t.Rate, err = o.flag("rate", false); err != nil {
		return err
	}

	d, err := readObject(o["downsampler"], "downsampler")
	if err != nil || d == nil {
		return err
	}
	t.Downsampler = new(Downsampler)
	if t.Downsampler.Fill, err = readFill(d); err != nil {
		return err
	}
	return readTexts(d, texts{{"interval", &t.Downsampler.Interval}, {"aggregator", &t.Downsampler.Aggregator}})
}

// readFilters reads the filters, which together have at most MaxFilters conditions.
func (r *Request) readFilters(o object) (err error) {
	conditions := 0
	r.Filters, err = readList(o, "filters", MaxFilters, func(raw jackson.Raw) (f Filter, err error) {
		o, err := readObject(raw, "filter")
		if err != nil {
			return f, err
		}
		if f.ID, err = o.text("id"); err != nil {
			return f, err
		}
		if f.ExplicitTags, err = o.flag("explicitTags", false); err != nil {
			return f, err
		}
		f.Tags, err = readList(o, "tags", MaxFilters-conditions, readCondition)
		conditions += len(f.Tags)
		return f, err
	})
	return err
}

// readCondition reads one condition of a filter.
func readCondition(raw jackson.Raw) (query.Filter, error) {
	o, err := readObject(raw, "tags")
	if err != nil {
		return query.Filter{}, err
	}
	var kind, tagk, text *string
	if err := readTexts(o, texts{{"type", &kind}, {"tagk", &tagk}, {"filter", &text}}); err != nil {
		return query.Filter{}, err
	}

	// The flag has two spellings.
	grouped, err := o.flag("groupBy", false)
	if err == nil {
		grouped, err = o.flag("group_by", grouped)
	}
	if err != nil {
		return query.Filter{}, err
	}
	return query.NewFilter(value(kind), value(tagk), value(text), grouped)
}

// value returns a text, "" if it was not given.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// readMetric reads one metric; missing fields stay nil.
func readMetric(raw jackson.Raw) (m Metric, err error) {
	o, err := readObject(raw, "metric")
	if err != nil {
		return m, err
	}
	if err := readTexts(o, texts{{"id", &m.ID}, {"metric", &m.Metric}, {"filter", &m.Filter},
		{"aggregator", &m.Aggregator}, {"timeOffset", &m.TimeOffset}}); err != nil {
		return m, err
	}
	m.Fill, err = readFill(o)
	return m, err
}

// readExpression reads one expression; validate parses its text.
func readExpression(raw jackson.Raw) (e Expression, err error) {
	o, err := readObject(raw, "expression")
	if err != nil {
		return e, err
	}
	if err := readTexts(o, texts{{"id", &e.ID}, {"expr", &e.Expr}}); err != nil {
		return e, err
	}
	if e.Join, err = readJoin(o["join"]); err != nil {
		return e, err
	}
	e.Fill, err = readFill(o)
	return e, err
}

// readJoin reads a join; the default is a union.
func readJoin(raw jackson.Raw) (Join, error) {
	o, err := readObject(raw, "join")
	if err != nil {
		return Join{}, err
	}
	if o == nil {
		return Join{Operator: "union", IncludeAggTags: true}, nil
	}

	j := Join{}
	if j.UseQueryTags, err = o.flag("useQueryTags", false); err != nil {
		return j, err
	}
	if j.IncludeAggTags, err = o.flag("includeAggTags", true); err != nil {
		return j, err
	}
	if j.UseGroupTags, err = o.flag("useGroupTags", false); err != nil {
		return j, err
	}
	// A join without an operator is no union: Expression.parse refuses it.
	operator, err := o.text("operator")
	if err != nil || operator == nil {
		return j, err
	}
	if j.Operator = strings.ToLower(*operator); j.Operator != "union" && j.Operator != "intersection" {
		return j, fault("Unrecognized set operator: %s", *operator)
	}
	return j, nil
}

func readOutput(raw jackson.Raw) (out OutputRef, err error) {
	o, err := readObject(raw, "output")
	if err != nil {
		return out, err
	}
	err = readTexts(o, texts{{"id", &out.ID}, {"alias", &out.Alias}})
	return out, err
}

// readFill reads the field fillPolicy; nil if it was not given.
// Source: NumericFillPolicy.validate.
func readFill(in object) (*Fill, error) {
	o, err := readObject(in["fillPolicy"], "fillPolicy")
	if err != nil || o == nil {
		return nil, err
	}
	v, err := o.number("value")
	if err != nil {
		return nil, err
	}
	policy, err := o.text("policy")
	if err != nil {
		return nil, err
	}

	// 0 is also the value that was not given.
	if policy == nil {
		switch {
		case v == 0:
			return &Fill{"zero", v}, nil
		case math.IsNaN(v):
			return &Fill{"nan", v}, nil
		}
		return &Fill{"scalar", v}, nil
	}
	switch p := strings.ToLower(*policy); p {
	case "none", "nan", "null":
		if v != 0 && !math.IsNaN(v) {
			return nil, fault("The value for NONE and NAN must be NaN")
		}
		return &Fill{p, math.NaN()}, nil
	case "zero":
		if v != 0 {
			return nil, fault("The value for ZERO must be 0")
		}
		return &Fill{p, 0}, nil
	case "scalar":
		return &Fill{p, v}, nil
	}
	return nil, fault("Unrecognized fill policy: %s", *policy)
}

// validID reports whether an id consists of letters and digits, and not of one digit.
// Source: Query.validateId.
func validID(id string) bool {
	n := 0
	for _, c := range id {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
		n++
	}
	return n > 1 || n == 1 && !unicode.IsDigit([]rune(id)[0])
}
