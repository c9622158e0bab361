package httpio

import (
	"math"
	"strconv"

	"downpour/encoding"
)

// NaNIsText makes AppendValue write NaN as "NaN".
const NaNIsText = false

// AppendValue appends a point's value as OpenTSDB's JSON has it: integers plain,
// doubles as Java's Double.toString writes them, NaN as the string "NaN" or, if
// the fill policy is null, as null. Infinities, which percentiles of huge bounds can
// be, are strings too.
func AppendValue(dst []byte, v encoding.Value, nanIsNull bool) []byte {
	switch {
	case !v.Float:
		return strconv.AppendInt(dst, v.Int(), 10)
	case math.IsInf(v.Double(), 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v.Double(), -1):
		return append(dst, `"-Infinity"`...)
	case !math.IsNaN(v.Double()):
		return appendDouble(dst, v.Double())
	case nanIsNull:
		return append(dst, "null"...)
	}
	return append(dst, `"NaN"`...)
}

// appendDouble appends a finite double as Java writes it.
func appendDouble(dst []byte, v float64) []byte { return encoding.AppendJavaDouble(dst, v) }
