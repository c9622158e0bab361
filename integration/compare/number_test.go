package compare

import (
	"encoding/json"
	"math"
	"strconv"
)

// text writes a double so that it reads back to the same bits.
func text(x float64) json.Number { return json.Number(strconv.FormatFloat(x, 'e', -1, 64)) }

// next is the double after x in the order of ulpDistance, where -0.0 and 0.0
// are two neighbours.
func next(x float64) float64 {
	if x == 0 && math.Signbit(x) {
		return 0
	}
	if y := math.Nextafter(x, math.Inf(1)); y != 0 {
		return y
	}
	return math.Copysign(0, -1)
}
