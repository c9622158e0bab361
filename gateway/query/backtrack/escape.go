package backtrack

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// places are escapes that find no character.
var places = map[rune]kind{'A': nodeBegin, 'G': nodeBegin, 'z': nodeEnd, 'Z': nodeEnd, 'b': nodeBorder,
	'B': nodeNoBorder}

// escape reads a backslash and what belongs to it, outside of a class.
func (p *parser) escape() ([]*node, error) {
	if p.eat(`\Q`) {
		return p.quotation(), nil
	}
	if p.at+1 >= len(p.text) {
		return nil, errors.New(`a \ at the end`)
	}
	one := func(n *node) ([]*node, error) { return []*node{n}, nil }
	c := p.text[p.at+1]
	if of, ok := places[c]; ok {
		if p.at += 2; c == 'b' && p.ahead("{") {
			return nil, unsupported(`the escape \b{…}`)
		}
		return one(&node{kind: of})
	}
	switch {
	case c >= '1' && c <= '9':
		return p.reference()
	case c == 'k':
		return p.namedReference()
	case c == 'R':
		p.at += 2
		pair := &node{
			kind: nodeSequence,
			subs: []*node{{kind: nodeSet, set: ranges("\r\r")}, {kind: nodeSet, set: newline}},
		}
		return one(&node{
			kind: nodeAtomic,
			subs: []*node{{kind: nodeChoice, subs: []*node{pair, {kind: nodeSet, set: verticals}}}},
		})
	}
	s, err := p.escapedSet()
	switch {
	case err != nil:
		return nil, err
	case s != nil:
		return one(&node{kind: nodeSet, set: s})
	}
	if c, err = p.escapedCharacter(); err != nil {
		return nil, err
	}
	return one(p.literal(c))
}

// quotation reads the text between \Q and \E, or the end.
func (p *parser) quotation() (out []*node) {
	for p.more() && !p.eat(`\E`) {
		out = append(out, p.literal(p.text[p.at]))
		p.at++
	}
	return out
}

// reference reads \N. As many digits belong to it as there are groups.
func (p *parser) reference() ([]*node, error) {
	p.at++
	n := 0
	for ; p.more() && p.text[p.at] >= '0' && p.text[p.at] <= '9'; p.at++ {
		more := 10*n + int(p.text[p.at]-'0')
		if n > 0 && more > p.groups {
			break
		}
		n = more
	}
	return p.referenceTo(n)
}

// namedReference reads \k<name>.
func (p *parser) namedReference() ([]*node, error) {
	if !p.eat(`\k<`) {
		return nil, errors.New(`a \k without the name of a group`)
	}
	begin := p.at
	for p.more() && p.text[p.at] != '>' {
		p.at++
	}
	name := string(p.text[begin:p.at])
	if !p.eat(">") || p.names[name] == 0 {
		return nil, fmt.Errorf("no group has the name %q", name)
	}
	return p.referenceTo(p.names[name])
}

func (p *parser) referenceTo(n int) ([]*node, error) {
	switch {
	case !p.closed[n]:
		return nil, unsupported(
			"a back-reference to a group that has not ended before, or stands in a look-around, " +
				"an atomic group or a repetition")
	case p.has("i"):
		return nil, unsupported("a back-reference that ignores case")
	}
	p.refers = true
	return []*node{{kind: nodeReference, n: n}}, nil
}

// escapedSet reads an escape for a set of characters; nil for any other.
func (p *parser) escapedSet() (*set, error) {
	c := p.text[p.at+1]
	if s, ok := classes[unicode.ToLower(c)]; ok && c < unicode.MaxASCII {
		p.at += 2
		if unicode.IsUpper(c) {
			s = s.not()
		}
		return s, nil
	}
	if c == 'p' || c == 'P' {
		return p.property(c == 'P')
	}
	return nil, nil
}

// property reads \pL, \p{L}, \p{IsL}, \p{Alpha}, and with \P their opposites.
func (p *parser) property(negative bool) (*set, error) {
	p.at += 2
	if !p.more() {
		return nil, errors.New(`a \p without a name`)
	}
	name := string(p.text[p.at])
	p.at++
	if name == "{" {
		begin := p.at
		for p.more() && p.text[p.at] != '}' {
			p.at++
		}
		name = string(p.text[begin:p.at])
		if !p.eat("}") {
			return nil, errors.New(`a \p{ without its }`)
		}
	}
	// Which letters these find with (?i) depends on Java's version.
	if p.has("i") && slices.Contains([]string{"Lu", "Ll", "Lt", "LC", "Lower", "Upper"},
		strings.TrimPrefix(name, "Is")) {
		return nil, unsupported(`\p{%s} that ignores case`, name)
	}
	s := properties[name]
	if table := unicode.Categories[strings.TrimPrefix(name, "Is")]; s == nil && table != nil {
		s = &set{items: []item{{table: table}}}
	}
	switch {
	case s == nil:
		return nil, unsupported(`the property \p{%s}`, name)
	case negative:
		s = s.not()
	}
	return s, nil
}

// escapedLetters are the characters of escapes of one letter.
var escapedLetters = map[rune]rune{'a': 7, 'e': 0x1b, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escapedCharacter reads an escape for one character.
func (p *parser) escapedCharacter() (rune, error) {
	if p.at+1 >= len(p.text) {
		return 0, errors.New(`a \ at the end`)
	}
	c := p.text[p.at+1]
	p.at += 2
	letter, known := escapedLetters[c]
	switch {
	case known:
		return letter, nil
	case c == '0':
		return p.octal()
	case c == 'x' || c == 'u':
		return p.hex(c)
	case c == 'c' && p.more():
		p.at++
		return p.text[p.at-1] ^ 64, nil
	case strings.ContainsRune("XN", c):
		return 0, unsupported(`the escape \%c`, c)
	case c < unicode.MaxASCII && unicode.IsLetter(c) || c >= '1' && c <= '9':
		return 0, fmt.Errorf(`the escape \%c is not known`, c)
	}
	return c, nil
}

// octal reads up to three digits after \0, up to 0377.
func (p *parser) octal() (rune, error) {
	begin, n := p.at, rune(0)
	for p.more() && p.at < begin+3 && p.text[p.at] >= '0' && p.text[p.at] <= '7' && 8*n+p.text[p.at]-'0' <= 0o377 {
		n = 8*n + p.text[p.at] - '0'
		p.at++
	}
	if p.at == begin {
		return 0, errors.New(`a \0 without octal digits`)
	}
	return n, nil
}

// hex reads xHH, x{H…} or uHHHH.
func (p *parser) hex(c rune) (rune, error) {
	digits := map[rune]int{'x': 2, 'u': 4}[c]
	braces := c == 'x' && p.eat("{")
	begin := p.at
	for p.more() && (braces && p.text[p.at] != '}' || !braces && p.at < begin+digits) {
		p.at++
	}
	n, err := strconv.ParseUint(string(p.text[begin:p.at]), 16, 32)
	if err != nil || n > unicode.MaxRune || !braces && p.at-begin != digits || braces && !p.eat("}") {
		return 0, fmt.Errorf(`a \%c without hexadecimal digits`, c)
	}
	if n >= 0xd800 && n <= 0xdfff {
		return 0, unsupported("half a pair of surrogates")
	}
	return rune(n), nil
}

// class reads a class in brackets.
func (p *parser) class() (*set, error) {
	p.at++
	out := &set{negative: p.eat("^")}
	for first := true; ; first = false { // a ] at first is a character, as in Java
		switch {
		case !p.more():
			return nil, errors.New("a class without its ]")
		case p.ahead("]") && !first:
			p.at++
			out.pack()
			return out, nil
		case p.ahead("["):
			return nil, unsupported("a class inside a class")
		case p.ahead("&&"):
			return nil, unsupported("an intersection of classes (&&)")
		case p.ahead(`\Q\E`):
			return nil, unsupported("an empty quotation in a class")
		case p.eat(`\Q`):
			for p.more() && !p.eat(`\E`) {
				out.add(p.text[p.at], p.text[p.at], p.has("i"))
				p.at++
			}
			continue
		case p.has("x") && (p.text[p.at] <= ' ' || p.ahead("#")):
			return nil, unsupported("a blank or # in a class with the flag x")
		}
		if err := p.classItem(out); err != nil {
			return nil, err
		}
	}
}

// errVertical refuses \v in a range, where it is one character for Java, and elsewhere several.
var errVertical = unsupported(`\v in a range of a class`)

// classItem reads a character, a range, or an escape for several.
func (p *parser) classItem(out *set) error {
	if p.ahead(`\v-`) {
		return errVertical
	}
	if p.ahead(`\`) && p.at+1 < len(p.text) {
		s, err := p.escapedSet()
		if err != nil {
			return err
		}
		if s != nil {
			out.items = append(out.items, item{within: s})
			return nil
		}
	}
	low, err := p.classCharacter()
	if err != nil {
		return err
	}
	high := low
	if p.ahead("-") && p.at+1 < len(p.text) && p.text[p.at+1] != ']' {
		if p.text[p.at+1] == '[' {
			return unsupported("a class inside a class")
		}
		if p.at++; p.ahead(`\v`) {
			return errVertical
		}
		if high, err = p.classCharacter(); err != nil {
			return err
		}
		if high < low {
			return fmt.Errorf("a range from %c to %c", low, high)
		}
	}
	out.add(low, high, p.has("i"))
	return nil
}

// classCharacter reads one character of a class.
func (p *parser) classCharacter() (rune, error) {
	if p.ahead(`\Q`) || p.ahead(`\E`) {
		return 0, unsupported("a quotation in a range")
	}
	if p.ahead(`\`) {
		return p.escapedCharacter()
	}
	p.at++
	return p.text[p.at-1], nil
}
