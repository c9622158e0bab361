package query

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync/atomic"

	"downpour/gateway/query/backtrack"
)

// Bounds of a regular expression. The time to match is linear in both, whatever the
// expression is, except for those of package backtrack, which has a bound of its own.
const (
	maxRegexpBytes        = 1 << 10
	maxRegexpInstructions = 5_000
)

// javaRegexp is a regular expression as OpenTSDB applies it: a value is admitted if the
// expression matches anywhere in it. Source: TagVRegexFilter.
type javaRegexp struct {
	re     *regexp.Regexp
	slow   *backtrack.Expression // in place of re, for what RE2 has not or reads otherwise
	prefix string
	steps  int // instructions of the compiled expression
	fault  atomic.Pointer[Error]
}

// stepBytes is about the memory of an instruction, in bytes.
const stepBytes = 64

// newJavaRegexp compiles a regular expression of Java. The error is an *UnsupportedError
// if Java would take it, but here it is too long, has too many steps, or needs what is not
// known here.
func newJavaRegexp(text string) (*javaRegexp, error) {
	fast, err := newLinearRegexp(text)
	if len(text) > maxRegexpBytes {
		return nil, err
	}

	// Also what RE2 takes is parsed by Java's rules.
	slow, slowErr := backtrack.Compile(text)
	var here *UnsupportedError
	var there *backtrack.Unsupported
	switch {
	case slowErr != nil && !errors.As(slowErr, &there):
		if err == nil || errors.As(err, &here) {
			err = fmt.Errorf("bad regular expression '%s': %w", text, slowErr)
		}
		return nil, err
	case slowErr != nil && there.Otherwise:
		return nil, &UnsupportedError{there.What, text}
	case err == nil && !readsOtherwise(text): //fault:borders-of-ascii TestRegexp_java
		return fast, nil
	case slowErr == nil:
		return &javaRegexp{slow: slow, prefix: slow.Prefix(), steps: slow.Instructions()}, nil
	}
	return nil, &UnsupportedError{there.What, text}
}

// newLinearRegexp compiles a regular expression for RE2.
func newLinearRegexp(text string) (*javaRegexp, error) {
	if len(text) > maxRegexpBytes {
		return nil, &UnsupportedError{fmt.Sprintf("%d bytes, more than %d", len(text), maxRegexpBytes), text[:64] + "…"}
	}

	translated, err := translate(text)
	if err != nil {
		return nil, err
	}

	// regexp.Compile does not return the number of steps, so the program is made here once more.
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
		return nil, &UnsupportedError{fmt.Sprintf("%d instructions, more than %d", n, maxRegexpInstructions), text}
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

// find reports whether the expression is found in a value. After a fault it is found in none.
func (r *javaRegexp) find(value string) bool {
	if r.slow == nil {
		return r.re.MatchString(value)
	}
	if r.fault.Load() != nil {
		return false
	}
	found, err := r.slow.Find(value)
	if err != nil {
		r.fault.CompareAndSwap(nil,
			TooMuch(
				"Regular expression too slow: it takes too many steps to look for it in names; "+
					"look-around, back-references and repetitions in repetitions take many"))
	}
	return found
}

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
