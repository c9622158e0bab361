package java_test

import (
	"strconv"
	"testing"

	"downpour/gateway/java"
	"downpour/gateway/java/javatest"
)

// Numbers are read as Java reads them, and refused where it refuses them.
func TestNumbers(t *testing.T) {
	for _, n := range javatest.Numbers(t) {
		check(t, n.Text, "long", n.Long, java.ParseLong)
		check(t, n.Text, "int", n.Int, java.ParseInt)
		check(t, n.Text, "double", n.Double, java.ParseDouble)
		check(t, n.Text, "float", n.Float, java.ParseFloat)
	}
}

func check[T int64 | int32 | float64 | float32](
	t *testing.T, text, kind string, want *string, parse func(string) (T, error),
) {
	t.Helper()
	got, err := parse(text)
	switch {
	case want == nil && err == nil:
		t.Errorf("%q as a %s: got %v, want it refused", text, kind, got)
	case want != nil && err != nil:
		t.Errorf("%q as a %s: %v, want %s", text, kind, err, *want)
	case want != nil:
		// Java's spelling of a number is one that Go reads; an integer is spelled the same.
		bits := map[string]int{"double": 64, "float": 32}[kind]
		if bits == 0 {
			if shown := strconv.FormatInt(int64(got), 10); shown != *want {
				t.Errorf("%q as a %s: got %s, want %s", text, kind, shown, *want)
			}
			return
		}
		v, err := strconv.ParseFloat(*want, bits)
		if err != nil || T(v) != got && v == v {
			t.Errorf("%q as a %s: got %v, want %s", text, kind, got, *want)
		}
	}
}
