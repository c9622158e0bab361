package httpio

import (
	"math"
	"strconv"
	"testing"
)

// Doubles are spelled as in OpenTSDB's JSON, by Double.toString of Java 19.
func TestAppendDouble(t *testing.T) {
	f := func(v float64, want string) {
		t.Helper()
		if got := string(appendDouble(nil, v)); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	f(0, "0.0")
	f(math.Copysign(0, -1), "-0.0")
	f(42, "42.0")
	f(0.1, "0.1")
	f(-1.5, "-1.5")
	f(0.001, "0.001")
	f(9.99e-4, "9.99E-4")
	f(1e-4, "1.0E-4")
	f(9999999, "9999999.0")
	f(1e7, "1.0E7")
	f(12345678.9, "1.23456789E7")
	f(-1e10, "-1.0E10")
	f(1e23, "1.0E23")
	f(float64(float32(0.1)), "0.10000000149011612")
	f(math.MaxFloat64, "1.7976931348623157E308")
	// Java writes 4.9E-324, two digits at least; both read back as the same double.
	f(math.SmallestNonzeroFloat64, "5.0E-324")
}

func FuzzAppendDouble(f *testing.F) {
	for _, v := range []float64{0, 1, 1e7, 1e-3, math.Pi, 1e300, 5e-324} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		text := string(appendDouble(nil, v))
		back, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(v) {
			t.Fatalf("%x: %s reads back as %v, %v", math.Float64bits(v), text, back, err)
		}
	})
}
