package promql

import (
	"context"
	"fmt"
	"regexp/syntax"
	"strconv"

	"github.com/prometheus/prometheus/promql/parser"

	"downpour/pushdown/process/memory"
)

// What the text of a query may have. Parsing and evaluating recurse, and a regular expression of a few characters can
// compile to millions of instructions, so all of it is counted before the text is parsed.
const (
	MaxText  = 256 << 10 // bytes
	maxItems = 4096      // words, numbers and signs
	maxSteps = 50_000    // instructions of all regular expressions
)

// Memory that a text needs, in bytes: for each item its node and the stack that its evaluation takes, and for each
// instruction of a regular expression.
const (
	itemBytes = 8 << 10
	stepBytes = 64
)

// maxSubquerySteps bounds the steps of one subquery: a minute's steps over twenty years.
const maxSubquerySteps = 10_000_000

// reserveText reserves what parsing and evaluating a text takes. The error refuses a text beyond the bounds.
func reserveText(ctx context.Context, text string) error {
	if len(text) > MaxText {
		return &BadDataError{fmt.Errorf("the query has %d bytes, at most %d", len(text), MaxText)}
	}
	items, steps := 0, 0
	lexer, item, regexpNext := parser.Lex(text), parser.Item{}, false
	for {
		lexer.NextItem(&item)
		if item.Typ == parser.EOF || item.Typ == parser.ERROR {
			break // the parser words the error
		}
		if items++; items > maxItems {
			return &BadDataError{fmt.Errorf("the query has more than %d words and signs", maxItems)}
		}
		if item.Typ == parser.STRING && regexpNext {
			steps += stepsOf(item.Val)
		}
		regexpNext = item.Typ == parser.EQL_REGEX || item.Typ == parser.NEQ_REGEX
		if steps > maxSteps {
			return tooManySteps()
		}
	}
	return memory.Reserve(ctx, int64(len(text))+int64(items)*itemBytes+int64(steps)*stepBytes)
}

func tooManySteps() error {
	return &BadDataError{fmt.Errorf("the regular expressions of the query take more than %d steps together", maxSteps)}
}

// stepsOf estimates the instructions of a regular expression, written as a string of PromQL. One that does not parse
// has none: the parser refuses it.
func stepsOf(quoted string) int {
	text, err := strconv.Unquote(quoted)
	if err != nil {
		text = quoted // PromQL's single quotes; a repetition looks the same
	}
	return stepsOfText(text)
}

// stepsOfText estimates the instructions of a regular expression.
func stepsOfText(text string) int {
	re, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
	if err != nil {
		return 0
	}
	return stepsOfTree(re)
}

// stepsOfTree counts instructions as the compiler makes them: what is repeated is there several times.
func stepsOfTree(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += stepsOfTree(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxSteps+1)
}

// reserveSubqueries reserves the points of subqueries: each is evaluated for all times that what is around it wants.
// The error refuses one of too many steps.
func reserveSubqueries(ctx context.Context, statement parser.Statement, t Times) error {
	span := t.End.Sub(t.Start)
	var fault error
	parser.Inspect(statement, func(node parser.Node, path []parser.Node) error {
		s, ok := node.(*parser.SubqueryExpr)
		if !ok || fault != nil {
			return nil
		}
		window := span + s.Range
		for _, p := range path {
			if outer, ok := p.(*parser.SubqueryExpr); ok {
				window += outer.Range
			}
		}
		step := s.Step
		if step <= 0 {
			step = subqueryStep
		}
		steps := int64(window / step)
		if steps > maxSubquerySteps {
			fault = &BadDataError{fmt.Errorf("the subquery [%s:%s] has %d steps, at most %d", s.Range, step, steps,
				maxSubquerySteps)}
			return nil
		}
		fault = memory.Reserve(ctx, steps*pointBytes) //fault:promql-subquery-not-reserved TestPromQL_memory
		return nil
	})
	return fault
}
