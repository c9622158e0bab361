package query

import (
	"errors"
	"strings"
)

// wildcard matches as OpenTSDB does, which is not as its stars suggest. Each text between
// stars is searched from the sum of the lengths of the texts before it, not from the last
// match. And an end of the pattern is anchored only if there is a star at the other end and
// none at this one. So a*b matches xbxaxb, and a*a matches ba. Source: TagVWildcardFilter.
type wildcard struct {
	front, back bool // a star at the front, at the back
	ignoreCase  bool
	texts       []string // between the stars
	// exact matches as the stars suggest, see FixFilters.
	exact bool
}

// newWildcard takes a pattern apart. It deletes the stars at the front and at the back
// before it splits the rest; of nothing but stars it leaves one.
func newWildcard(text string, ignoreCase bool) (*wildcard, error) {
	if ignoreCase {
		text = strings.ToLower(text)
	}
	if !strings.Contains(text, "*") {
		return nil, errors.New("Filter must contain an asterisk")
	}

	w := &wildcard{front: text[0] == '*', ignoreCase: ignoreCase}
	for len(text) > 1 && text[0] == '*' {
		text = text[1:]
	}

	w.back = text[len(text)-1] == '*'
	for len(text) > 1 && text[len(text)-1] == '*' {
		text = text[:len(text)-1]
	}

	w.texts = []string{text}
	if strings.IndexByte(text, '*') > 0 { // at 0 it is the star that is left of nothing but stars
		w.texts = strings.Split(text, "*")
	}
	return w, nil
}

// all reports whether the pattern was nothing but stars.
func (w *wildcard) all() bool { return len(w.texts) == 1 && w.texts[0] == "*" }

// prefix returns a text that every match begins with, often "".
func (w *wildcard) prefix() string {
	if w.all() || w.ignoreCase || w.front || !w.back {
		return ""
	}
	return w.texts[0]
}

// match reports whether a tag value matches, by the rules of the type's comment.
func (w *wildcard) match(value string) bool {
	if w.all() {
		return true
	}
	if w.ignoreCase {
		value = strings.ToLower(value)
	}
	if w.exact {
		return w.glob(value)
	}

	if w.front && !w.back && !strings.HasSuffix(value, w.texts[len(w.texts)-1]) {
		return false
	}
	if w.back && !w.front && !strings.HasPrefix(value, w.texts[0]) {
		return false
	}

	skip := 0 // characters
	for _, p := range w.texts {
		if p != "" && !strings.Contains(dropChars(value, skip), p) {
			return false
		}
		skip += chars(p)
	}
	return true
}

// glob matches the texts between the stars one after the other, the first and the last at
// the ends of the value where there is no star.
func (w *wildcard) glob(value string) bool {
	last := len(w.texts) - 1
	for i, p := range w.texts {
		// at is where p is found in what is left of the value.
		at := 0
		switch anchored := i == 0 && !w.front; {
		case i == last && !w.back:
			at = len(value) - len(p)
			if !strings.HasSuffix(value, p) || anchored && at != 0 {
				return false
			}
		case anchored && !strings.HasPrefix(value, p):
			return false
		case !anchored:
			if at = strings.Index(value, p); at < 0 {
				return false
			}
		}

		value = value[at+len(p):]
	}
	return true
}

// chars counts characters, in which OpenTSDB measures lengths.
func chars(s string) (n int) {
	for range s {
		n++
	}
	return n
}

// dropChars returns s without its first n characters.
func dropChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[i:]
		}
		n--
	}
	return ""
}
