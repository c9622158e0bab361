package backtrack

import (
	"cmp"
	"slices"
	"unicode"
)

// set is a set of characters: those of its items, or all others.
type set struct {
	items    []item
	negative bool
}

// item is a range of characters, or a table of them, or another set.
type item struct {
	low, high rune
	table     *unicode.RangeTable
	within    *set
}

// pack sorts the ranges of a set and joins those that overlap or touch, so that [aa-mk-z] costs what [a-z] does.
func (s *set) pack() {
	var all, others []item
	for _, i := range s.items {
		if i.table == nil && i.within == nil {
			all = append(all, i)
		} else {
			others = append(others, i)
		}
	}
	slices.SortFunc(all, func(a, b item) int { return cmp.Compare(a.low, b.low) })
	s.items = others
	for k, i := range all {
		if last := len(s.items) - 1; k > 0 && i.low <= s.items[last].high+1 {
			s.items[last].high = max(s.items[last].high, i.high)
			continue
		}
		s.items = append(s.items, i)
	}
}

// tableCost is what a look-up in a table costs, in comparisons with a range.
const tableCost = 16

// cost is the most that a test of the set costs, in comparisons with a range.
func (s *set) cost() (n int) {
	for _, i := range s.items {
		switch {
		case i.within != nil:
			n += i.within.cost()
		case i.table != nil:
			n += tableCost
		default:
			n++
		}
	}
	return n
}

func (s *set) has(c rune) bool {
	for i := range s.items {
		if s.items[i].has(c) {
			return !s.negative
		}
	}
	return s.negative
}

func (i *item) has(c rune) bool {
	switch {
	case i.within != nil:
		return i.within.has(c)
	case i.table != nil:
		return unicode.Is(i.table, c)
	}
	return i.low <= c && c <= i.high
}

// add adds a range of characters, with the letters of ASCII in the other case where case is ignored.
func (s *set) add(low, high rune, ignoreCase bool) {
	s.items = append(s.items, item{low: low, high: high})
	if !ignoreCase {
		return
	}
	const shift = 'a' - 'A'
	for c := 'A'; c <= 'Z'; c++ {
		upper, lower := low <= c && c <= high, low <= c+shift && c+shift <= high
		switch {
		case upper && !lower:
			s.items = append(s.items, item{low: c + shift, high: c + shift})
		case lower && !upper:
			s.items = append(s.items, item{low: c, high: c})
		}
	}
}

// ranges makes a set of pairs of a first and a last character.
func ranges(pairs string) *set {
	s := &set{}
	for text := []rune(pairs); len(text) > 0; text = text[2:] {
		s.items = append(s.items, item{low: text[0], high: text[1]})
	}
	return s
}

func (s *set) not() *set { return &set{items: s.items, negative: !s.negative} }

// The characters that a dot does not match, without flags and with d.
var (
	lineEnds  = ranges("\n\n\r\r\u0085\u0085\u2028\u2029")
	newline   = ranges("\n\n")
	anything  = (&set{}).not()
	verticals = ranges("\n\r\u0085\u0085\u2028\u2029")
)

// classes are those of an escape, by its letter. Java's have ASCII alone.
var classes = map[rune]*set{
	'd': ranges("09"),
	'w': ranges("azAZ09__"),
	's': ranges("\t\r  "),
	'h': ranges("  \t\t\u00a0\u00a0\u1680\u1680\u180e\u180e\u2000\u200a\u202f\u202f\u205f\u205f\u3000\u3000"),
	'v': verticals,
}

// properties are those of \p{…} that are Java's own, all of ASCII.
var properties = map[string]*set{
	"Lower": ranges("az"), "Upper": ranges("AZ"), "ASCII": ranges("\x00\x7f"), "Alpha": ranges("azAZ"),
	"Digit": ranges("09"), "Alnum": ranges("azAZ09"),
	"Punct": ranges("!/:@[`{~"), "Graph": ranges("!~"), "Print": ranges(" ~"), "Blank": ranges("  \t\t"),
	"Cntrl":  ranges("\x00\x1f\x7f\x7f"),
	"XDigit": ranges("09afAF"), "Space": ranges("\t\r  "),
}

// isWord reports whether a character belongs to a word. \b is the border of words.
func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.Is(unicode.Nd, c) }
