// Package backtrack finds regular expressions of Java in names that an engine of linear time cannot:
//
//	^(?!test)          look-ahead and look-behind
//	^(\w+)-\1$         back-references
//	(?>a+)b, a++b      atomic groups and possessive quantifiers
//	\bdb\b             borders of words, with letters beyond ASCII
//
// An expression is parsed as java.util.regex does up to Java 18, and compiled to a program of
// instructions for a machine that tries one path after the other. It remembers the positions from
// which it has failed, and does not try them again. With back-references, and repetitions of parts
// that may match nothing, failing depends on more than the position: nothing is remembered then,
// and the paths may grow exponentially. Therefore steps are counted, and beyond a bound the search
// ends with ErrSteps. If Java's meaning is not certain here, Compile returns the construct.
// Source: java.util.regex.Pattern.
package backtrack

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Bounds of an expression.
const (
	// maxInstructions bounds its program.
	maxInstructions = 5_000
	// maxDepth bounds the nesting of groups.
	maxDepth = 100
)

// The steps that all searches of one expression may take: a base, and more for each name, so that
// an expression that is used for long, on more and more names, does not exhaust them.
const (
	firstSteps = 5_000_000 // a quarter of a second, on a busy machine
	nameSteps  = 10_000
)

// ErrSteps is returned where an expression takes too many steps.
var ErrSteps = errors.New("it takes too many steps")

// Unsupported is returned by Compile for an expression that Java takes, and that is not known here.
type Unsupported struct {
	What string
	// Otherwise is set if engines of linear time accept it, and find it in other names than Java.
	Otherwise bool
}

// Error names the construct.
func (e *Unsupported) Error() string { return "it uses " + e.What }

func unsupported(format string, args ...any) error {
	return &Unsupported{What: fmt.Sprintf(format, args...)}
}

// Expression is a compiled expression. It may be used from many goroutines.
type Expression struct {
	program   []instruction
	registers int
	stateless bool // matches from a position on depend on nothing before it
	atStart   bool // it can begin at the start of a name only
	prefix    string

	names, steps atomic.Int64 // of all searches so far
}

// Compile compiles an expression of Java. The error is an *Unsupported for one that Java takes, or may take.
func Compile(text string) (*Expression, error) {
	p := &parser{text: []rune(text), names: map[string]int{}, closed: map[int]bool{}}
	tree, err := p.parse()
	if err != nil {
		return nil, err
	}
	c := &compiler{captures: p.refers}
	if c.captures {
		c.registers = 2 * (p.groups + 1)
	}
	if err := c.emit(tree); err != nil {
		return nil, err
	}
	if len(c.program) > maxInstructions {
		return nil, tooLong
	}
	c.add(instruction{op: opDone})
	return &Expression{program: c.program, registers: c.registers, stateless: !c.captures && !c.turns,
		atStart: beginsAtStart(tree), prefix: prefixOf(tree)}, nil
}

// Instructions returns the length of the program.
func (e *Expression) Instructions() int { return len(e.program) }

// Prefix returns a common prefix of all names in which the expression is found, often "".
func (e *Expression) Prefix() string { return e.prefix }

// Find reports whether the expression is found anywhere in a name. The error is ErrSteps.
func (e *Expression) Find(name string) (bool, error) {
	may := firstSteps + nameSteps*e.names.Add(1) - e.steps.Load()
	m := machine{
		program:   e.program,
		text:      []rune(name),
		registers: make([]int, e.registers),
		stateless: e.stateless,
		stepsLeft: may,
	}
	found := m.find(e.atStart)
	e.steps.Add(may - m.stepsLeft)
	if m.stepsLeft < 0 {
		return false, ErrSteps
	}
	return found, nil
}
