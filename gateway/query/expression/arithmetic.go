package expression

import (
	"errors"
	"fmt"
	"math"
)

// kind is the type that JEXL gives a value. All are held as doubles.
type kind uint8

const (
	double kind = iota
	float
	integer
	long
	bigInteger
	boolean // 0 or 1
)

// javaClasses are the names under which errors show the kinds.
var javaClasses = [...]string{"java.lang.Double", "java.lang.Float", "java.lang.Integer", "java.lang.Long",
	"java.math.BigInteger", "java.lang.Boolean"}

func (k kind) isInteger() bool { return k == integer || k == long || k == bigInteger }

func (k kind) isFloating() bool { return k == double || k == float }

// maxExact bounds integers that compute with each other: up to one more a double holds every
// integer.
const maxExact = 1<<53 - 1

var errInexact = errors.New(
	"integers beyond 9007199254740991 cannot be computed with each other, write one with a point and the suffix d")

// compute applies a binary operator to two values. The error is about a comparison that
// is computed with an integer or a comparison, or an integer beyond maxExact.
func compute(operator string, l, r float64, lk, rk kind) (float64, kind, error) {
	switch operator {
	case "&&":
		return fromBool(truth(l) && truth(r)), boolean, nil
	case "||":
		return fromBool(truth(l) || truth(r)), boolean, nil
	case "==", "!=":
		// With a comparison, a number counts as true or false.
		if lk == boolean || rk == boolean {
			l, r = fromBool(truth(l)), fromBool(truth(r))
		}
		return fromBool((order(l, r) == 0) == (operator == "==")), boolean, nil
	}

	// JEXL makes big integers of both operands, and cannot make one of a comparison.
	if lk == boolean && rk == bigInteger || lk == bigInteger && rk == boolean {
		if ordered(operator) {
			return 0, 0, errComparison(operator)
		}
	}
	switch operator {
	case "<":
		return fromBool(order(l, r) < 0), boolean, nil
	case "<=":
		return fromBool(order(l, r) <= 0), boolean, nil
	case ">":
		return fromBool(order(l, r) > 0), boolean, nil
	case ">=":
		return fromBool(order(l, r) >= 0), boolean, nil
	case "&", "|", "^":
		return bits(operator, toLong(l), toLong(r))
	}
	switch {
	case lk.isFloating() || rk.isFloating():
		// A comparison counts as 1 or 0, so that (a > b) * a is a where it is above b.
		return doubles(operator, l, r), double, nil
	case lk.isInteger() && rk.isInteger():
		return integers(operator, l, r, lk, rk)
	// The remaining case is a comparison with an integer or with another comparison.
	case operator == "/" || operator == "%":
		return 0, double, nil // what cannot be divided is 0
	}
	return 0, 0, errComparison(operator)
}

func ordered(operator string) bool {
	switch operator {
	case "<", "<=", ">", ">=":
		return true
	}
	return false
}

func errComparison(operator string) error {
	return fmt.Errorf(
		"a comparison cannot be computed with an integer or a comparison: "+
			"it stands next to %s, write the integer with a point",
		operator)
}

// doubles applies an arithmetic operator. Division and modulo by zero give 0.
// Source: Interpreter.visit of ASTDivNode and ASTModNode.
func doubles(operator string, l, r float64) float64 {
	switch operator {
	case "+":
		return l + r
	case "-":
		return l - r
	case "*":
		return l * r
	case "/":
		if r == 0 {
			return 0
		}
		return l / r
	}
	if r == 0 {
		return 0
	}
	return math.Mod(l, r)
}

// integers applies an arithmetic operator to integers. A modulo is never negative, and
// what cannot be divided gives the double 0.
// Source: JexlArithmetic.divide, mod, narrowBigInteger.
func integers(operator string, l, r float64, lk, rk kind) (float64, kind, error) {
	if math.Abs(l) > maxExact || math.Abs(r) > maxExact {
		return 0, 0, errInexact
	}

	out := 0.0
	switch operator {
	case "+":
		out = l + r
	case "-":
		out = l - r
	case "*":
		out = l * r
	case "/":
		if r == 0 {
			return 0, double, nil
		}
		out = float64(int64(l) / int64(r))
	case "%":
		if r <= 0 { // BigInteger.mod has no other divisors
			return 0, double, nil
		}
		out = float64((int64(l)%int64(r) + int64(r)) % int64(r))
	}
	if math.Abs(out) > maxExact {
		return 0, 0, errInexact
	}
	return out, narrowest(out, max(lk, rk)), nil
}

// narrowest returns the kind of an integer that was computed from integers, given the widest of
// them.
func narrowest(v float64, widest kind) kind {
	if widest == integer && v != float64(int32(v)) {
		return long
	}
	return widest
}

// bits applies an operator to the bits of integers.
func bits(operator string, l, r int64) (float64, kind, error) {
	switch operator {
	case "&":
		return float64(l & r), long, nil
	case "|":
		return float64(l | r), long, nil
	}
	return float64(l ^ r), long, nil
}

// toLong cuts the fraction off as Java's cast does: NaN is 0, and what is too large is
// the largest. Source: JexlArithmetic.toLong.
func toLong(v float64) int64 {
	switch {
	case math.IsNaN(v):
		return 0
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	}
	return int64(v)
}

// computeUnary applies a unary operator.
func computeUnary(operator string, v float64, k kind) (float64, kind, error) {
	switch {
	case operator == "!":
		return fromBool(!truth(v)), boolean, nil
	case operator == "~":
		return float64(^toLong(v)), long, nil
	case k == boolean:
		return fromBool(!truth(v)), boolean, nil // as JexlArithmetic.negate does
	case k.isInteger():
		return 0 - v, k, nil // an integer has no negative 0
	}
	return -v, k, nil
}

// truth reports whether a value counts as true. Source: JexlArithmetic.toBoolean.
func truth(v float64) bool { return v != 0 && !math.IsNaN(v) }

func fromBool(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// order compares two values; NaN equals itself and comes before all numbers.
// Source: JexlArithmetic.compare.
func order(l, r float64) int {
	switch {
	case l < r || math.IsNaN(l) && !math.IsNaN(r):
		return -1
	case l > r || math.IsNaN(r) && !math.IsNaN(l):
		return 1
	}
	return 0
}

// fold computes operations on constants, which then cost nothing per row.
func fold(n node) (node, error) {
	switch n := n.(type) {
	case *unary:
		x, err := fold(n.x)
		if err != nil {
			return nil, err
		}
		if c, ok := x.(*constant); ok {
			v, k, err := computeUnary(n.operator, c.value, c.kind)
			return &constant{value: v, kind: k}, err
		}
		return &unary{n.operator, x}, nil
	case *binary:
		return foldBinary(n)
	case *choice:
		return foldChoice(n)
	}
	return n, nil
}

// foldBinary folds both sides, and computes the operation if both are constants.
func foldBinary(n *binary) (node, error) {
	left, err := fold(n.left)
	if err != nil {
		return nil, err
	}
	right, err := fold(n.right)
	if err != nil {
		return nil, err
	}
	l, ok := left.(*constant)
	r, both := right.(*constant)
	if ok && both {
		v, k, err := compute(n.operator, l.value, r.value, l.kind, r.kind)
		return &constant{value: v, kind: k}, err
	}
	return &binary{n.operator, left, right}, nil
}

// foldChoice folds the parts of a choice. A constant condition keeps one branch.
func foldChoice(n *choice) (node, error) {
	out := &choice{}
	for _, part := range []struct {
		from node
		to   *node
	}{{n.condition, &out.condition}, {n.yes, &out.yes}, {n.no, &out.no}} {
		if part.from == nil { // ?: has no second branch
			continue
		}
		folded, err := fold(part.from)
		if err != nil {
			return nil, err
		}
		*part.to = folded
	}

	c, ok := out.condition.(*constant)
	switch {
	case !ok:
		return out, nil
	case !truth(c.value):
		return out.no, nil
	case out.yes == nil:
		return c, nil
	}
	return out.yes, nil
}
