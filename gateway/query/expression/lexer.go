package expression

import (
	"fmt"
	"strconv"
	"strings"
)

// SyntaxError is returned for a text that is no expression.
type SyntaxError struct {
	Text   string
	Column int // of the fault, from 1
	Reason string
}

// Error begins as JEXL's text does, after its class name.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("1:%d parsing error in '%s': %s", e.Column, e.Text, e.Reason)
}

// symbols are the operators that are no words, longer ones first where one begins
// another.
var symbols = []string{"?:", "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "!", "&", "|", "^",
	"~", "?", ":", "(", ")"}

// words are operators that are written as words, with their symbols.
var words = map[string]string{
	"div": "/", "mod": "%", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&&",
	"or": "||", "not": "!",
}

// reserved are JEXL's other words: it would not take them for variables.
var reserved = map[string]bool{
	"if": true, "else": true, "for": true, "foreach": true, "while": true, "in": true, "var": true, "return": true,
	"new": true, "empty": true, "size": true, "true": true, "false": true, "null": true,
}

// token is an operator by its symbol, a variable by its name, or a constant.
type token struct {
	operator string
	variable string
	constant *constant
	column   int // of its first character, from 1
}

// lexer cuts a text into tokens.
type lexer struct {
	text string
	at   int // bytes read
}

// next returns the next token, at the end the zero token with its column.
func (l *lexer) next() (token, error) {
	for l.at < len(l.text) && strings.IndexByte(" \t\r\n\f", l.text[l.at]) >= 0 {
		l.at++
	}
	t := token{column: l.at + 1}
	rest := l.text[l.at:]
	switch {
	case rest == "":
		return t, nil
	case isDigit(rest[0]):
		return l.number(t)
	case isLetter(rest[0]):
		return l.word(t)
	}

	for _, s := range symbols {
		if strings.HasPrefix(rest, s) {
			l.at += len(s)
			t.operator = s
			return t, nil
		}
	}
	return t, l.fault(t.column, fmt.Sprintf("%q is no operator", []rune(rest)[0]))
}

func (l *lexer) fault(column int, reason string) error {
	return &SyntaxError{Text: l.text, Column: column, Reason: reason}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isLetter reports whether a variable may begin with c.
func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '@'
}

// word reads a variable, or an operator that is written as a word.
func (l *lexer) word(t token) (token, error) {
	from := l.at
	for l.at < len(l.text) && (isLetter(l.text[l.at]) || isDigit(l.text[l.at])) {
		l.at++
	}
	word := l.text[from:l.at]
	if symbol, ok := words[word]; ok {
		t.operator = symbol
		return t, nil
	}
	if reserved[word] {
		return t, l.fault(t.column, fmt.Sprintf("%q cannot be used", word))
	}
	t.variable = word
	return t, nil
}

// number reads digits, perhaps with a point and more digits, and a suffix.
func (l *lexer) number(t token) (token, error) {
	from := l.at
	l.digits()
	point := l.at+1 < len(l.text) && l.text[l.at] == '.' && isDigit(l.text[l.at+1])
	if point {
		l.at++
		l.digits()
	}
	digits := l.text[from:l.at]

	suffix := byte(0)
	if l.at < len(l.text) && isLetter(l.text[l.at]) {
		suffix = l.text[l.at] | 0x20 // in lower case
		l.at++
	}
	if l.at < len(l.text) && (isLetter(l.text[l.at]) || isDigit(l.text[l.at]) || l.text[l.at] == '.') {
		return t, l.fault(t.column,
			"a number has digits, a point between digits, and one letter behind them, no exponent")
	}

	c, reason := newConstant(digits, point, suffix)
	if reason != "" {
		return t, l.fault(t.column, reason)
	}
	c.text = l.text[from:l.at]
	t.constant = &c
	return t, nil
}

func (l *lexer) digits() {
	for l.at < len(l.text) && isDigit(l.text[l.at]) {
		l.at++
	}
}

// newConstant returns the value of a number, or why it has none.
func newConstant(digits string, point bool, suffix byte) (c constant, reason string) {
	switch {
	case suffix == 'd':
		return doubleOf(digits)
	case suffix == 'f' || point && suffix == 0:
		return floatOf(digits)
	case point || suffix != 0 && suffix != 'l' && suffix != 'h':
		return c, fmt.Sprintf("%q is no suffix of such a number", suffix)
	case len(digits) > 1 && digits[0] == '0':
		// JEXL reads some of them as octal.
		return c, "an integer begins with another digit than 0"
	}
	return integerOf(digits, suffix)
}

func doubleOf(digits string) (constant, string) {
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return constant{}, "the number is beyond a double"
	}
	return constant{value: v, kind: double}, ""
}

// floatOf returns a float of 32 bits. JEXL computes with the double that its shortest
// text means. Source: JexlArithmetic.toDouble.
func floatOf(digits string) (constant, string) {
	short, err := strconv.ParseFloat(digits, 32)
	if err != nil {
		return constant{}, "the number is beyond a float of 32 bits, write it with the suffix d"
	}
	v, _ := strconv.ParseFloat(strconv.FormatFloat(short, 'g', -1, 32), 64)
	return constant{value: v, kind: float}, ""
}

// integerOf returns an integer of the smallest kind that holds it, with the suffix l at least a
// long, with h a big integer.
func integerOf(digits string, suffix byte) (constant, string) {
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return constant{}, "the number is beyond a double"
	}
	c := constant{value: v, kind: bigInteger}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil && suffix != 'h' {
		c.kind = long
		if n == int64(int32(n)) && suffix == 0 {
			c.kind = integer
		}
	}
	return c, ""
}
