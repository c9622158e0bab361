// Package jackson reads a JSON body as Jackson does, OpenTSDB's library for JSON, as OpenTSDB
// has it configured. Every body that OpenTSDB knows is read here alone:
//
//	{"value":NaN}               NaN, Infinity, +Infinity, -Infinity, +INF and -INF are numbers
//	{"timestamp":"1356998400 "} numbers may be texts, with blanks around them
//	{"timestamp":1.3569984e9}   integers may have a fraction, which is cut off
//	{"metric":7,"global":1}     texts may be numbers or booleans, booleans may be integers
//	{"Metric":"m"}              is not "metric": keys are compared exactly, others ignored
//	{"metric":"a","metric":"b"} the last one counts
//
// Reader reads tokens, Token converts one, and Decode reads a value of Go.
package jackson

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is what a token is.
type Kind byte

// The kinds of tokens.
const (
	Null Kind = iota
	Bool
	Integer // without fraction and exponent
	Float   // any other number
	Text
	Object    // {
	EndObject // }
	List      // [
	EndList   // ]
	key
)

// Token is one token of a body. Text is that of a scalar: what stands between the quotes of a
// text, without escapes; anything else as it is written.
type Token struct {
	Kind Kind
	Text string
}

// String shows a token in an error.
func (t Token) String() string {
	switch t.Kind {
	case Object:
		return "{"
	case EndObject:
		return "}"
	case List:
		return "["
	case EndList:
		return "]"
	case Text, key:
		return strconv.Quote(t.Text)
	}
	return t.Text
}

// Reader reads a body token by token.
type Reader struct {
	body  []byte
	at    int    // the next byte to read
	from  int    // where the last token of a value begins
	open  []byte // the brackets that are open
	wants wants
}

// wants is what may come next.
type wants byte

const (
	wantValue   wants = iota
	wantFirst         // a key or value, or the bracket's end
	wantAnother       // a comma, or the bracket's end
	wantNothing       // the body is read
)

// NewReader returns a reader of a body. No byte of it may be changed while it reads.
func NewReader(body []byte) *Reader { return &Reader{body: body} }

// fault is an error at the next byte.
func (r *Reader) fault(want string) error {
	if r.at >= len(r.body) {
		return fmt.Errorf("JSON ends at byte %d, want %s", r.at, want)
	}
	c, _ := utf8.DecodeRune(r.body[r.at:])
	return fmt.Errorf("JSON at byte %d: got %q, want %s", r.at, c, want)
}

// Next returns the next token of a value. A key of an object comes as a text.
func (r *Reader) Next() (Token, error) {
	c := r.peek()
	if r.wants == wantNothing {
		return Token{}, errors.New("JSON is read to its end")
	}

	inside := byte(0)
	if n := len(r.open); n > 0 {
		inside = r.open[n-1]
	}
	if r.wants != wantValue && c == inside+2 { // in ASCII ] and } come two after [ and {
		return r.close(inside)
	}
	if r.wants == wantAnother {
		if c != ',' {
			return Token{}, r.fault("a comma or " + strconv.QuoteRune(rune(inside+2)))
		}
		r.at++
		c = r.peek()
	}
	if inside == '{' && r.wants != wantValue {
		return r.key(c)
	}
	return r.value(c)
}

// peek passes blanks and returns the byte behind them, 0 at the end.
func (r *Reader) peek() byte {
	for r.at < len(r.body) {
		switch c := r.body[r.at]; c {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// close reads the end of a bracket.
func (r *Reader) close(bracket byte) (Token, error) {
	r.at++
	r.open = r.open[:len(r.open)-1]
	r.read()
	if bracket == '{' {
		return Token{Kind: EndObject}, nil
	}
	return Token{Kind: EndList}, nil
}

// read is called when a value has been read.
func (r *Reader) read() {
	r.wants = wantAnother
	if len(r.open) == 0 {
		r.wants = wantNothing
	}
}

// key reads a key and the colon behind it.
func (r *Reader) key(c byte) (Token, error) {
	if c != '"' {
		return Token{}, r.fault("a key in quotes")
	}
	text, err := r.text()
	if err != nil {
		return Token{}, err
	}
	if r.peek() != ':' {
		return Token{}, r.fault("a colon")
	}
	r.at++
	r.wants = wantValue
	return Token{key, text}, nil
}

// words are the values that begin with a letter.
var words = []Token{{Null, "null"}, {Bool, "true"}, {Bool, "false"}, {Float, "NaN"}, {Float, "Infinity"}}

// value reads a value, of an object or a list its bracket.
func (r *Reader) value(c byte) (Token, error) {
	r.from = r.at
	switch {
	case c == '{' || c == '[':
		r.at++
		r.open, r.wants = append(r.open, c), wantFirst
		if c == '{' {
			return Token{Kind: Object}, nil
		}
		return Token{Kind: List}, nil
	case c == '"':
		text, err := r.text()
		r.read()
		return Token{Text, text}, err
	case c == '-' || c == '+' || c-'0' <= 9:
		return r.number()
	}
	for _, w := range words {
		if r.word(w.Text) {
			r.read()
			return w, nil
		}
	}
	return Token{}, r.fault("a value")
}

// word reads a word, if it is next.
func (r *Reader) word(w string) bool {
	end := r.at + len(w)
	if end > len(r.body) || string(r.body[r.at:end]) != w {
		return false
	}
	if end < len(r.body) {
		if c := r.body[end]; c >= utf8.RuneSelf || c|0x20-'a' < 26 || c-'0' <= 9 || c == '_' || c == '$' {
			return false // a longer word
		}
	}
	r.at = end
	return true
}

// number reads a number, which has a sign only before a digit, or a minus.
func (r *Reader) number() (Token, error) {
	from, kind := r.at, Integer
	negative := r.skip('-')
	if !negative && r.skip('+') || negative && r.at < len(r.body) && r.body[r.at] == 'I' {
		if !r.word("INF") && !r.word("Infinity") {
			return Token{}, r.fault("INF or Infinity")
		}
		r.read()
		return Token{Float, string(r.body[from:r.at])}, nil
	}

	if r.skip('0') {
		if r.at < len(r.body) && r.body[r.at]-'0' <= 9 {
			return Token{}, r.fault("no digit behind a leading zero")
		}
	} else if !r.digits() {
		return Token{}, r.fault("a digit")
	}
	if r.skip('.') {
		if kind = Float; !r.digits() {
			return Token{}, r.fault("a digit behind the point")
		}
	}
	if r.skip('e') || r.skip('E') {
		if !r.skip('+') {
			r.skip('-')
		}
		if kind = Float; !r.digits() {
			return Token{}, r.fault("a digit of the exponent")
		}
	}
	r.read()
	return Token{kind, string(r.body[from:r.at])}, nil
}

// skip reads the byte c, if it is next.
func (r *Reader) skip(c byte) bool {
	if r.at < len(r.body) && r.body[r.at] == c {
		r.at++
		return true
	}
	return false
}

// digits reads digits, if some are next.
func (r *Reader) digits() bool {
	from := r.at
	for r.at < len(r.body) && r.body[r.at]-'0' <= 9 {
		r.at++
	}
	return r.at > from
}

// text reads a text in quotes.
func (r *Reader) text() (string, error) {
	r.at++
	for from, b := r.at, r.body; r.at < len(b); r.at++ {
		switch c := b[r.at]; {
		case c == '"':
			r.at++
			return string(b[from : r.at-1]), nil
		case c == '\\' || c < ' ' || c >= utf8.RuneSelf:
			return r.longText(append(make([]byte, 0, 2*(r.at-from)+16), b[from:r.at]...))
		}
	}
	return "", r.fault("the end of a text")
}

// longText reads the rest of a text that has escapes or characters beyond ASCII. Bytes that
// are no UTF-8 become U+FFFD.
func (r *Reader) longText(text []byte) (string, error) {
	for r.at < len(r.body) {
		switch c := r.body[r.at]; {
		case c == '"':
			r.at++
			return string(text), nil
		case c < ' ':
			return "", r.fault("an escape in place of a control character")
		case c == '\\':
			r.at++
			char, err := r.escape()
			if err != nil {
				return "", err
			}
			text = utf8.AppendRune(text, char)
		default:
			char, n := utf8.DecodeRune(r.body[r.at:])
			text = utf8.AppendRune(text, char)
			r.at += n
		}
	}
	return "", r.fault("the end of a text")
}

// escapes are the characters that follow a backslash, and what they stand for.
var escapes = map[byte]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads what follows a backslash. Half of a character is U+FFFD.
func (r *Reader) escape() (rune, error) {
	if r.at < len(r.body) && r.body[r.at] != 'u' {
		if char, ok := escapes[r.body[r.at]]; ok {
			r.at++
			return char, nil
		}
	}
	high, err := r.unicode()
	if err != nil || !utf16.IsSurrogate(high) {
		return high, err
	}
	if before := r.at; r.skip('\\') {
		low, err := r.unicode()
		if both := utf16.DecodeRune(high, low); err == nil && both != utf8.RuneError {
			return both, nil
		}
		r.at = before // something of its own, or a fault that is found there
	}
	return utf8.RuneError, nil
}

// unicode reads u and four hexadecimal digits.
func (r *Reader) unicode() (rune, error) {
	if !r.skip('u') {
		return 0, r.fault(`one of "\/bfnrtu behind a backslash`)
	}
	var char rune
	for range 4 {
		n := -1
		if r.at < len(r.body) {
			n = hexDigit(r.body[r.at])
		}
		if n < 0 {
			return 0, r.fault("a hexadecimal digit")
		}
		char = 16*char + rune(n)
		r.at++
	}
	return char, nil
}

// hexDigit returns the value of a hexadecimal digit, -1 for another byte.
func hexDigit(c byte) int {
	switch lower := c | 0x20; {
	case c-'0' <= 9:
		return int(c - '0')
	case lower-'a' < 6:
		return int(lower-'a') + 10
	}
	return -1
}

// Skip passes the rest of the value that begins with t.
func (r *Reader) Skip(t Token) error {
	if t.Kind != Object && t.Kind != List {
		return nil
	}
	for depth := len(r.open); len(r.open) >= depth; {
		if _, err := r.Next(); err != nil {
			return err
		}
	}
	return nil
}

// End refuses what follows the value. OpenTSDB ignores it: of two objects one after the
// other it would store the first alone, with success.
func (r *Reader) End() error {
	if r.peek(); r.at < len(r.body) {
		return r.fault("nothing more")
	}
	return nil
}

// Each calls f for each key and value of the object that begins with t. f must read all of
// the value.
func (r *Reader) Each(t Token, f func(name string, value Token) error) error {
	if t.Kind != Object {
		return t.unlike("an object")
	}
	for {
		name, err := r.Next()
		if err != nil || name.Kind == EndObject {
			return err
		}
		value, err := r.Next()
		if err != nil {
			return err
		}
		if err := f(name.Text, value); err != nil {
			return fmt.Errorf("%s: %w", name.Text, err)
		}
	}
}

// EachElement calls f for each element of the list that begins with t. f must read all of it.
func (r *Reader) EachElement(t Token, f func(Token) error) error {
	if t.Kind != List {
		return t.unlike("a list")
	}
	for i := 0; ; i++ {
		t, err := r.Next()
		if err != nil || t.Kind == EndList {
			return err
		}
		if err := f(t); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
}
