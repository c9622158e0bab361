package query

import (
	"strings"
)

// translate writes a Java regular expression in Go's syntax. It returns an
// *UnsupportedError for what the two read in different ways and for what Go cannot do: a
// silent difference would be a wrong answer. Two differences remain, see readsOtherwise.
func translate(java string) (string, error) {
	t := &translator{in: java}
	if err := t.all(); err != nil {
		return "", err
	}
	return t.out.String(), nil
}

// readsOtherwise reports whether Go may find an expression that it takes, as translated, in other names than Java:
// there a letter beyond ASCII is part of a word (\b), and is the same in either case ((?i)) only by a flag of its own.
// In Go even an s of ASCII is the same as ſ.
func readsOtherwise(java string) bool {
	t := &translator{in: java}
	return t.all() == nil && (t.borders || t.folds)
}

// all translates the whole expression.
func (t *translator) all() error {
	for t.at < len(t.in) {
		if what := t.step(); what != "" {
			return &UnsupportedError{what, t.in}
		}
	}
	return nil
}

// translator copies an expression, item by item.
type translator struct {
	in  string
	at  int
	out strings.Builder
	// class reports whether at is inside a character class.
	class bool
	// borders and folds report whether there is a \b or \B, and the flag i.
	borders, folds bool
}

// rest returns what has not been read.
func (t *translator) rest() string { return t.in[t.at:] }

// copy copies n bytes as they are.
func (t *translator) copy(n int) {
	t.out.WriteString(t.in[t.at : t.at+n])
	t.at += n
}

// write writes s in place of n bytes.
func (t *translator) write(s string, n int) {
	t.out.WriteString(s)
	t.at += n
}

// step translates one item. It returns what it cannot translate, "" for nothing.
func (t *translator) step() (unsupported string) {
	switch c := t.in[t.at]; {
	case c == '\\':
		return t.escape()
	case t.class:
		return t.inClass(c)
	case c == '[':
		t.openClass()
	case c == '(':
		return t.group()
	case c == '*' || c == '+' || c == '?' || c == '{':
		return t.quantifier(c)
	default:
		t.copy(1)
	}
	return ""
}

// openClass copies [ and what may come first: ^, and a ] that does not close the class.
func (t *translator) openClass() {
	t.class = true
	t.copy(1)
	if strings.HasPrefix(t.rest(), "^") {
		t.copy(1)
	}
	if strings.HasPrefix(t.rest(), "]") {
		t.copy(1)
	}
}

// inClass copies one character inside a class.
func (t *translator) inClass(c byte) string {
	switch {
	case c == '[':
		return "a class inside a class"
	case strings.HasPrefix(t.rest(), "&&"):
		return "an intersection of classes (&&)"
	case c == ']':
		t.class = false
	}
	t.copy(1)
	return ""
}

// groups are the beginnings of groups that cannot be translated.
var groups = []struct{ begin, what string }{
	{"(?=", "look-ahead (?=…)"},
	{"(?!", "look-ahead (?!…)"},
	{"(?<=", "look-behind (?<=…)"},
	{"(?<!", "look-behind (?<!…)"},
	{"(?>", "an atomic group (?>…)"},
	{"(?P", "(?P…), which Java does not know"},
}

// group copies the beginning of a group, as ( or (?i:. It returns what Go cannot do, "" for nothing.
func (t *translator) group() (unsupported string) {
	rest := t.rest()
	for _, g := range groups {
		if strings.HasPrefix(rest, g.begin) {
			return g.what
		}
	}

	// ( and (?: are the same in Go, and so is (?<name>: look-behind was refused above.
	flags, ok := strings.CutPrefix(rest, "(?")
	if !ok || strings.HasPrefix(flags, "<") || strings.HasPrefix(flags, ":") {
		t.copy(1)
		if ok { // the ? is no quantifier
			t.copy(1)
		}
		return ""
	}

	n := strings.IndexAny(flags, ":)")
	if n < 0 || strings.Trim(flags[:n], "ims-") != "" {
		return "a flag other than i, m and s"
	}
	t.folds = t.folds || strings.Contains(flags[:n], "i")
	t.copy(len("(?") + n + 1)
	if flags[n] == ')' && strings.HasPrefix(t.rest(), "{") {
		return "a repetition of nothing" // Go repeats what stands before the flags
	}
	return ""
}

// quantifier copies *, +, ? or {n,m}, and a ? after it.
func (t *translator) quantifier(c byte) string {
	n := 1
	if c == '{' {
		if n = repetition(t.rest()); n == 0 {
			return "a { that begins no repetition"
		}
	}
	t.copy(n)

	switch {
	case strings.HasPrefix(t.rest(), "+"):
		return "a possessive quantifier"
	case strings.HasPrefix(t.rest(), "?"):
		t.copy(1)
	}
	return ""
}

// repetition returns the length of {n}, {n,} or {n,m} at the start of s, or 0.
func repetition(s string) int {
	n := 1 + len(leadingDigits(s[1:]))
	if n == 1 {
		return 0
	}
	if strings.HasPrefix(s[n:], ",") {
		n++
		n += len(leadingDigits(s[n:]))
	}
	if !strings.HasPrefix(s[n:], "}") {
		return 0
	}
	return n + 1
}

// posix maps Java's names of ASCII classes to Go's.
var posix = map[string]string{
	"Lower": "lower", "Upper": "upper", "ASCII": "ascii", "Alpha": "alpha", "Digit": "digit",
	"Alnum": "alnum", "Punct": "punct", "Graph": "graph", "Print": "print", "Blank": "blank",
	"Cntrl": "cntrl", "XDigit": "xdigit", "Space": "space",
}

// escape translates a backslash and what belongs to it. It returns what Go cannot say, "" for nothing.
func (t *translator) escape() (unsupported string) {
	rest := t.rest()
	if len(rest) < 2 {
		t.copy(1) // Go's parser reports it
		return ""
	}

	switch c := rest[1]; {
	case c == 'Q': // literal text up to \E or the end
		n := strings.Index(rest, `\E`)
		if n < 0 {
			n = len(rest) - len(`\E`)
		}
		t.copy(n + len(`\E`))
	case c == 'Z':
		t.write(`\z`, 2) // no value ends with a line break
	case c == 'p' || c == 'P':
		t.property(c == 'P')
	case '1' <= c && c <= '9' || c == 'k':
		return "a back-reference"
	case c == 'b' || c == 'B':
		t.borders = true // Go's words have other letters, see readsOtherwise
		t.copy(2)
	case c == 'u' && len(rest) >= 6:
		t.write(`\x{`+rest[2:6]+`}`, 6)
	// Go does not know these, or takes \0 and \v for something else.
	case strings.IndexByte("0cehHvVRXGNu", c) >= 0:
		return `the escape \` + string(c)
	default:
		t.copy(2)
	}
	return ""
}

// property translates \pL, \p{L}, \p{Alpha}, \p{IsLatin}, and with \P their opposites.
func (t *translator) property(negated bool) {
	rest := t.rest()
	name, _, ok := strings.Cut(rest[2:], "}")
	if !ok || !strings.HasPrefix(name, "{") { // \pL
		t.copy(2)
		return
	}

	name = name[1:]
	n := len(`\p{}`) + len(name)
	class, ok := posix[name]
	switch {
	case !ok:
		t.write(rest[:2]+"{"+strings.TrimPrefix(name, "Is")+"}", n)
		return
	case negated:
		class = "[:^" + class + ":]"
	default:
		class = "[:" + class + ":]"
	}

	// Go knows these names only inside a class.
	if !t.class {
		class = "[" + class + "]"
	}
	t.write(class, n)
}
