// Package promql answers PromQL over OpenTSDB's tables. The engine is Prometheus' own, and this package is the
// one that knows it: what it asks of a storage becomes queries of the product, see Source, and its answers become
// the JSON of Prometheus' API.
//
//	bounds.go     what a text may cost before it is parsed, and its subqueries before they run
//	selection.go  matchers of labels as metrics and filters of tags
//	windows.go    functions of range vectors that are computed where the points are
//	queryable.go  a storage.Queryable over a Source
//	result.go     an answer as JSON
//
// The labels of a series are its tags, and __name__ is its metric, each as the text that its name shows, see package
// names. What matchers say of labels is checked again on
// each series that was read, so a filter that is pushed down may admit too many series, never too few.
package promql

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// Version is the release of Prometheus whose engine this is. Clients look there for what they may ask.
const Version = "3.16.0"

// pointBytes is the memory of a point in the engine.
const pointBytes = 16

// Lookback is how old the last point of a series may be that a plain selector returns, unless a query says.
const Lookback = 5 * time.Minute

// subqueryStep is the step of a subquery that gives none: Prometheus' default evaluation interval.
const subqueryStep = time.Minute

// Engine evaluates PromQL. It may be used from many goroutines.
type Engine struct {
	engine *promql.Engine
	// dense is for steps at which a plain selector repeats points: it reads them.
	dense  *promql.Engine
	parser parser.Parser
}

// ParserOptions are what the language has beyond Prometheus' defaults: names of OpenTSDB can mostly be written without
// quotes.
var ParserOptions = parser.Options{
	EnableUnquotedUTF8Names: true, EnableExperimentalFunctions: true, EnableBinopFillModifiers: true,
}

// New returns an engine. A query ends after timeout, and may have maxPoints points in memory at a time.
func New(timeout time.Duration, maxPoints int, log *slog.Logger) *Engine {
	p := parser.NewParser(ParserOptions)
	return &Engine{
		parser: p,
		engine: newEngine(timeout, maxPoints, log, windowParser{p, true}),
		dense:  newEngine(timeout, maxPoints, log, windowParser{p, false}),
	}
}

// NewOverPoints is New for sources that have points alone: their Read gets no windows.
func NewOverPoints(timeout time.Duration, maxPoints int, log *slog.Logger) *Engine {
	p := parser.NewParser(ParserOptions)
	e := newEngine(timeout, maxPoints, log, p)
	return &Engine{parser: p, engine: e, dense: e}
}

// newEngine returns an engine that evaluates what a parser makes of a text.
func newEngine(timeout time.Duration, maxPoints int, log *slog.Logger, p parser.Parser) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger:                   log,
		MaxSamples:               maxPoints,
		Timeout:                  timeout,
		LookbackDelta:            Lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		Parser:                   p,
	})
}

// BadDataError is returned for a query that cannot be understood.
type BadDataError struct{ Err error }

// Error is what is wrong with the query.
func (e *BadDataError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *BadDataError) Unwrap() error { return e.Err }

// TimeoutError is returned for a query that took too long.
type TimeoutError struct{ Err error }

// Error names the step in which the query was.
func (e *TimeoutError) Error() string { return e.Err.Error() }

// EvaluationError is returned for an expression that cannot be evaluated over these series, as one with two series of
// the same labels, or that needs too many points.
type EvaluationError struct{ Err error }

// Error is what is wrong.
func (e *EvaluationError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *EvaluationError) Unwrap() error { return e.Err }

// sourceError is an error of the source, on its way through the engine.
type sourceError struct{ error }

// Times are those that an expression is evaluated at: Start, and every Step after it up to End. An instant query has
// no Step, and its End is its Start.
type Times struct {
	Start, End time.Time
	Step       time.Duration
	// Lookback is that of the query; 0 is Lookback.
	Lookback time.Duration
}

// instant reports whether the times are one.
func (t Times) instant() bool { return t.Step == 0 }

// Query evaluates an expression over a source. It reserves the memory of the evaluation on the account of ctx. Errors
// are *BadDataError, *TimeoutError, *EvaluationError, and those of the memory and of the source. The result is closed
// when it has been sent.
func (e *Engine) Query(ctx context.Context, src Source, text string, t Times) (*Result, error) {
	if err := reserveText(ctx, text); err != nil {
		return nil, err
	}
	q, err := e.prepare(ctx, src, text, t)
	if err != nil {
		return nil, &BadDataError{err}
	}
	if err := reserveSubqueries(ctx, q.Statement(), t); err != nil {
		q.Close()
		return nil, err
	}
	found := q.Exec(ctx)
	if found.Err != nil {
		q.Close()
		return nil, evaluationError(ctx, found.Err)
	}
	warnings, infos := found.Warnings.AsStrings(text, maxNotes, maxNotes)
	return &Result{Warnings: warnings, Infos: infos, value: found.Value, query: q}, nil
}

// maxNotes bounds the warnings of an answer.
const maxNotes = 10

// denseStep is the step below which a plain selector has more values than there are points, as a rule.
const denseStep = 10 * time.Second

// prepare returns the query of an expression.
func (e *Engine) prepare(ctx context.Context, src Source, text string, t Times) (promql.Query, error) {
	opts := promql.NewPrometheusQueryOpts(false, t.Lookback, nil)
	data := queryable{src: src, times: t}
	if t.instant() {
		return e.engine.NewInstantQuery(ctx, data, opts, text, t.Start)
	}
	of := e.engine
	if t.Step < denseStep {
		of = e.dense
	}
	return of.NewRangeQuery(ctx, data, opts, text, t.Start, t.End, t.Step)
}

// evaluationError returns the error of an evaluation that failed.
func evaluationError(ctx context.Context, err error) error {
	var timeout promql.ErrQueryTimeout
	var canceled promql.ErrQueryCanceled
	var source sourceError
	switch {
	case errors.As(err, &source):
		return source.error
	case errors.As(err, &timeout):
		return &TimeoutError{err}
	case errors.As(err, &canceled) && ctx.Err() != nil:
		return context.Cause(ctx) // an operator may have ended it
	}
	return &EvaluationError{err}
}

// Format returns an expression as Prometheus' formatter writes it. The error is a *BadDataError.
func (e *Engine) Format(ctx context.Context, text string) (string, error) {
	if err := reserveText(ctx, text); err != nil {
		return "", err
	}
	expr, err := e.parser.ParseExpr(text)
	if err != nil {
		return "", &BadDataError{err}
	}
	return expr.Pretty(0), nil
}

// ParseDuration parses a duration as PromQL has it, such as 1h30m.
func ParseDuration(text string) (time.Duration, error) {
	d, err := model.ParseDuration(text)
	return time.Duration(d), err
}
