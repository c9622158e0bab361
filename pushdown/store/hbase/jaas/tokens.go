package jaas

import (
	"fmt"
	"strings"
)

// kind is that of a token.
type kind int

const (
	end    kind = iota // of the file
	word               // in quotes or not
	symbol             // { } ; =
)

// parser reads tokens, and keeps the first fault.
type parser struct {
	text string // the rest of the file
	line int
	kind kind // of the current token
	got  string
	err  error
}

// fail keeps the first fault.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("line %d: %w", p.line, fmt.Errorf(format, args...))
	}
}

// is reports whether the token is a symbol.
func (p *parser) is(s string) bool { return p.kind == symbol && p.got == s }

// want passes over a symbol.
func (p *parser) want(s string) {
	if !p.is(s) {
		p.fail("got %s, want %s", p.shown(), s)
		return
	}
	p.next()
}

// value passes over a word and returns it.
func (p *parser) value(what string) string {
	if p.kind != word {
		p.fail("got %s, want %s", p.shown(), what)
		return ""
	}
	w := p.got
	p.next()
	return w
}

// shown is the token in an error. A word is left out: it may be a password.
func (p *parser) shown() string {
	switch p.kind {
	case end:
		return "the end of the file"
	case word:
		return "a word" //fault:password-of-jaas-in-error TestParse_secrets
	}
	return fmt.Sprintf("%q", p.got)
}

// next reads the next token. After a fault there is none.
func (p *parser) next() {
	p.skip()
	p.kind, p.got = end, ""
	if p.err != nil || p.text == "" {
		return
	}
	c := p.text[0]
	switch {
	case strings.IndexByte("{};=", c) >= 0:
		p.kind, p.got, p.text = symbol, p.text[:1], p.text[1:]
	case c == '"':
		p.quoted()
	case isWord(c) && c != '-' && c != '.' && (c < '0' || c > '9'):
		n := 0
		for n < len(p.text) && isWord(p.text[n]) {
			n++
		}
		p.kind, p.got, p.text = word, p.text[:n], p.text[n:]
	case c == '/':
		p.fail("got a / without quotes, want it inside of \"…\"")
	default:
		p.fail("got the character %q, want a value in \"…\"", []rune(p.text)[0])
	}
}

// isWord reports whether a byte may be in a word without quotes. Those beyond ASCII are of letters.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 ||
		strings.IndexByte("$_-*.", c) >= 0
}

// skip passes over white space and comments.
func (p *parser) skip() {
	for p.err == nil && p.text != "" {
		switch {
		case p.text[0] == '\n':
			p.line++
			p.text = p.text[1:]
		case p.text[0] <= ' ':
			p.text = p.text[1:]
		case strings.HasPrefix(p.text, "//"):
			n := strings.IndexAny(p.text, "\r\n")
			if n < 0 {
				n = len(p.text)
			}
			p.text = p.text[n:]
		case strings.HasPrefix(p.text, "/*"):
			comment, rest, closed := strings.Cut(p.text[2:], "*/")
			if !closed {
				p.fail("comment: got no end, want */")
				return
			}
			p.line += strings.Count(comment, "\n")
			p.text = rest
		default:
			return
		}
	}
}

// quoted reads a string with Java's escapes.
func (p *parser) quoted() {
	var b strings.Builder
	text := p.text[1:]
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			p.kind, p.got, p.text = word, b.String(), text[i+1:]
			return
		case c == '\n' || c == '\r':
			i = len(text)
		case c == '\\' && i+1 < len(text):
			octal := i + 1
			for octal < len(text) && octal < i+4 && text[octal] >= '0' && text[octal] <= '7' {
				octal++
			}
			if octal == i+4 && text[i+1] > '3' {
				octal-- // more than a byte
			}
			if octal > i+1 {
				n := rune(0)
				for _, digit := range text[i+1 : octal] {
					n = n*8 + digit - '0'
				}
				b.WriteRune(n)
				i = octal - 1
				continue
			}
			i++
			if text[i] == '\n' {
				p.line++
			}
			b.WriteByte(escaped(text[i]))
		default:
			b.WriteByte(c)
		}
	}
	p.fail("string: got no end in its line, want \"")
}

// escaped returns the character of a backslash and another.
func escaped(c byte) byte {
	if i := strings.IndexByte("abfnrtv", c); i >= 0 {
		return "\a\b\f\n\r\t\v"[i]
	}
	return c
}
