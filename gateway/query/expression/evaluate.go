package expression

import (
	"fmt"
	"slices"
)

// blockRows is how many rows are evaluated at a time. Intermediate values then stay in the
// processor's cache, and take the same memory for any number of rows.
const blockRows = 512

// ScratchBytes bounds the memory that an Evaluate takes in addition to its columns: a block of
// values and kinds for each pending operand; a nesting has at most one for each level of operators
// and two more.
const ScratchBytes = (9 + 2) * MaxDepth * blockRows * 9

// ResultError is returned if a row's result is a number of a type that OpenTSDB does not accept: a
// constant alone, such as 0.0 in a > 5 ? a : 0.0.
type ResultError struct {
	Class string // of Java
	Text  string // the expression
}

// Error returns OpenTSDB's text. Source: ExpressionIterator.next.
func (e *ResultError) Error() string {
	return fmt.Sprintf(
		"Expression returned a result of type: %s for expression '%s': "+
			"write numbers that are a result by themselves with the suffix d",
		e.Class, e.Text)
}

// Evaluate sets dst to the expression's values, row by row. columns are those of
// Variables, as long as dst; none may be dst. The error is a *ResultError, or describes
// what cannot be computed; dst is undefined then.
func (e *Expression) Evaluate(dst []float64, columns [][]float64) error {
	ev := evaluator{columns: columns}
	for from := 0; from < len(dst); from += blockRows {
		ev.from, ev.rows = from, min(blockRows, len(dst)-from)
		c, err := ev.evaluate(e.folded)
		if err != nil {
			return fmt.Errorf("cannot evaluate '%s': %w", e.Text, err)
		}
		// OpenTSDB takes no other types for a result, see ResultError.
		for i := range ev.rows {
			if k := c.kindAt(i); k != double && k != boolean {
				return &ResultError{Class: javaClasses[k], Text: e.Text}
			}
		}
		copy(dst[from:], c.values)
		ev.free(c)
	}
	return nil
}

// block is the value of a node at some rows.
type block struct {
	values []float64
	kind   kind   // of all rows, unless kinds is set
	kinds  []kind // by row: the branches of a choice may be of two kinds
	owned  bool   // values are the evaluator's, not a variable's
}

func (b *block) kindAt(i int) kind {
	if b.kinds != nil {
		return b.kinds[i]
	}
	return b.kind
}

// floating reports whether all rows are doubles or floats.
func (b *block) floating() bool { return b.kinds == nil && b.kind.isFloating() }

// evaluator evaluates a block of rows. It uses its memory again.
type evaluator struct {
	columns    [][]float64
	from, rows int
	spare      [][]float64
}

// alloc returns a block of any values, to be overwritten; free gives it back.
func (ev *evaluator) alloc() block {
	b := block{owned: true}
	if n := len(ev.spare); n > 0 {
		b.values, ev.spare = ev.spare[n-1][:ev.rows], ev.spare[:n-1]
		return b
	}
	b.values = make([]float64, ev.rows) // no later block is longer
	return b
}

func (ev *evaluator) free(b block) {
	if b.owned {
		ev.spare = append(ev.spare, b.values)
	}
}

// evaluate returns a node's values at the block's rows, which the caller frees. Those of a variable
// are its column itself.
func (ev *evaluator) evaluate(n node) (block, error) {
	switch n := n.(type) {
	case *variable:
		return block{values: ev.columns[n.index][ev.from : ev.from+ev.rows]}, nil
	case *constant:
		b := ev.alloc()
		for i := range b.values {
			b.values[i] = n.value
		}
		b.kind = n.kind
		return b, nil
	case *unary:
		return ev.unary(n)
	case *binary:
		return ev.binary(n)
	}
	return ev.choice(n.(*choice))
}

// unary applies the operator row by row, because the operand may be of two kinds.
func (ev *evaluator) unary(n *unary) (block, error) {
	x, err := ev.evaluate(n.x)
	if err != nil {
		return x, err
	}
	defer ev.free(x)

	out := ev.alloc()
	for i, v := range x.values {
		var k kind
		if out.values[i], k, err = computeUnary(n.operator, v, x.kindAt(i)); err != nil {
			return out, err
		}
		out.setKind(i, k)
	}
	return out, nil
}

// setKind sets the kind of row i; those of all rows before must be set.
func (b *block) setKind(i int, k kind) {
	switch {
	case b.kinds != nil:
		b.kinds[i] = k
	case i == 0:
		b.kind = k
	case b.kind != k:
		b.kinds = slices.Repeat([]kind{b.kind}, len(b.values))
		b.kinds[i] = k
	}
}

// binary computes both sides and applies the operator.
func (ev *evaluator) binary(n *binary) (block, error) {
	l, err := ev.evaluate(n.left)
	if err != nil {
		return l, err
	}
	defer ev.free(l)
	r, err := ev.evaluate(n.right)
	if err != nil {
		return r, err
	}
	defer ev.free(r)

	out := ev.alloc()
	// Almost all operations are of this kind: with a double, everything is one.
	if arithmetic(n.operator) && (l.floating() || r.floating()) {
		computeDoubles(n.operator, out.values, l.values, r.values)
		return out, nil
	}
	for i := range out.values {
		var k kind
		if out.values[i], k, err = compute(n.operator, l.values[i], r.values[i], l.kindAt(i), r.kindAt(i)); err != nil {
			return out, err
		}
		out.setKind(i, k)
	}
	return out, nil
}

func arithmetic(operator string) bool {
	switch operator {
	case "+", "-", "*", "/", "%":
		return true
	}
	return false
}

// computeDoubles is doubles for columns, with separate loops for operations that are cheaper than
// the switch on the operator.
func computeDoubles(operator string, out, l, r []float64) {
	// With equal lengths the compiler leaves out bounds checks in the loops.
	l, r = l[:len(out)], r[:len(out)]
	switch operator {
	case "+":
		for i := range out {
			out[i] = l[i] + r[i]
		}
	case "-":
		for i := range out {
			out[i] = l[i] - r[i]
		}
	case "*":
		for i := range out {
			out[i] = l[i] * r[i]
		}
	default:
		for i := range out {
			out[i] = doubles(operator, l[i], r[i])
		}
	}
}

// choice computes both branches at all rows, and takes each row from the one that its condition wants.
func (ev *evaluator) choice(n *choice) (block, error) {
	condition, err := ev.evaluate(n.condition)
	if err != nil {
		return condition, err
	}
	defer ev.free(condition)

	// Of condition ?: no, the condition is the value where it is true.
	yes := condition
	if n.yes != nil {
		if yes, err = ev.evaluate(n.yes); err != nil {
			return yes, err
		}
		defer ev.free(yes)
	}
	no, err := ev.evaluate(n.no)
	if err != nil {
		return no, err
	}
	defer ev.free(no)

	out := ev.alloc()
	for i, v := range condition.values {
		from := &no
		if truth(v) {
			from = &yes
		}
		out.values[i] = from.values[i]
		out.setKind(i, from.kindAt(i))
	}
	return out, nil
}
