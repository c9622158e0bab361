package compare

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
)

// isFloat distinguishes a float from an integer by its text, as OpenTSDB writes them.
func isFloat(n json.Number) bool { return strings.ContainsAny(string(n), ".eE") }

// sameInteger compares integers of any size.
func sameInteger(a, b json.Number) bool {
	x, okX := new(big.Int).SetString(string(a), 10)
	y, okY := new(big.Int).SetString(string(b), 10)
	return okX && okY && x.Cmp(y) == 0
}

// floats compares two floats: equal to the last bit, else how far apart. Texts
// beyond the range of a double are equal only as text.
func floats(a, b json.Number) (same bool, ulps uint64, relative float64) {
	x, errX := a.Float64()
	y, errY := b.Float64()
	if errX != nil || errY != nil {
		return a == b, math.MaxUint64, math.Inf(1)
	}
	if math.Float64bits(x) == math.Float64bits(y) {
		return true, 0, 0
	}
	return false, ulpDistance(x, y), relativeDistance(x, y)
}

// ulpDistance counts the doubles from x to y. The bits of a double, read as an
// integer, are in the order of the values once those of the negative ones are
// turned round, so -0.0 and 0.0 are neighbours.
func ulpDistance(x, y float64) uint64 {
	a, b := ordered(x), ordered(y)
	if a < b {
		a, b = b, a
	}
	return a - b
}

func ordered(x float64) uint64 {
	bits := math.Float64bits(x)
	if bits>>63 == 1 {
		return ^bits
	}
	return bits | 1<<63
}

func relativeDistance(x, y float64) float64 {
	largest := math.Max(math.Abs(x), math.Abs(y))
	if largest == 0 {
		return 0
	}
	// Halved first: the difference of two huge doubles may overflow.
	return math.Abs(x/2-y/2) / (largest / 2)
}
