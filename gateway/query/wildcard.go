package query

import (
	"errors"
	"strings"
)

// wildcard matches as OpenTSDB does, which is not as its stars suggest: pieces
// are searched from the sum of the lengths before, not from the last match, and
// only a star at exactly one end anchors the other end. So a*b finds xbxaxb, and
// a*a accepts ba. Source: TagVWildcardFilter.
type wildcard struct {
	front, back bool // a star at the front, at the back
	fold        bool
	pieces      []string
	// strict matches as the stars suggest, see FixFilters.
	strict bool
}

func newWildcard(text string, fold bool) (*wildcard, error) {
	if fold {
		text = strings.ToLower(text)
	}
	if !strings.Contains(text, "*") {
		return nil, errors.New("Filter must contain an asterisk")
	}
	w := &wildcard{front: text[0] == '*', fold: fold}
	for len(text) > 1 && text[0] == '*' {
		text = text[1:]
	}
	w.back = text[len(text)-1] == '*'
	for len(text) > 1 && text[len(text)-1] == '*' {
		text = text[:len(text)-1]
	}
	w.pieces = []string{text}
	if strings.IndexByte(text, '*') > 0 {
		w.pieces = strings.Split(text, "*")
	}
	return w, nil
}

// all tells whether the text was nothing but stars.
func (w *wildcard) all() bool { return len(w.pieces) == 1 && w.pieces[0] == "*" }

func (w *wildcard) prefix() string {
	if w.all() || w.fold || w.front || !w.back {
		return ""
	}
	return w.pieces[0]
}

func (w *wildcard) match(value string) bool {
	if w.all() {
		return true
	}
	if w.fold {
		value = strings.ToLower(value)
	}
	if w.strict {
		return w.glob(value)
	}
	if w.front && !w.back && !strings.HasSuffix(value, w.pieces[len(w.pieces)-1]) {
		return false
	}
	if w.back && !w.front && !strings.HasPrefix(value, w.pieces[0]) {
		return false
	}
	skip := 0 // characters
	for _, p := range w.pieces {
		if p != "" && !strings.Contains(dropChars(value, skip), p) {
			return false
		}
		skip += chars(p)
	}
	return true
}

// glob matches the pieces one behind the other, the first and the last at the
// ends of the value where there is no star.
func (w *wildcard) glob(value string) bool {
	last := len(w.pieces) - 1
	for i, p := range w.pieces {
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

// chars counts characters, of which the reference counts lengths.
func chars(s string) (n int) {
	for range s {
		n++
	}
	return n
}

// dropChars is s without its first n characters.
func dropChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[i:]
		}
		n--
	}
	return ""
}
