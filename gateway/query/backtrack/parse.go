package backtrack

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// parser reads an expression.
type parser struct {
	text  []rune
	at    int
	flags string // those of i, x, s, d that hold
	depth int

	groups int            // so far
	refers bool           // there is a back-reference
	names  map[string]int // of groups
	closed map[int]bool   // groups that have ended, and may be referred to
}

// more reports whether there is text left.
func (p *parser) more() bool { return p.at < len(p.text) }

// ahead reports whether the rest begins with s.
func (p *parser) ahead(s string) bool {
	for i, c := range []rune(s) {
		if p.at+i >= len(p.text) || p.text[p.at+i] != c {
			return false
		}
	}
	return true
}

// eat skips s if the rest begins with it.
func (p *parser) eat(s string) bool {
	if !p.ahead(s) {
		return false
	}
	p.at += len([]rune(s))
	return true
}

func (p *parser) has(flag string) bool { return strings.Contains(p.flags, flag) }

// skip skips blanks and comments if the flag x is set.
func (p *parser) skip() {
	for p.has("x") && p.more() {
		switch c := p.text[p.at]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			p.at++
		case c == '#':
			for p.more() && !lineEnds.has(p.text[p.at]) {
				p.at++
			}
		default:
			return
		}
	}
}

func (p *parser) parse() (*node, error) {
	tree, err := p.choice()
	if err == nil && p.more() {
		err = errors.New("unexpected )")
	}
	return tree, err
}

// choice reads up to the ) of the group, or the end. Flags that are set inside hold until there.
func (p *parser) choice() (*node, error) {
	flags := p.flags
	defer func() { p.flags = flags }()
	if p.depth++; p.depth > maxDepth {
		return nil, unsupported("groups in groups, more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()

	var ways []*node
	for {
		way, err := p.sequence()
		if err != nil {
			return nil, err
		}
		ways = append(ways, way)
		if !p.eat("|") {
			break
		}
	}
	if len(ways) == 1 {
		return ways[0], nil
	}
	return &node{kind: nodeChoice, subs: ways}, nil
}

func (p *parser) sequence() (*node, error) {
	out := &node{kind: nodeSequence}
	for p.skip(); p.more() && !p.ahead("|") && !p.ahead(")"); p.skip() {
		parts, err := p.atom()
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 { // flags, or quotes around nothing
			if quoted := p.text[p.at-1] == 'E'; quoted && p.more() && strings.ContainsRune("*+?{", p.text[p.at]) {
				return nil, unsupported("a repetition of nothing")
			}
			if p.skip(); p.more() {
				if err := nothingBefore(p.text[p.at]); err != nil {
					return nil, err
				}
			}
			continue
		}
		last := len(parts) - 1 // a quantifier is for the last character of a quotation
		if parts[last], err = p.quantified(parts[last]); err != nil {
			return nil, err
		}
		out.subs = append(out.subs, parts...)
	}
	return out, nil
}

// quantified reads the quantifier after a part, if any.
func (p *parser) quantified(of *node) (*node, error) {
	p.skip()
	out := &node{kind: nodeRepeat, subs: []*node{of}}
	switch {
	case p.eat("*"):
		out.max = endless
	case p.eat("+"):
		out.min, out.max = 1, endless
	case p.eat("?"):
		out.max, out.optional = 1, true
	case p.ahead("{"):
		if err := p.times(out); err != nil {
			return nil, err
		}
	default:
		return of, nil
	}
	p.hideRepeated(out)

	p.skip()
	switch {
	case p.eat("?"):
		out.lazy = true
	case p.eat("+"): // each iteration is atomic in Java, too
		out.subs[0] = &node{kind: nodeAtomic, subs: []*node{of}}
		out = &node{kind: nodeAtomic, subs: []*node{out}}
		p.hide(of)
	}
	if p.skip(); p.more() {
		return out, nothingBefore(p.text[p.at])
	}
	return out, nil
}

// nothingBefore returns the error of a quantifier without a part to repeat, nil for any
// other character. For Java { repeats an empty expression there.
func nothingBefore(c rune) error {
	switch c {
	case '*', '+', '?':
		return fmt.Errorf("nothing before %c", c)
	case '{':
		return unsupported("a repetition of nothing")
	}
	return nil
}

// times reads {n}, {n,} or {n,m}.
func (p *parser) times(out *node) error {
	p.at++
	least, ok := p.number()
	if !ok {
		return errors.New("a { that begins no repetition")
	}
	most := least
	if p.eat(",") {
		if most, ok = p.number(); !ok {
			most = endless
		}
	}
	if !p.eat("}") || most < least {
		return errors.New("a { that begins no repetition")
	}
	out.min, out.max = least, most
	return nil
}

// number reads digits, up to endless.
func (p *parser) number() (n int, ok bool) {
	for ; p.more() && p.text[p.at] >= '0' && p.text[p.at] <= '9'; p.at++ {
		n, ok = min(10*n+int(p.text[p.at]-'0'), endless), true
	}
	return n, ok
}

// atom reads one part. There are several in a quotation, and none where flags are set.
func (p *parser) atom() ([]*node, error) {
	one := func(n *node) ([]*node, error) { return []*node{n}, nil }
	switch c := p.text[p.at]; c {
	case '(':
		n, err := p.group()
		if n == nil {
			return nil, err
		}
		return one(n)
	case '[':
		s, err := p.class()
		if err != nil {
			return nil, err
		}
		return one(&node{kind: nodeSet, set: s})
	case '\\':
		return p.escape()
	case '*', '+', '?', '{':
		return nil, nothingBefore(c)
	case '^':
		p.at++
		return one(&node{kind: nodeBegin}) // no name has lines
	case '$':
		p.at++
		return one(&node{kind: nodeEnd})
	case '.':
		p.at++
		switch {
		case p.has("s"):
			return one(&node{kind: nodeSet, set: anything})
		case p.has("d"):
			return one(&node{kind: nodeSet, set: newline.not()})
		}
		return one(&node{kind: nodeSet, set: lineEnds.not()})
	default:
		p.at++
		return one(p.literal(c))
	}
}

// literal is one character.
func (p *parser) literal(c rune) *node {
	s := &set{}
	s.add(c, c, p.has("i"))
	s.pack()
	return &node{kind: nodeSet, set: s}
}

// looks are the groups that find nothing themselves.
var looks = map[string]node{"(?=": {}, "(?!": {negative: true}, "(?<=": {behind: true},
	"(?<!": {behind: true, negative: true}}

// group reads a group, or flags, which are no node.
func (p *parser) group() (*node, error) {
	for _, begin := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
		if p.eat(begin) {
			n := looks[begin]
			n.kind = nodeLook
			return p.look(&n)
		}
	}
	switch {
	case p.eat("(?>"):
		out, err := p.rest(&node{kind: nodeAtomic})
		p.hide(out)
		return out, err
	case p.eat("(?<"):
		return p.named()
	case p.eat("(?"):
		return p.flagged()
	}
	p.at++
	p.groups++
	return p.captured(p.groups)
}

// captured reads the rest of the group n.
func (p *parser) captured(n int) (*node, error) {
	out, err := p.rest(&node{kind: nodeCapture, n: n})
	p.closed[n] = true
	return out, err
}

// hide makes references to the groups in a part an error. In a look and in an atomic group Java
// keeps their matches even if it backtracks afterwards.
func (p *parser) hide(in *node) {
	if in == nil {
		return
	}
	if in.kind == nodeCapture {
		delete(p.closed, in.n)
	}
	for _, sub := range in.subs {
		p.hide(sub)
	}
}

// hideRepeated hides the groups in a repetition, except one that is a whole iteration and matches
// something. Java gives iterations back without the groups that they have found.
func (p *parser) hideRepeated(n *node) {
	of := n.subs[0]
	if n.optional {
		return
	}
	if of.kind != nodeCapture || of.least() == 0 {
		p.hide(of)
		return
	}
	for _, sub := range of.subs {
		p.hide(sub)
	}
}

// rest reads what is inside of a group, and its end.
func (p *parser) rest(of *node) (*node, error) {
	inside, err := p.choice()
	if err != nil {
		return nil, err
	}
	if !p.eat(")") {
		return nil, errors.New("a group without its )")
	}
	of.subs = []*node{inside}
	return of, nil
}

func (p *parser) look(of *node) (*node, error) {
	out, err := p.rest(of)
	if err != nil {
		return nil, err
	}
	p.hide(out)
	if _, _, ok := out.subs[0].length(); of.behind && !ok {
		return nil, unsupported(
			"a look-behind without an obvious maximum of its length") // which Java takes since 13, sometimes
	}
	return out, nil
}

// named reads the rest of (?<name>…).
func (p *parser) named() (*node, error) {
	end := slices.Index(p.text[p.at:], '>')
	if end < 0 {
		return nil, errors.New("a group's name without its >")
	}
	name := string(p.text[p.at : p.at+end])
	if !isName(name) || p.names[name] > 0 {
		return nil, fmt.Errorf("the group's name %q is none, or there twice", name)
	}
	p.at += end + 1
	p.groups++
	p.names[name] = p.groups
	return p.captured(p.groups)
}

// isName reports whether a group may have the name.
func isName(name string) bool {
	for i, c := range name {
		letter := c < unicode.MaxASCII && unicode.IsLetter(c)
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// flagged reads the rest of (?flags) or (?flags:…).
func (p *parser) flagged() (*node, error) {
	flags, on := p.flags, true
	for ; p.more() && p.text[p.at] != ')' && p.text[p.at] != ':'; p.at++ {
		switch c := p.text[p.at]; {
		case c == '-' && on:
			on = false
		case c == 'm': // no name has lines
		case strings.ContainsRune("isdx", c):
			flags = strings.ReplaceAll(flags, string(c), "")
			if on {
				flags += string(c)
			}
		case c == 'u' || c == 'U':
			return nil, unsupported("the flag %c", c)
		default:
			return nil, fmt.Errorf("the flag %q is not known", c)
		}
	}
	if p.eat(")") {
		p.flags = flags
		return nil, nil
	}
	if !p.eat(":") {
		return nil, errors.New("a group without its )")
	}
	before := p.flags
	p.flags = flags
	out, err := p.rest(&node{kind: nodeSequence})
	p.flags = before
	return out, err
}
