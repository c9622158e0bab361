package expression

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of an expression. One beyond them is refused: it comes from outside, and its tree is
// walked recursively.
const (
	// MaxLength bounds the bytes of the text. People write some hundred.
	MaxLength = 4096
	// MaxDepth bounds how deep parentheses, choices and unary operators are nested.
	MaxDepth = 64
)

// Expression is a parsed expression. It does not change and may be used by many
// goroutines.
type Expression struct {
	// Text is the expression as written.
	Text string
	// Variables are the names that occur, each once, in the order of their first places.
	Variables []string

	root   node // as written
	folded node // with operations on constants computed
}

// String returns an expression of the same tree, with parentheses around every
// operation.
func (e *Expression) String() string { return e.root.String() }

// Parse parses an expression. The error is a *SyntaxError, or says that an operation
// on constants cannot be computed.
func Parse(text string) (*Expression, error) {
	if len(text) > MaxLength {
		return nil, &SyntaxError{
			Text:   strings.ToValidUTF8(text[:64], "") + "…",
			Column: MaxLength + 1,
			Reason: fmt.Sprintf("it has %d bytes, at most %d", len(text), MaxLength),
		}
	}

	p := &parser{lexer: lexer{text: text}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	root, err := p.choice()
	if err != nil {
		return nil, err
	}
	if !p.atEnd() {
		return nil, p.fault("something follows the expression")
	}

	e := &Expression{Text: text, Variables: p.variables, root: root}
	// An impossible operation is an error only if there is a row.
	if e.folded, err = fold(root); err != nil {
		e.folded = root
	}
	return e, nil
}

// parser is a recursive descent parser. Its methods parse one rule each and leave the first token
// after it in token.
type parser struct {
	lexer
	token     token
	depth     int
	variables []string
}

func (p *parser) advance() (err error) {
	p.token, err = p.next()
	return err
}

func (p *parser) atEnd() bool {
	return p.token.operator == "" && p.token.variable == "" && p.token.constant == nil
}

func (p *parser) fault(reason string) error { return p.lexer.fault(p.token.column, reason) }

// enter counts a nesting; the caller must call leave.
func (p *parser) enter() error {
	if p.depth++; p.depth > MaxDepth {
		return p.fault(fmt.Sprintf("it is nested deeper than %d", MaxDepth))
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// choice parses the rule that binds least: condition ? yes : no, condition ?: no, or a
// condition alone.
func (p *parser) choice() (node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()

	condition, err := p.binary(0)
	if err != nil {
		return nil, err
	}
	switch p.token.operator {
	case "?:":
		no, err := p.branch()
		return &choice{condition: condition, no: no}, err
	case "?":
		yes, err := p.branch()
		if err != nil {
			return nil, err
		}
		if p.token.operator != ":" {
			return nil, p.fault("want : and another value")
		}
		no, err := p.branch()
		return &choice{condition, yes, no}, err
	}
	return condition, nil
}

// branch skips the present token, which is ?, :, ?: or (, and parses the choice after it.
func (p *parser) branch() (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	return p.choice()
}

// levels are the binary operators, those that bind least first. Equalities and
// relations do not chain: a < b < c is a syntax error.
// Source: Parser.jjt (JEXL), its expression rules.
var levels = []struct {
	operators []string
	chains    bool
}{
	{[]string{"||"}, true}, {[]string{"&&"}, true}, {[]string{"|"}, true}, {[]string{"^"}, true}, {[]string{"&"}, true},
	{[]string{"==", "!="}, false}, {[]string{"<", "<=", ">", ">="}, false}, {[]string{"+", "-"}, true},
	{[]string{"*", "/", "%"}, true},
}

// binary parses operations of a level and of later ones in levels, which bind more.
func (p *parser) binary(level int) (node, error) {
	if level == len(levels) {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	if err != nil {
		return nil, err
	}

	for slices.Contains(levels[level].operators, p.token.operator) {
		operator := p.token.operator
		if err := p.advance(); err != nil {
			return nil, err
		}
		right, err := p.binary(level + 1)
		if err != nil {
			return nil, err
		}
		left = &binary{operator, left, right}
		if !levels[level].chains {
			break
		}
	}
	return left, nil
}

// unary parses operators in front of a value, which may repeat, so each is a nesting.
func (p *parser) unary() (node, error) {
	operator := p.token.operator
	if operator != "-" && operator != "!" && operator != "~" {
		return p.primary()
	}

	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if err := p.advance(); err != nil {
		return nil, err
	}
	x, err := p.unary()
	return &unary{operator, x}, err
}

// primary parses a constant, a variable, or an expression in parentheses.
func (p *parser) primary() (out node, err error) {
	switch t := p.token; {
	case t.constant != nil:
		return t.constant, p.advance()
	case t.variable != "":
		i := slices.Index(p.variables, t.variable)
		if i < 0 {
			i = len(p.variables)
			p.variables = append(p.variables, t.variable)
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.token.operator == "(" {
			return nil, p.fault("there are no functions")
		}
		return &variable{t.variable, i}, nil
	case t.operator == "(":
		// branch skips the parenthesis: any expression may be inside.
		if out, err = p.branch(); err != nil {
			return nil, err
		}
		if p.token.operator != ")" {
			return nil, p.fault("want )")
		}
		return out, p.advance()
	}
	return nil, p.fault("want a variable, a number or (")
}
