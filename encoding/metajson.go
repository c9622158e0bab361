package encoding

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
)

// AppendUIDMeta appends the stored form of a UIDMeta: the bytes that OpenTSDB
// writes, for the reason at AppendTSMeta:
//
//	{"type":"METRIC","displayName":"","description":"","notes":"","created":1356998400,"custom":null}
//
// Source: UIDMeta.getStorageJSON.
func AppendUIDMeta(dst []byte, m UIDMeta) []byte {
	dst = appendField(append(dst, '{'), "type", m.Type)
	dst = appendField(append(dst, ','), "displayName", m.DisplayName)
	dst = appendField(append(dst, ','), "description", m.Description)
	dst = appendField(append(dst, ','), "notes", m.Notes)
	dst = strconv.AppendInt(append(dst, `,"created":`...), m.Created, 10)
	dst = appendHashed(append(dst, `,"custom":`...), m.Custom)
	return append(dst, '}')
}

// AppendTSMeta appends the stored form of a TSMeta. OpenTSDB changes a TSMeta by
// compare-and-set on the bytes that it would write itself, so it can change only
// a TSMeta of exactly this form:
//
//	{"tsuid":"000001000001000001","displayName":"","description":"","notes":"","created":1356998400,
//	 "custom":null,"units":"","dataType":"","retention":0,"max":"NaN","min":"NaN"}
//
// on one line. Source: TSMeta.getStorageJSON.
func AppendTSMeta(dst []byte, m TSMeta) []byte {
	dst = appendField(append(dst, '{'), "tsuid", m.TSUID)
	dst = appendField(append(dst, ','), "displayName", m.DisplayName)
	dst = appendField(append(dst, ','), "description", m.Description)
	dst = appendField(append(dst, ','), "notes", m.Notes)
	dst = strconv.AppendInt(append(dst, `,"created":`...), m.Created, 10)
	dst = appendHashed(append(dst, `,"custom":`...), m.Custom)
	dst = appendField(append(dst, ','), "units", m.Units)
	dst = appendField(append(dst, ','), "dataType", m.DataType)
	dst = strconv.AppendInt(append(dst, `,"retention":`...), int64(m.Retention), 10)
	dst = m.Max.appendJSON(append(dst, `,"max":`...))
	dst = m.Min.appendJSON(append(dst, `,"min":`...))
	return append(dst, '}')
}

// appendHashed appends custom in the order in which Java walks a HashMap that is a
// copy of it, or null.
func appendHashed(dst []byte, custom map[string]string) []byte {
	if custom == nil {
		return append(dst, "null"...)
	}

	dst = append(dst, '{')
	for i, k := range hashOrder(custom) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendField(dst, k, custom[k])
	}
	return append(dst, '}')
}

// hashOrder lists the keys by their slot in a HashMap. Java keeps the keys of one
// slot in the order in which they were put, which is not known here: they are
// listed in the order of Java's strings.
func hashOrder(m map[string]string) []string {
	// The number of slots that Java gives a copy: a power of two, filled to three
	// quarters at most, computed in floats as Java does.
	slots := uint32(1)
	for slots < uint32(float32(len(m))/0.75+1) {
		slots <<= 1
	}

	// HashMap.hash folds the upper half of the hash into the lower one.
	slot := func(key string) uint32 { h := JavaHash(key); return (h ^ h>>16) & (slots - 1) }
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}

	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(slot(a), slot(b)), compareJava(a, b)) })
	return keys
}

// JavaHash is String.hashCode.
func JavaHash(s string) (h uint32) {
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + uint32(unit)
	}
	return h
}

// MarshalJSON writes a double as Jackson does.
func (d JSONDouble) MarshalJSON() ([]byte, error) { return d.appendJSON(nil), nil }

// appendJSON appends what MarshalJSON returns.
func (d JSONDouble) appendJSON(dst []byte) []byte {
	v := float64(d)
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	return AppendJavaDouble(dst, v)
}

// AppendJavaDouble appends the shortest digits that parse to v again, in the form of
// Java's Double.toString: as a decimal fraction from 1e-3 to below 1e7, else as one
// digit, a fraction, E and the exponent. At least one digit follows the point: 1.0,
// 1.0E10. v is finite.
func AppendJavaDouble(dst []byte, v float64) []byte {
	abs := math.Abs(v)
	// Maxima, counts and sums mostly have no fraction, and take a sixth of the time as integers. -0 is not one.
	if whole := int64(v); abs < 1e7 && float64(whole) == v && (whole != 0 || !math.Signbit(v)) {
		return append(strconv.AppendInt(dst, whole, 10), ".0"...)
	}
	if abs == 0 || abs >= 1e-3 && abs < 1e7 {
		start := len(dst)
		dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
		if bytes.IndexByte(dst[start:], '.') < 0 {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	return appendJavaExponent(dst, v)
}

// appendJavaExponent turns Go's -1.25e+07 into Java's -1.25E7.
func appendJavaExponent(dst []byte, v float64) []byte {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], v, 'e', -1, 64)
	e := bytes.IndexByte(text, 'e')
	mantissa, sign, digits := text[:e], text[e+1], text[e+2:]

	dst = append(dst, mantissa...)
	if bytes.IndexByte(mantissa, '.') < 0 {
		dst = append(dst, ".0"...)
	}

	dst = append(dst, 'E')
	if sign == '-' {
		dst = append(dst, '-')
	}
	// Go writes an exponent with two digits at least; here none is 0.
	return append(dst, bytes.TrimLeft(digits, "0")...)
}

var _ json.Marshaler = JSONDouble(0)
