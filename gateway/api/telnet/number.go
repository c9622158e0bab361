package telnet

import (
	"fmt"
	"strings"
)

// numberError is the error of a text that is not a number. OpenTSDB calls it an
// invalid value, but a number that is out of range an illegal argument.
type numberError string

// Error is the reason.
func (e numberError) Error() string { return string(e) }

// timeError returns the error of a time that write.ParseTime has refused.
// Source: PutDataPointRpc.importDataPoint.
func timeError(text string) error {
	digits := strings.ReplaceAll(text, ".", "")
	if reason := badLong(digits); reason != "" {
		return numberError(reason)
	}
	return fmt.Errorf("invalid timestamp: %s", digits)
}

// valueError returns the error of a value that write.ParseValue has refused.
// Source: Tags.looksLikeInteger, Float.parseFloat.
func valueError(text string) error {
	if strings.ContainsAny(text, ".eE") {
		return numberError(`For input string: "` + text + `"`)
	}
	return numberError(badLong(text))
}

// badLong returns why a text is not a signed 64-bit integer, or "" if it is one.
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
	case len(digits) > 19: // no number of 64 bits has more
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

// overflows reports whether a number of at most 19 digits is outside 64 bits.
func overflows(digits string, negative bool) bool {
	limit := "9223372036854775807"
	if negative {
		limit = "9223372036854775808"
	}
	return len(digits) == len(limit) && digits > limit
}
