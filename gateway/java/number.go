// Package java reads numbers in texts as Java does, for OpenTSDB reads those of its clients so:
//
//	"12 "     a long by JSON, after the blank is cut off; no long elsewhere
//	"1.0f"    a double
//	"0x1p3"   a double, 8
//	"1_000"   no number; strconv takes it
//	"inf"     no number; "Infinity" is one
package java

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Trim cuts off what String.trim does: blanks and control characters.
func Trim(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
}

// ParseLong reads an integer as Long.parseLong does: digits of any script, and perhaps a
// sign before them.
func ParseLong(text string) (int64, error) { return parseInteger(text, 64) }

// ParseInt reads an integer as Integer.parseInt does.
func ParseInt(text string) (int32, error) {
	n, err := parseInteger(text, 32)
	return int32(n), err
}

func parseInteger(text string, bits int) (int64, error) {
	n, err := strconv.ParseInt(ascii(text), 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%w: got %q, want an integer of %d bits", errNumber, text, bits)
	}
	return n, nil
}

var errNumber = errors.New("no number")

// ascii replaces digits of other scripts. Unicode lists them in tens, from 0 to 9.
func ascii(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		for _, t := range unicode.Nd.R16 {
			if rune(t.Lo) <= r && r <= rune(t.Hi) {
				return '0' + (r-rune(t.Lo))%10
			}
		}
		return r
	}, text)
}

// ParseDouble reads a number as Double.parseDouble does. One that is too large is infinite.
func ParseDouble(text string) (float64, error) { return parseFloat(text, 64) }

// ParseFloat reads a number as Float.parseFloat does.
func ParseFloat(text string) (float32, error) {
	v, err := parseFloat(text, 32)
	return float32(v), err
}

func parseFloat(text string, bits int) (float64, error) {
	number := Trim(text)
	unsigned := strings.TrimPrefix(number, "-")
	if unsigned == number {
		unsigned = strings.TrimPrefix(number, "+")
	}
	switch unsigned {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1 - 2*strings.Count(number, "-")), nil
	}

	letters := "eE"
	hex := len(unsigned) > 1 && unsigned[1]|0x20 == 'x'
	if hex {
		letters = "xXpPabcdefABCDEF"
	}
	// A hexadecimal number has its suffix behind the exponent, in which no d and f are digits.
	if !hex || strings.ContainsAny(unsigned, "pP") {
		if n := len(number); n > 0 && strings.IndexByte("fFdD", number[n-1]) >= 0 {
			number = number[:n-1]
		}
	}
	// strconv also reads underscores, "inf" and "nan".
	for _, c := range []byte(number) {
		if c-'0' > 9 && c != '.' && c != '-' && c != '+' && strings.IndexByte(letters, c) < 0 {
			return 0, fmt.Errorf("%w: got %q", errNumber, text)
		}
	}
	v, err := strconv.ParseFloat(number, bits)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // with which comes an infinity
		return 0, fmt.Errorf("%w: got %q", errNumber, text)
	}
	return v, nil
}
