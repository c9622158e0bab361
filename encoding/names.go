package encoding

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// ValidateName returns an error for a name that OpenTSDB refuses: an empty one, or one
// with a character that is not a letter, a digit, one of - _ . / or one of allowed
// (tsd.core.tag.allow_specialchars). what is the kind of name: "metric name", "tag
// name", "tag value". Clients see the error, so its text is OpenTSDB's. Every Unicode
// letter of the basic plane is accepted, though not each can be stored: see AppendName.
// Source: Tags.validateString.
func ValidateName(what, name string, allowed ...rune) error {
	if name == "" {
		return fmt.Errorf("Invalid %s: empty string", what)
	}
	for i := 0; i < len(name); i++ {
		if plainNameByte(name[i]) {
			continue
		}

		r, size := utf8.DecodeRuneInString(name[i:])
		// Java looks at UTF-16 units, and none of a character beyond the basic plane is a letter.
		if !unicode.IsLetter(r) && !slices.Contains(allowed, r) || r > 0xFFFF || r == utf8.RuneError && size == 1 {
			return fmt.Errorf("Invalid %s (%q): illegal character: %c", what, bare(name), r)
		}
		i += size - 1
	}
	return nil
}

// plainNameByte reports whether an ASCII character is allowed in every name.
func plainNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '/'
}

// bare is a string that %q quotes without escaping anything, as OpenTSDB does.
type bare string

// Format writes the quoted name.
func (b bare) Format(f fmt.State, _ rune) { fmt.Fprintf(f, `"%s"`, string(b)) }

// AppendName appends the bytes of a name in the UID table: ISO-8859-1, one byte for
// each character. It fails for other characters: OpenTSDB would store ? for each,
// and different names would become one. Source: UniqueId.toBytes.
func AppendName(dst []byte, name string) ([]byte, error) {
	for i, r := range name {
		if r > 0xFF {
			return dst, fmt.Errorf("encoding: name %q has %q at byte %d, want a character of ISO-8859-1", name, r, i)
		}
		dst = append(dst, byte(r))
	}
	return dst, nil
}

// ParseName returns the name that bytes spell in ISO-8859-1, in which every byte is
// a character. Source: UniqueId.fromBytes.
func ParseName(b []byte) string {
	// ASCII is the same in UTF-8, which is the case of nearly all names.
	for i, c := range b {
		if c >= utf8.RuneSelf {
			return latin1(b, i)
		}
	}
	return string(b)
}

// latin1 decodes ISO-8859-1; the first ascii bytes are known to be ASCII.
func latin1(b []byte, ascii int) string {
	out := append(make([]byte, 0, len(b)+8), b[:ascii]...)
	for _, c := range b[ascii:] {
		out = utf8.AppendRune(out, rune(c))
	}
	return string(out)
}
