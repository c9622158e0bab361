package query

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Bounds of a regular expression. The time to match is linear in both, whatever the
// expression is.
const (
	maxRegexpBytes        = 1 << 10
	maxRegexpInstructions = 5_000
)

// javaRegexp is a regular expression as OpenTSDB applies it: a value is admitted if the
// expression matches anywhere in it. Source: TagVRegexFilter.
type javaRegexp struct {
	re     *regexp.Regexp
	prefix string
	steps  int // instructions of the compiled expression
}

// stepBytes is about the memory of an instruction, in bytes.
const stepBytes = 64

// newJavaRegexp compiles a regular expression of Java. The error is an *UnsupportedError
// if Java would take it, but here it is too long, has too many steps, or needs what RE2
// has not.
func newJavaRegexp(text string) (*javaRegexp, error) {
	if len(text) > maxRegexpBytes {
		return nil, &UnsupportedError{fmt.Sprintf("%d bytes, more than %d", len(text), maxRegexpBytes), text[:64] + "…"}
	}

	translated, err := translate(text)
	if err != nil {
		return nil, err
	}

	// regexp.Compile does not tell the number of steps, so the program is made here once more.
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

// reason returns a parse error without the translated expression, which the client does
// not know.
func reason(err error) error {
	var e *syntax.Error
	if errors.As(err, &e) {
		return errors.New(e.Code.String() + ": " + e.Expr)
	}
	return err
}

func (r *javaRegexp) find(value string) bool { return r.re.MatchString(value) }

// anchoredPrefix returns the literal after a leading ^, "" if there is none.
func anchoredPrefix(tree *syntax.Regexp) string {
	if tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	if lit := tree.Sub[1]; lit.Op == syntax.OpLiteral && lit.Flags&syntax.FoldCase == 0 {
		return string(lit.Rune)
	}
	return ""
}
