package expression

import (
	"math"
	"strings"
	"testing"

	_ "downpour/encoding/seedtest" // gives rapid its seed

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// drawText draws the text of an expression of the variables a, b and c.
func drawText(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]string{"a", "b", "c", "a", "b", "7", "0", "2", "1.5", "0.1d", "3l", "2f"}).Draw(t,
			"value")
	}
	part := func() string { return drawText(t, depth-1) }
	switch rapid.IntRange(0, 9).Draw(t, "form") {
	case 0:
		return rapid.SampledFrom([]string{"-", "!", "not ", "~"}).Draw(t, "operator") + "(" + part() + ")"
	case 1:
		return "(" + part() + " ? " + part() + " : " + part() + ")"
	case 2:
		return "(" + part() + " ?: " + part() + ")"
	}
	operators := []string{"+", "-", "*", "/", "%", "+", "-", "*", "div", "mod", "==", "!=", "<", "<=", ">", ">=", "eq",
		"lt", "&&", "||", "and", "or", "&", "|", "^"}
	text := part() + " " + rapid.SampledFrom(operators).Draw(t, "operator") + " " + part()
	if rapid.Bool().Draw(t, "parentheses") {
		return "(" + text + ")"
	}
	return text
}

// Printing an expression and parsing the print gives the same expression.
func TestPrintParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, 4)
		e, err := Parse(text)
		if err != nil {
			return // a chained comparison, or arithmetic with one
		}
		again, err := Parse(e.String())
		if err != nil {
			t.Fatalf("%s prints as %s: %v", text, e, err)
		}
		if again.String() != e.String() || !cmp.Equal(again.Variables, e.Variables) {
			t.Fatalf("%s prints as %s, and that as %s", text, e, again)
		}
	})
}

// point evaluates a tree at one row, node by node: the expected value.
func point(n node, row []float64) (float64, kind, error) {
	switch n := n.(type) {
	case *constant:
		return n.value, n.kind, nil
	case *variable:
		return row[n.index], double, nil
	case *unary:
		x, k, err := point(n.x, row)
		if err != nil {
			return 0, 0, err
		}
		return computeUnary(n.operator, x, k)
	case *binary:
		l, lk, err := point(n.left, row)
		if err != nil {
			return 0, 0, err
		}
		r, rk, err := point(n.right, row)
		if err != nil {
			return 0, 0, err
		}
		return compute(n.operator, l, r, lk, rk)
	}
	c := n.(*choice)
	v, k, err := point(c.condition, row)
	switch {
	case err != nil:
		return 0, 0, err
	case truth(v) && c.yes == nil:
		return v, k, nil
	case truth(v):
		return point(c.yes, row)
	}
	return point(c.no, row)
}

// If an expression can be evaluated on columns, each row has the value that point gives. Columns
// may fail where point does not: by an error in the branch of a conditional that is not taken.
func TestColumnsArePoints(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		e, err := Parse(drawText(t, 4))
		if err != nil {
			return
		}
		n := rapid.SampledFrom([]int{1, 3, blockRows, blockRows + 1}).Draw(t, "rows")
		columns := make([][]float64, len(e.Variables))
		pool := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, -1, 2, 7, -7, 0.5, 1e300, math.NaN(),
			math.Copysign(0, -1)}), 8, 8).Draw(t, "values")
		for i := range columns {
			columns[i] = make([]float64, n)
			for k := range columns[i] {
				columns[i][k] = pool[(k*(i+1)+k/3)%len(pool)]
			}
		}
		got := make([]float64, n)
		if err := e.Evaluate(got, columns); err != nil {
			return
		}
		for k := range n {
			row := make([]float64, len(columns))
			for i := range columns {
				row[i] = columns[i][k]
			}
			want, kind, err := point(e.root, row)
			if err != nil || kind != double && kind != boolean {
				t.Fatalf("%s of %v: %v, %v; as columns %v", e, row, err, kind, got[k])
			}
			if !cmp.Equal(want, got[k], cmpopts.EquateNaNs()) ||
				math.Signbit(want) != math.Signbit(got[k]) && !math.IsNaN(want) {
				t.Fatalf("%s of %v: %v, as columns %v", e, row, want, got[k])
			}
			compared++
		}
	})
	if compared == 0 {
		t.Error("no point was compared")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a + b", "a > 1 ? a : 0.0", "a ?: b", "-~!a", "1.5f * a % 7l", "((a", "a;b", "x = a",
		"not a and b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		if printed := e.String(); len(printed) <= MaxLength && strings.Count(printed, "(") < MaxDepth {
			if again, err := Parse(printed); err != nil || again.String() != printed {
				t.Fatalf("%q prints as %q, and that as %v, %v", text, printed, again, err)
			}
		}
		columns := make([][]float64, len(e.Variables))
		for i := range columns {
			columns[i] = []float64{0, 1.5, math.NaN()}
		}
		_ = e.Evaluate(make([]float64, 3), columns) // any error, no panic
	})
}
