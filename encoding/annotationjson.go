package encoding

import (
	"cmp"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendAnnotation appends the stored form of an annotation. OpenTSDB changes an
// annotation by compare-and-set on the bytes that it would write itself, so these bytes
// must be the same. The keys have this order, tsuid only if there is one, custom sorted
// by key:
//
//	{"tsuid":"…","startTime":1356998400,"endTime":0,"description":"","notes":"","custom":null}
//
// Source: Annotation.getStorageJSON.
func AppendAnnotation(dst []byte, a Annotation) []byte {
	dst = append(dst, '{')
	if a.TSUID != "" {
		dst = appendField(dst, "tsuid", a.TSUID)
		dst = append(dst, ',')
	}
	dst = strconv.AppendInt(append(dst, `"startTime":`...), a.StartTime, 10)
	dst = strconv.AppendInt(append(dst, `,"endTime":`...), a.EndTime, 10)
	dst = appendField(append(dst, ','), "description", a.Description)
	dst = appendField(append(dst, ','), "notes", a.Notes)
	dst = appendCustom(append(dst, `,"custom":`...), a.Custom)
	return append(dst, '}')
}

// appendCustom appends custom sorted by key, or null.
func appendCustom(dst []byte, custom map[string]string) []byte {
	if custom == nil {
		return append(dst, "null"...)
	}

	keys := make([]string, 0, len(custom))
	for k := range custom {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareJava)

	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendField(dst, k, custom[k])
	}

	return append(dst, '}')
}

// compareJava orders strings as Java's String.compareTo does, by UTF-16 units: a
// character beyond the basic plane is two units below U+E000, and so sorts before
// it.
func compareJava(a, b string) int {
	return slices.CompareFunc(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)), cmp.Compare[uint16])
}

// appendField appends "key":"value".
func appendField(dst []byte, key, value string) []byte {
	dst = appendJSONString(dst, key)
	dst = append(dst, ':')
	return appendJSONString(dst, value)
}

// AppendJSONField appends "key":"value" as Jackson writes it, which is how OpenTSDB stores
// its JSON.
func AppendJSONField(dst []byte, key, value string) []byte { return appendField(dst, key, value) }

const upperHex = "0123456789ABCDEF"

// appendJSONString appends a string as Jackson writes it: only quotes, backslashes
// and control characters are escaped, everything else is UTF-8. Invalid UTF-8
// becomes U+FFFD.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = appendControl(dst, byte(r))
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// appendControl appends an escaped control character.
func appendControl(dst []byte, c byte) []byte {
	switch c {
	case '\b':
		return append(dst, `\b`...)
	case '\t':
		return append(dst, `\t`...)
	case '\n':
		return append(dst, `\n`...)
	case '\f':
		return append(dst, `\f`...)
	case '\r':
		return append(dst, `\r`...)
	}
	return append(dst, `\u00`+upperHex[c>>4:c>>4+1]+upperHex[c&15:c&15+1]...)
}
