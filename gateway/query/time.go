package query

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// clock has what relative times and dates depend on.
type clock struct {
	now  time.Time
	zone *time.Location // of dates without a zone of their own
}

// parseTime parses a time and returns ms since 1970. zone is the query's timezone, "" for
// none. Source: DateTime.parseDateTimeString.
//
//	1356998400      at most 10 characters: seconds
//	1356998400000   more: milliseconds
//	1356998400.250  ten digits, a dot, one to three digits; the dot is deleted
//	1356998400ms    milliseconds
//	now, 1h-ago, 2013/01/01, 2013/01/01-00:00, 2013/01/01-00:00:00
func (c clock) parseTime(text, zone string) (int64, error) {
	if digits, ok := strings.CutSuffix(text, "ms"); ok && allDigits(digits) {
		return parseLong(digits)
	}

	lower := strings.ToLower(text)
	if lower == "now" {
		return c.now.UnixMilli(), nil
	}
	if strings.HasSuffix(lower, "-ago") {
		d, err := ParseDuration(text[:len(text)-len("-ago")])
		return c.now.UnixMilli() - d, err
	}

	if strings.ContainsAny(text, "/:") {
		return c.parseDate(text, zone)
	}
	return parseNumericTime(text)
}

// parseNumericTime reads a time of digits, and perhaps a dot before its milliseconds, and
// returns ms. A text of up to ten characters is in seconds, a longer one in ms.
func parseNumericTime(text string) (int64, error) {
	digits := text
	if strings.Contains(text, ".") {
		if !dottedMillis(text) {
			return 0, fmt.Errorf(
				"Invalid time: %s. Millisecond timestamps must be in the format <seconds>.<ms> "+
					"where the milliseconds are limited to 3 digits",
				text)
		}
		// OpenTSDB, too, only deletes the dot: with fewer than three decimals the time is
		// in 1970.
		digits = strings.Replace(text, ".", "", 1)
	}

	t, err := parseLong(digits)
	if err != nil {
		return 0, fmt.Errorf("Invalid time: %s. %w", text, err)
	}
	if t < 0 {
		return 0, fmt.Errorf("Invalid time: %s. Negative timestamps are not supported.", text)
	}
	if utf8.RuneCountInString(text) <= 10 {
		t *= 1000
	}
	return t, nil
}

// dottedMillis reports whether text is ten digits, a dot, one to three digits.
func dottedMillis(text string) bool {
	seconds, millis, _ := strings.Cut(text, ".")
	return len(seconds) == 10 && len(millis) >= 1 && len(millis) <= 3 && allDigits(seconds) && allDigits(millis)
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// parseLong parses an integer. Its errors are those of Tags.parseLong.
func parseLong(s string) (int64, error) {
	if s == "" {
		return 0, errors.New("Empty string")
	}

	digits, maxLen := s, 19 // as many digits as the largest long
	if s[0] == '+' || s[0] == '-' {
		digits, maxLen = s[1:], 20
	}
	if digits == "" {
		return 0, errors.New("Just a sign, no value: " + s)
	}
	if len(s) > maxLen {
		return 0, errors.New("Value too long: " + s)
	}
	for _, r := range digits {
		if r < '0' || r > '9' {
			return 0, fmt.Errorf("Invalid character '%c' in %s", r, s)
		}
	}

	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, errors.New("Overflow in " + s)
	}
	return n, nil
}

// unitMS has the duration units in ms. A month counts as 30 days, a year as 365.
var unitMS = map[string]int64{
	"ms": 1, "s": 1000, "m": 60_000, "h": 3600_000, "d": 86400_000,
	"w": 7 * 86400_000, "n": 30 * 86400_000, "y": 365 * 86400_000,
}

// unitOf returns the unit that a duration has by the text behind its number, which is not empty: the last character
// in lower case, or ms, whose m is a small one. Source: DateTime.parseDuration.
func unitOf(text string) string {
	last := len(text) - 1
	unit := strings.ToLower(text[last:])
	if unit == "s" && last > 0 && text[last-1] == 'm' {
		return "ms"
	}
	return unit
}

// ParseDuration parses a duration such as 5m or 300ms and returns ms. It reads the leading
// digits and the last character, in upper or lower case, as the unit: s, m, h, d, w, n or y,
// or ms. What is between them is ignored, as in OpenTSDB, so 1.5m is one minute.
// Source: DateTime.parseDuration.
func ParseDuration(text string) (int64, error) {
	if text == "" {
		return 0, errors.New("Cannot parse null or empty duration")
	}

	digits := leadingDigits(text)
	if digits == text {
		return 0, errors.New("Invalid duration, must have an integer and unit: " + text)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, errors.New("Invalid duration (number): " + text)
	}
	if n <= 0 {
		return 0, errors.New("Zero or negative duration: " + text)
	}

	ms, ok := unitMS[unitOf(text[len(digits):])]
	if !ok {
		return 0, errors.New("Invalid duration (suffix): " + text)
	}
	if n > math.MaxInt64/ms {
		return 0, errors.New("Duration must be < Long.MAX_VALUE ms: " + text)
	}
	return n * ms, nil
}

func leadingDigits(s string) string {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i]
}
