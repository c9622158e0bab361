package settings

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// NumberForm describes the numbers of ParseNumber, for errors.
const NumberForm = "a number, such as 500, 1M (1,000,000) or 64MiB (67,108,864)"

// ParseNumber parses a number of bytes or of anything else. K, M, G or T after it, in capitals, is
// a power of 1,000; with an i after that, of 1,024. A B at the end, for bytes, changes nothing:
//
//	500    1M = 1,000,000    4GB = 4,000,000,000    64Mi = 64MiB = 67,108,864    -1
func ParseNumber(text string) (int64, error) {
	digits := strings.TrimRight(text, "BKMGTi")
	factor, ok := units[text[len(digits):]]
	if ok && text != digits {
		digits = strings.TrimSpace(digits)
	}

	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n > math.MaxInt64/factor || n < math.MinInt64/factor {
		return 0, fmt.Errorf("got %q, want %s", text, NumberForm)
	}
	return n * factor, nil
}

// units are the factors by the letters after the digits.
var units = func() map[string]int64 {
	all := map[string]int64{"": 1, "B": 1}
	decimal, binary := int64(1), int64(1)
	for _, name := range []string{"K", "M", "G", "T"} {
		decimal, binary = decimal*1000, binary*1024 //fault:number-of-decimal-bytes TestParseNumber
		all[name], all[name+"B"] = decimal, decimal
		all[name+"i"], all[name+"iB"] = binary, binary
	}
	return all
}()

// NumberParsers are the parsers of numbers in the form of env.Options.FuncMap: all variables that are numbers are
// read by ParseNumber.
func NumberParsers[F ~func(string) (any, error)]() map[reflect.Type]F {
	return map[reflect.Type]F{
		reflect.TypeFor[int64](): func(text string) (any, error) { return ParseNumber(text) },
		reflect.TypeFor[int](): func(text string) (any, error) {
			n, err := ParseNumber(text)
			if int64(int(n)) != n {
				err = fmt.Errorf("got %q, want at most %d", text, math.MaxInt)
			}
			return int(n), err
		},
	}
}

// Rate parses how many of something are done in a second at most, of the given variable: off, which is 0, or a number.
func Rate(variable, text string, most int64, of string) (float64, error) {
	if text == "off" || text == "" {
		return 0, nil
	}
	n, err := ParseNumber(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%s: got %q, want off or %s, at most %d", variable, text, of, most)
	}
	return float64(n), nil
}
