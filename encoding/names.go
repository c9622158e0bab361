package encoding

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// ValidateName refuses a name that OpenTSDB does not store: empty, or with a
// character that is neither a letter nor a digit nor one of - _ . / nor one of
// allowed (tsd.core.tag.allow_specialchars). what says which name it is:
// "metric name", "tag name", "tag value". The error's text is OpenTSDB's, which
// clients see. A letter is any Unicode letter of the basic plane; whether the
// name can be stored is another question, which AppendName answers.
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
		if !unicode.IsLetter(r) && !slices.Contains(allowed, r) || r > 0xFFFF || r == utf8.RuneError && size == 1 {
			return fmt.Errorf("Invalid %s (%q): illegal character: %c", what, bare(name), r)
		}
		i += size - 1
	}
	return nil
}

func plainNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '/'
}

// bare is a string that %q quotes without escapes, as OpenTSDB quotes names.
type bare string

// Format writes the quoted name.
func (b bare) Format(f fmt.State, _ rune) { fmt.Fprintf(f, `"%s"`, string(b)) }

// AppendName appends the bytes of a name in the UID table: ISO-8859-1, one byte
// a character. A character outside is an error: OpenTSDB would store ? for it,
// and two names would become one. Source: UniqueId.toBytes.
func AppendName(dst []byte, name string) ([]byte, error) {
	for i, r := range name {
		if r > 0xFF {
			return dst, fmt.Errorf("encoding: name %q has %q at byte %d, want a character of ISO-8859-1", name, r, i)
		}
		dst = append(dst, byte(r))
	}
	return dst, nil
}

// ParseName is the name that ISO-8859-1 bytes spell. Every byte is a character.
// Source: UniqueId.fromBytes.
func ParseName(b []byte) string {
	for i, c := range b {
		if c >= utf8.RuneSelf {
			return latin1(b, i)
		}
	}
	return string(b)
}

// latin1 decodes b, whose first ascii bytes are ASCII.
func latin1(b []byte, ascii int) string {
	out := append(make([]byte, 0, len(b)+8), b[:ascii]...)
	for _, c := range b[ascii:] {
		out = utf8.AppendRune(out, rune(c))
	}
	return string(out)
}
