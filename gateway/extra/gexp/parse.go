package gexp

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"downpour/gateway/query"
)

// Bounds of an expression's text. What exceeds them is refused with status 413.
const (
	// MaxLength bounds the bytes of one expression.
	MaxLength = 64 << 10
	// MaxDepth bounds how deeply calls stand inside each other. Each may hold a copy of
	// all points.
	MaxDepth = 32
)

// Expressions are the expressions of one request.
type Expressions struct {
	// Calls are the expressions in order.
	Calls []*Call
	// Metrics are the metric arguments of all expressions, in the order of the text.
	Metrics []Metric
	// HasTimeShift reports whether any expression has timeShift or shift, which move data in
	// time.
	HasTimeShift bool
}

// Metric is a metric argument.
type Metric struct {
	// Text is an m= parameter of /api/query.
	Text string
	// Shift is how much earlier than the query, in ms, the metric is to be read. Its
	// points move by as much.
	Shift int64
}

// Call is a function with its arguments: one node of an expression.
type Call struct {
	Function string
	// Args are the arguments that are series, in order: calls and metrics.
	Args []Arg
	// Params are the arguments that are no series, in order.
	Params []string

	seriesAfterParam bool
}

// Arg is a series argument: a call, or else a metric.
type Arg struct {
	Call   *Call
	Metric int // index in Expressions.Metrics
	name   string
}

// Parse reads the expressions of a request, with at most metrics metric arguments. All
// errors are *query.Error: what OpenTSDB cannot parse either is a 400 with OpenTSDB's
// message, and what exceeds a bound is a 413. Source: parser.jj, Expressions.parse.
//
//	call   = name "(" arg {"," arg} ")"
//	arg    = call | metric | name
//	metric = name ":" [name ":"] [name ":"] name ["{" name "=" name {"," name "=" name} "}"]
//
// A name is "*" or made of letters, digits and -_#/$@|.'[]. Blanks between them count for
// nothing, and so does all text behind the last parenthesis.
func Parse(texts []string, metrics int) (*Expressions, error) {
	e := &Expressions{}
	for _, text := range texts {
		call, err := e.parse(text, metrics)
		if err != nil {
			return nil, err
		}
		e.setShifts(call, 0)
		e.Calls = append(e.Calls, call)
	}
	return e, nil
}

// parse reads one expression.
func (e *Expressions) parse(text string, metrics int) (*Call, error) {
	if len(text) > MaxLength {
		return nil, query.TooMuch("An expression has %d bytes, want at most %d", len(text), MaxLength)
	}
	p := &parser{text: text, rest: text, into: e, maxMetrics: metrics}
	p.next()

	name, ok := p.name()
	if !ok {
		p.wants("the name of a function")
	}
	call, err := p.call(name, 1)
	switch {
	case err != nil:
		return nil, err
	case call == nil || name == "":
		refused := query.RunFault("Failed to parse %s", text)
		refused.Details = p.fault
		return nil, refused
	}
	return call, checkFunctions(call)
}

// parser reads an expression token by token.
type parser struct {
	text  string
	rest  string // behind the present token
	token string // "" at the end, and where the text has no token
	word  bool   // the token is a name
	fault string // where the text first had another form, and what was wanted there

	into       *Expressions // receives the metrics
	maxMetrics int
}

// next reads the next token: a name, a punctuation mark, or "" where neither begins, which
// nothing takes.
func (p *parser) next() {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	n := nameLength(p.rest)
	if p.word = n > 0; !p.word && p.rest != "" && strings.IndexByte("(),:{}=", p.rest[0]) >= 0 {
		n = 1
	}
	p.token, p.rest = p.rest[:n], p.rest[n:]
}

// wants notes that something else than the present token is wanted. It returns false, for the
// text has another form.
func (p *parser) wants(what string) bool {
	if p.fault != "" {
		return false
	}
	got, at := p.token, len(p.text)-len(p.rest)-len(p.token)
	if got == "" { // no token begins here
		_, n := utf8.DecodeRuneInString(p.rest)
		got = p.rest[:n]
	}
	shown := strconv.Quote(got)
	if got == "" {
		shown = "the end"
	}
	p.fault = fmt.Sprintf("character %d: got %s, want %s", utf8.RuneCountInString(p.text[:at])+1, shown, what)
	return false
}

// nameLength returns the length of the name that s begins with, 0 for none.
func nameLength(s string) int {
	if strings.HasPrefix(s, "*") {
		return 1
	}
	for i, r := range s {
		known := unicode.IsLetter(r) && r != utf8.RuneError || unicode.IsDigit(r) ||
			strings.ContainsRune("-_#/$@|.'[]", r)
		if !known {
			return i
		}
	}
	return len(s)
}

// name takes a name.
func (p *parser) name() (name string, ok bool) {
	if !p.word {
		return "", false
	}
	name = p.token
	p.next()
	return name, true
}

// take takes a punctuation mark if it is the present token.
func (p *parser) take(mark string) bool {
	if p.word || p.token != mark {
		return false
	}
	p.next()
	return true
}

// call reads a call whose name is read. It returns nil without an error where the text
// has another form; the error is that of a bound.
func (p *parser) call(name string, depth int) (*Call, error) {
	if depth > MaxDepth {
		return nil, query.TooMuch("Functions inside each other more than %d deep", MaxDepth)
	}
	if !p.take("(") {
		p.wants(`"(" behind the name of a function`)
		return nil, nil
	}

	c := &Call{Function: name}
	for {
		ok, err := p.argument(c, depth)
		if !ok || err != nil {
			return nil, err
		}
		if !p.take(",") {
			break
		}
	}

	// What follows the last parenthesis is not read, not even as tokens.
	if depth == 1 && !p.word && p.token == ")" {
		return c, nil
	}
	if !p.take(")") {
		p.wants(`"," or ")" behind an argument`)
		return nil, nil
	}
	return c, nil
}

// argument reads one argument of a call.
func (p *parser) argument(c *Call, depth int) (ok bool, err error) {
	name, ok := p.name()
	if !ok {
		return p.wants("a metric, a function or a parameter"), nil
	}

	var arg Arg
	switch {
	case p.token == "(":
		if arg.Call, err = p.call(name, depth+1); arg.Call == nil {
			return false, err
		}
	case p.token == ":":
		text, ok := p.metric(name)
		if !ok {
			return false, nil
		}
		if len(p.into.Metrics) == p.maxMetrics {
			return false, query.TooMuch("The expressions have too many metrics, at most %d", p.maxMetrics)
		}
		arg.Metric, arg.name = len(p.into.Metrics), metricName(text)
		p.into.Metrics = append(p.into.Metrics, Metric{Text: text})
	default:
		c.Params = append(c.Params, name)
		return true, nil
	}

	c.seriesAfterParam = c.seriesAfterParam || len(c.Params) > 0
	c.Args = append(c.Args, arg)
	return true, nil
}

// maxMetricParts is the aggregator, two middle parts and the metric.
const maxMetricParts = 4

// metric reads a metric whose aggregator is read, and returns it as an m= parameter.
func (p *parser) metric(aggregator string) (text string, ok bool) {
	var b strings.Builder
	b.WriteString(aggregator)
	for parts := 1; p.take(":"); parts++ {
		if parts == maxMetricParts {
			return "", p.wants(fmt.Sprintf("at most %d parts of a metric", maxMetricParts))
		}
		part, ok := p.name()
		if !ok {
			return "", p.wants("a part of a metric")
		}
		b.WriteString(":" + part)
	}
	if !p.take("{") {
		return b.String(), true
	}

	for separator := "{"; ; separator = "," {
		k, kOK := p.name()
		equals := p.take("=")
		v, vOK := p.name()
		if !kOK || !equals || !vOK {
			return "", p.wants("KEY=VALUE with characters that a name may have")
		}
		b.WriteString(separator + k + "=" + v)
		if !p.take(",") {
			break
		}
	}
	b.WriteString("}")
	return b.String(), p.take("}") || p.wants(`"," or "}" behind a tag`)
}

// checkFunctions refuses a call of an unknown function. OpenTSDB answers it with status
// 500: the client's fault is a 400 here. Source: ExpressionFactory.getByName.
func checkFunctions(c *Call) error {
	if functions[c.Function] == nil {
		return query.RunFault("Function %s has not been implemented", c.Function)
	}
	for _, a := range c.Args {
		if a.Call == nil {
			continue
		}
		if err := checkFunctions(a.Call); err != nil {
			return err
		}
	}
	return nil
}

// String returns the expression as OpenTSDB's errors show it: functions, and metrics
// without their filters. Source: ExpressionTree.toString.
func (c *Call) String() string {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		if args[i] = a.name; a.Call != nil {
			args[i] = a.Call.String()
		}
	}
	return c.Function + "(" + strings.Join(args, ",") + ")"
}

// metricName returns the name in an m= parameter.
func metricName(m string) string {
	m, _, _ = strings.Cut(m, "{")
	return m[strings.LastIndexByte(m, ':')+1:]
}
