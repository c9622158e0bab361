package expression

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// evaluate evaluates an expression of a and b at one row.
func evaluate(t *testing.T, text string, a, b float64) (float64, error) {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		return 0, err
	}
	var columns [][]float64
	for _, name := range e.Variables {
		columns = append(columns, map[string][]float64{"a": {a}, "b": {b}}[name])
	}
	dst := make([]float64, 1)
	err = e.Evaluate(dst, columns)
	return dst[0], err
}

func TestEvaluate(t *testing.T) {
	nan := math.NaN()
	f := func(text string, a, b, want float64) {
		t.Helper()
		got, err := evaluate(t, text, a, b)
		same := cmp.Equal(want, got, cmpopts.EquateNaNs()) && math.Signbit(want) == math.Signbit(got)
		if err != nil || !same {
			t.Errorf("%s of %v and %v: %v, %v, want %v", text, a, b, got, err, want)
		}
	}
	f("a + b * 2", 1, 2, 5)
	f("(a + b) * 2", 1, 2, 6)
	f("a - b - 1", 5, 2, 2)
	f("a div b", 7, 2, 3.5)
	f("a mod b", -7, 3, -1)
	f("a % 3", -3, 0, math.Copysign(0, -1))
	f("-a", 0, 0, math.Copysign(0, -1))
	f("-a * -b", 2, 3, 6)

	// A division by zero yields 0.
	f("a / b", 7, 0, 0)
	f("a % b", 7, 0, 0)
	f("a + 7 / 0", 1, 0, 1)

	// Constants have Java's types: integers are divided as such, and fractions are floats of 4
	// bytes unless they end in d.
	f("a + 7 / 2", 1, 0, 4)
	f("a + -7 / 2", 1, 0, -2)
	f("a + -7 % 3", 1, 0, 3)
	f("a + 7 / 2.0", 1, 0, 4.5)
	f("a + 0.123456789", 0, 0, 0.12345679)
	f("a + 0.123456789d", 0, 0, 0.123456789)
	f("a + 16777217.0", 0, 0, 16777216)
	f("a + 16777217", 0, 0, 16777217)
	f("a * 1.5f", 2, 0, 3)
	f("a + 7l / 2h", 0, 0, 3)
	f("a + 0.1 + 0.2", 0, 0, 0.30000000000000004)
	f("a + (5 & 3) / 2", 0, 0, 0)
	f("a + (6.9 | 1) + (~0) + (5 ^ 1)", 0, 0, 7-1+4)
	f("(a > 5 ? 7 : 2) / 2 * 1.0d", 6, 0, 3)
	f("(a > 5 ? 7 : 2.5) / 2", 1, 0, 1.25)

	// Comparisons and logic.
	f("a > b", 2, 1, 1)
	f("a gt b", 1, 1, 0)
	f("a >= b", 1, 1, 1)
	f("a le b", 1, 1, 1)
	f("a != b", 1, 1, 0)
	f("a eq b", 1, 1, 1)
	f("a < b == b > a", 1, 2, 1)
	f("(a < b) * a + (a >= b) * b", 3, 4, 3)
	f("(a < b) + 0.5", 3, 4, 1.5)
	f("(a < b) / a", 4, 5, 0.25)
	f("(a < b) / 2 + a", 4, 5, 4)
	f("a % (a > b)", 4, 5, 0)
	f("-(a < b)", 4, 5, 0)
	f("(a < b) < a", 4, 5, 1)
	f("(a < b) < 2", 4, 5, 1)
	f("(a > b) < (a < b)", 4, 5, 1)
	f("((a < b) | 2) * 1.0", 4, 5, 3)
	f("a && b", 1, 0, 0)
	f("a or b", 0, 3, 1)
	f("!a", 0, 0, 1)
	f("not (a > b) and a", 1, 2, 1)
	f("a || b && 0", 1, 0, 1)
	f("a > b == 1", 2, 1, 1)
	f("a < b", nan, 1, 1) // NaN comes before all numbers
	f("a == b", nan, nan, 1)
	f("a && 1", nan, 0, 0)

	// Conditional expressions.
	f("a > b ? a : b", 2, 1, 2)
	f("a ? 1d : b ? 2d : 3d", 0, 0, 3)
	f("a ?: b", 0, 5, 5)
	f("a ?: b", nan, 5, 5)
	f("a ?: b", 2, 5, 2)
	f("a > 5 ? a : 0.0", 6, 0, 6)
	f("1 > 2 ? a : b", 6, 7, 7)
	f("a * 1000000", 1e306, 0, math.Inf(1))
}

func TestEvaluate_errors(t *testing.T) {
	f := func(text string, a float64, want string) {
		t.Helper()
		if _, err := evaluate(t, text, a, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	f("a > 5 ? a : 0.0", 1, "Expression returned a result of type: java.lang.Float for ")
	f("a > 5 ? 1 : 2", 1, "java.lang.Integer for ")
	f("a & 3", 1, "java.lang.Long for ")
	f("a > 0 ? 3000000000 : a", 1, "java.lang.Long for ")
	f("a > 0 ? 3h : a", 1, "java.math.BigInteger for ")
	f("(a > 1) + 1", 1, "a comparison cannot be computed with an integer or a comparison")
	f("(a > 1) * (a > 2)", 1, "a comparison cannot be computed with an integer or a comparison")
	f("(a > 1) < 3h", 1, "a comparison cannot be computed with an integer or a comparison")
	f("(!2) - (!3)", 1, "cannot evaluate '(!2) - (!3)': a comparison cannot be computed") // constants alone
	f("a + 9007199254740993 * 2", 1, "beyond 9007199254740991")
	f("(a > 0 ? 9007199254740991 : 1) + 1", 1, "beyond 9007199254740991")

	_, err := evaluate(t, "a > 5 ? a : 0.0", 1, 0)
	var result *ResultError
	if !errors.As(err, &result) {
		t.Errorf("error %v, want a *ResultError", err)
	}
}

func TestParse_errors(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := Parse(text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want a *SyntaxError with %q", text, err, want)
		}
	}
	f("", "1:1 parsing error in ''")
	f("a +", "1:4 parsing error in 'a +': want a variable")
	f("a b", "1:3 parsing error")
	f("(a", "want )")
	f("a ? b", "want :")
	f("a < b < c", "something follows")
	f("a == b == c", "something follows")
	f("+a", "want a variable")
	f("a * 1e3", "no exponent")
	f("1.", "a number has")
	f("010 + a", "begins with another digit")
	f("1.5l + a", "no suffix")
	f("5x + a", "no suffix")
	f("1.5d.2", "a number has")
	f(strings.Repeat("9", 400)+"+a", "beyond a double")
	f(strings.Repeat("9", 40)+".0+a", "beyond a float")

	// Constructs of JEXL other than operators are refused.
	f("size(a)", `"size" cannot be used`)
	f("new('java.lang.String', a)", `"new" cannot be used`)
	f("abs(a)", "there are no functions")
	f("a.b", "is no operator")
	f("a; b", "is no operator")
	f("'x' + a", "is no operator")
	f("x = a", "is no operator")
	f("if (a) { b }", `"if" cannot be used`)
	f("math:abs(a)", "something follows")
	f("a[0]", "is no operator")
	f("ä + 1", "is no operator")

	// Bounds.
	f(strings.Repeat("(", MaxDepth)+"a"+strings.Repeat(")", MaxDepth), "nested deeper than")
	f(strings.Repeat("-", MaxDepth)+"a", "nested deeper than")
	f(strings.Repeat("a ? a : ", MaxDepth)+"a", "nested deeper than")
	f("a"+strings.Repeat("+a", MaxLength/2), fmt.Sprint("at most ", MaxLength))
	if _, err := Parse("a" + strings.Repeat("+a", MaxLength/2-1)); err != nil {
		t.Errorf("the longest expression: got %v, want no error", err)
	}
}

func TestParse_variables(t *testing.T) {
	e, err := Parse("b2 + a * b2 - X_$@ div a")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"b2", "a", "X_$@"}, e.Variables); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if want := "((b2 + (a * b2)) - (X_$@ / a))"; e.String() != want {
		t.Errorf("%s, want %s", e, want)
	}
}
