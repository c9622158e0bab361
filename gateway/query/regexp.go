package query

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Bounds of a regular expression. Matching is linear in both, whatever the
// expression says; a client cannot make it explode.
const (
	maxRegexpBytes        = 1 << 10
	maxRegexpInstructions = 5_000
)

// UnsupportedError refuses what the reference understands and we do not.
type UnsupportedError struct{ What, Text string }

// Error names the construct and the expression.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("Unsupported regular expression '%s': it uses %s", e.Text, e.What)
}

// javaRegexp is a regular expression as OpenTSDB means it: a value is admitted
// if the expression is found anywhere in it. Source: TagVRegexFilter.
type javaRegexp struct {
	re     *regexp.Regexp
	prefix string
	steps  int // instructions
}

// stepBytes is about what a step takes, in bytes.
const stepBytes = 64

func newJavaRegexp(text string) (*javaRegexp, error) {
	if len(text) > maxRegexpBytes {
		return nil, &UnsupportedError{fmt.Sprintf("%d bytes, more than %d", len(text), maxRegexpBytes), text[:64] + "…"}
	}
	translated, err := translate(text)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("bad regular expression '%s': %w", text, reason(err))
	}
	tree = tree.Simplify()
	prog, err := syntax.Compile(tree)
	if err != nil {
		return nil, fmt.Errorf("bad regular expression '%s': %w", text, err)
	}
	n := len(prog.Inst)
	if n > maxRegexpInstructions {
		return nil, &UnsupportedError{fmt.Sprintf("%d steps, more than %d", n, maxRegexpInstructions), text}
	}
	re, err := regexp.Compile(translated)
	if err != nil {
		return nil, err
	}
	return &javaRegexp{re: re, prefix: anchoredPrefix(tree), steps: n}, nil
}

// reason is a parse error without our translation of the expression.
func reason(err error) error {
	var e *syntax.Error
	if errors.As(err, &e) {
		return errors.New(e.Code.String() + ": " + e.Expr)
	}
	return err
}

func (r *javaRegexp) find(value string) bool { return r.re.MatchString(value) }

// anchoredPrefix is the literal behind a leading ^.
func anchoredPrefix(tree *syntax.Regexp) string {
	if tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	if lit := tree.Sub[1]; lit.Op == syntax.OpLiteral && lit.Flags&syntax.FoldCase == 0 {
		return string(lit.Rune)
	}
	return ""
}
