// Package names is the rule by which any text becomes a name that OpenTSDB's tables can hold, and comes back as it was.
// Metrics, labels and attributes of Prometheus and OpenTelemetry use it.
//
// A text of the letters, digits and signs that OpenTSDB allows stays as it is. Any other begins with U__ when it is
// stored, as Prometheus escapes names for those who cannot take them; then _ is doubled, and what is not allowed is
// its number in Unicode, in hexadecimal, between two _:
//
//	web01.fra                web01.fra
//	10.0.0.7:9100            U__10.0.0.7_3a_9100
//	GET /a_b                 U__GET_20_/a__b
//	日本                     U___65e5__672c_
//
// The rule is the same for any tsd.core.tag.allow_specialchars: else a change of that setting would change the names of
// series.
package names

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const prefix = "U__"

// None is the tag key and the tag value of a series that has no labels: OpenTSDB demands a tag. No label is stored
// under it.
const None = prefix

// Stored returns the name under which a text is stored. The text is valid UTF-8 and not empty.
func Stored(text string) string {
	if asItIs(text) {
		return text
	}
	return string(escape([]byte(prefix), text))
}

// AppendStored appends the name under which a text is stored.
func AppendStored(dst []byte, text string) []byte {
	if asItIs(text) {
		return append(dst, text...)
	}
	return escape(append(dst, prefix...), text)
}

// Shown returns the text that is stored under a name. A name that Stored never returns, which came by another
// protocol, is its own text.
func Shown(name string) string {
	if text, ok := unescaped(name); ok {
		return text
	}
	return name
}

// Of returns the names that show a text: the one that Stored returns, and the text itself if another protocol may have
// stored that, by tsd.core.tag.allow_specialchars.
func Of(text string) []string {
	stored := Stored(text)
	if stored == text || Shown(text) != text {
		return []string{stored}
	}
	return []string{stored, text}
}

// Starts returns what the names begin with that show texts which begin with start. No name begins with two of them.
func Starts(start string) []string {
	escaped := string(escape([]byte(prefix), start))
	if strings.HasPrefix(escaped, start) {
		return []string{start}
	}
	return []string{start, escaped} //fault:names-escaped-not-listed TestPromQL_escaped
}

// asItIs reports whether a text is stored as it is.
func asItIs(text string) bool {
	for i := 0; i < len(text); i++ {
		if plain(text[i]) {
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if !letter(r) {
			return false
		}
		i += size - 1
	}
	if text == None {
		return false
	}
	// What looks like the escaped name of another text would be taken for that.
	_, taken := unescaped(text) //fault:names-escaped-twice-lost TestNames
	return !taken
}

// plain reports whether OpenTSDB allows an ASCII character in names.
func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '/'
}

// letter reports whether a character beyond ASCII is one that OpenTSDB allows and its tables, which have ISO-8859-1,
// can hold.
func letter(r rune) bool { return r >= utf8.RuneSelf && r <= unicode.MaxLatin1 && unicode.IsLetter(r) }

// escape appends the escaped text, without the prefix.
func escape(dst []byte, text string) []byte {
	for _, r := range text {
		switch {
		case r == '_':
			dst = append(dst, "__"...)
		case r < utf8.RuneSelf && plain(byte(r)), letter(r):
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(strconv.AppendInt(append(dst, '_'), int64(r), 16), '_')
		}
	}
	return dst
}

// unescaped returns the text whose escaped name this is; ok is false if it is none.
func unescaped(name string) (text string, ok bool) {
	body, found := strings.CutPrefix(name, prefix)
	if !found || body == "" {
		return "", false
	}
	var b strings.Builder
	for rest := body; rest != ""; {
		before, after, found := strings.Cut(rest, "_")
		b.WriteString(before)
		if !found {
			break
		}
		digits, after, found := strings.Cut(after, "_")
		if !found {
			return "", false
		}
		rest = after
		if digits == "" {
			b.WriteByte('_')
			continue
		}
		r, err := strconv.ParseUint(digits, 16, 32)
		if err != nil || r > unicode.MaxRune || !utf8.ValidRune(rune(r)) {
			return "", false
		}
		b.WriteRune(rune(r))
	}
	// Only what Stored returns: no text has two names. The text is shorter than the name, so this ends.
	text = b.String()
	return text, Stored(text) == name
}
