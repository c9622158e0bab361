// Package gnuformat writes numbers and times by gnuplot's formats, which the parameters
// yformat, y2format and xformat of OpenTSDB's /q hold. It reads no clock and knows nothing
// of pictures. What a format can make is bounded, for every author.
//
//	%.2f     2 digits after the point           1234.5678 → 1234.57
//	%.1s%c   engineering notation               1234.5678 → 1.2k
//	%.0b%BB  powers of 1024                     1048576   → 1MiB
//	%H:%M    a time's hour and minute
//
// Source: gnuplot's "set format" and "set timefmt".
package gnuformat

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bounds of a format: a label is drawn next to an axis, and longer ones would not fit.
const (
	maxFormat    = 100 // bytes
	maxWidth     = 40
	maxPrecision = 20
)

// Number is a format of numbers.
type Number struct{ pieces []numberPiece }

// numberPiece is literal text, and behind it a conversion unless verb is 0.
type numberPiece struct {
	text      string
	flags     string
	width     int
	precision int // -1 for none
	verb      byte
}

// numberVerbs are the conversions. h is like g; d, which gnuplot lacks, is a rounded
// number, because those who know C write it.
const numberVerbs = "feEgGhHdxXotTlLsScbBP"

// ParseNumber reads a format, which has at least one conversion.
func ParseNumber(text string) (*Number, error) {
	if len(text) > maxFormat {
		return nil, fmt.Errorf("a format of %d bytes, at most %d", len(text), maxFormat)
	}

	n := &Number{}
	var literal strings.Builder
	conversions := 0
	for text != "" {
		before, rest, found := strings.Cut(text, "%")
		literal.WriteString(before)
		if text = rest; !found {
			break
		}
		if strings.HasPrefix(text, "%") {
			literal.WriteByte('%')
			text = text[1:]
			continue
		}

		p, rest, err := parseConversion(text)
		if err != nil {
			return nil, err
		}
		p.text = literal.String()
		literal.Reset()
		n.pieces = append(n.pieces, p)
		text = rest
		conversions++
	}

	if conversions == 0 {
		return nil, fmt.Errorf("a format without a conversion such as %%.2f")
	}
	n.pieces = append(n.pieces, numberPiece{text: literal.String()})
	return n, nil
}

// parseConversion reads what stands behind a %.
func parseConversion(text string) (p numberPiece, rest string, err error) {
	rest = strings.TrimLeft(text, "-+ 0#")
	p.flags = text[:len(text)-len(rest)]
	if p.width, rest, err = parseSize(rest, maxWidth); err != nil {
		return p, "", err
	}

	p.precision = -1
	if after, ok := strings.CutPrefix(rest, "."); ok {
		if p.precision, rest, err = parseSize(after, maxPrecision); err != nil {
			return p, "", err
		}
	}
	if rest == "" || !strings.Contains(numberVerbs, rest[:1]) {
		return p, "", fmt.Errorf("an unknown conversion %%%s", text)
	}
	p.verb = rest[0]
	return p, rest[1:], nil
}

// parseSize reads the digits at the beginning of a text, 0 for none.
func parseSize(text string, most int) (n int, rest string, err error) {
	rest = strings.TrimLeft(text, "0123456789")
	digits := text[:len(text)-len(rest)]
	if digits == "" {
		return 0, rest, nil
	}
	if n, err = strconv.Atoi(digits); err != nil || n > most {
		return 0, "", fmt.Errorf("a width or precision of %s, at most %d", digits, most)
	}
	return n, rest, nil
}

// Format returns a number by the format.
func (n *Number) Format(v float64) string {
	var b strings.Builder
	for _, p := range n.pieces {
		b.WriteString(p.text)
		if p.verb != 0 {
			b.WriteString(p.convert(v))
		}
	}
	return b.String()
}

// Prefixes of powers of 1000, from 10^-24 on, and of 1024.
const prefixes = "yzafpnum kMGTPEZY"

// One is where the prefix of 1 stands.
const one = 8

// convert prints v by the verb. gnuplot adds these to C's verbs: t and l are the mantissa to
// base 10 with the power T and L, s to base 1000 with the power S and the prefix c, b to base 1024
// with the prefix B, and P is in multiples of pi.
func (p *numberPiece) convert(v float64) string {
	switch p.verb {
	case 'd', 'x', 'X', 'o':
		return p.integer(v)
	case 'h', 'H':
		return p.float('g', v)
	case 't', 'l':
		return p.mantissa(v, power(v, 10))
	case 'T', 'L':
		return p.padded(strconv.Itoa(power(v, 10)))
	case 's':
		return p.mantissa(v, thousands(v)*3)
	case 'S':
		return p.padded(strconv.Itoa(thousands(v) * 3))
	case 'c':
		return p.padded(prefix(thousands(v)))
	case 'b':
		return p.rest(v / math.Pow(1024, float64(kibis(v))))
	case 'B':
		if text := prefix(kibis(v)); text != "" {
			return p.padded(text + "i")
		}
		// A number below 1024 has no prefix, and no i without one.
		return p.padded("")
	case 'P':
		return p.float('f', v/math.Pi)
	}
	return p.float(p.verb, v)
}

// float prints as C does, which has 6 digits by default.
func (p *numberPiece) float(verb byte, v float64) string {
	precision := p.precision
	if precision < 0 {
		precision = 6
	}
	return fmt.Sprintf(p.beginning()+"."+strconv.Itoa(precision)+string(verb), v)
}

// beginning is the conversion up to its width.
func (p *numberPiece) beginning() string {
	if p.width == 0 { // it would be read as a flag
		return "%" + p.flags
	}
	return "%" + p.flags + strconv.Itoa(p.width)
}

// integer prints the nearest integer, and those beyond 64 bits as a float.
func (p *numberPiece) integer(v float64) string {
	whole := math.Round(v)
	if math.Abs(whole) >= 1<<63 || math.IsNaN(whole) {
		return p.float('g', v)
	}
	return fmt.Sprintf(p.beginning()+string(p.verb), int64(whole))
}

// mantissa prints v without a power of ten.
func (p *numberPiece) mantissa(v float64, power int) string {
	return p.rest(v / math.Pow(10, float64(power)))
}

// rest prints what a power leaves of a number: as short as it can be where no precision is
// requested, for a label has little room.
func (p *numberPiece) rest(v float64) string {
	if p.precision < 0 {
		return p.padded(strconv.FormatFloat(v, 'g', 6, 64))
	}
	return p.float('f', v)
}

func (p *numberPiece) padded(text string) string {
	if strings.Contains(p.flags, "-") {
		return fmt.Sprintf("%-*s", p.width, text)
	}
	return fmt.Sprintf("%*s", p.width, text)
}

// power returns the exponent of v to a base.
func power(v, base float64) int {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	// A little is added, for the logarithm of 1000 is a little less than 3 times that of 10.
	return int(math.Floor(math.Log(math.Abs(v))/math.Log(base) + 1e-12))
}

// thousands returns the power of 1000 that has a prefix.
func thousands(v float64) int { return min(max(power(v, 1000), -one), one) }

// kibis returns the power of 1024 that has a prefix: there is none below 1.
func kibis(v float64) int { return min(max(power(v, 1024), 0), one) }

// prefix returns the prefix of a power of 1000 or 1024, "" for 1.
func prefix(n int) string { return strings.TrimSpace(prefixes[n+one : n+one+1]) }
