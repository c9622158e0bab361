package selfmetrics

import (
	"strings"
	"unicode"
)

// Sanitize replaces what OpenTSDB takes in no name by "_": everything but
// letters of 16 bits, digits and -_./ (Tags.validateString). An empty name becomes "_".
func Sanitize(name string) string {
	if name == "" {
		return "_"
	}
	return strings.Map(func(r rune) rune {
		if r <= 0xFFFF && (unicode.IsLetter(r) || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r)) {
			return r
		}
		return '_'
	}, name)
}
