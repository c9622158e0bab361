package telnet

import (
	"fmt"
	"strings"
)

// numberError is a refused number: OpenTSDB calls times and values that do not
// parse an invalid value, those that parse and are out of range an illegal
// argument.
type numberError string

// Error is the reason alone.
func (e numberError) Error() string { return string(e) }

// timeError words a refused time. Source: PutDataPointRpc.importDataPoint.
func timeError(text string) error {
	digits := strings.Replace(text, ".", "", 1)
	if reason := badLong(digits); reason != "" {
		return numberError(reason)
	}
	return fmt.Errorf("invalid timestamp: %s", digits)
}

// valueError words a refused value. Source: Tags.looksLikeInteger,
// Float.parseFloat.
func valueError(text string) error {
	if strings.ContainsAny(text, ".eE") {
		return numberError(`For input string: "` + text + `"`)
	}
	return numberError(badLong(text))
}

// badLong says why a text is no signed 64-bit integer; "" if it may be one.
// Source: Tags.parseLong.
func badLong(text string) string {
	digits := text
	if text != "" && (text[0] == '+' || text[0] == '-') {
		digits = text[1:]
	}
	switch {
	case text == "":
		return "Empty string"
	case digits == "":
		return "Just a sign, no value: " + text
	case len(digits) > 19:
		return "Value too long: " + text
	}
	for _, r := range digits {
		if r < '0' || r > '9' {
			return fmt.Sprintf("Invalid character '%c' in %s", r, text)
		}
	}
	if overflows(digits, text[0] == '-') {
		return "Overflow in " + text
	}
	return ""
}

// overflows compares digits, at most 19, with the limits of 64 bits.
func overflows(digits string, negative bool) bool {
	limit := "9223372036854775807"
	if negative {
		limit = "9223372036854775808"
	}
	return len(digits) == len(limit) && digits > limit
}
