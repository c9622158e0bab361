package encoding

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Value is one stored number. Its type follows from how the client wrote it: 1 is
// an integer and 1.0 a float. Answers keep the type.
type Value struct {
	Float bool
	Bits  uint64 // an int64, or a float64 as math.Float64bits
}

// IntValue returns the value of an integer.
func IntValue(v int64) Value { return Value{Bits: uint64(v)} }

// FloatValue returns the value of a double.
func FloatValue(v float64) Value { return Value{Float: true, Bits: math.Float64bits(v)} }

// Int is the number that an integer value holds.
func (v Value) Int() int64 { return int64(v.Bits) }

// Double is the number as a double: what OpenTSDB's arithmetic over doubles uses.
func (v Value) Double() float64 {
	if v.Float {
		return math.Float64frombits(v.Bits)
	}
	return float64(int64(v.Bits))
}

// String is the number in Go's shortest form. A float differs from an integer: it has
// a point, an exponent or is NaN or Inf.
func (v Value) String() string {
	if !v.Float {
		return strconv.FormatInt(v.Int(), 10)
	}
	text := strconv.FormatFloat(v.Double(), 'g', -1, 64)
	if strings.ContainsAny(text, ".eNI") {
		return text
	}
	return text + ".0"
}

// IntWidth is the number of bytes, 1, 2, 4 or 8, on which v is stored: the smallest
// that holds it. Source: TSDB.addPoint.
func IntWidth(v int64) int {
	switch {
	case v == int64(int8(v)):
		return 1
	case v == int64(int16(v)):
		return 2
	case v == int64(int32(v)):
		return 4
	}
	return 8
}

// AppendInt appends v on IntWidth(v) bytes.
func AppendInt(dst []byte, v int64) []byte { return appendRaw(dst, uint64(v), IntWidth(v)) }

// AppendDouble appends v on 8 bytes, the form that HTTP puts are stored in.
func AppendDouble(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v))
}

// FloatWidth is 4 if v can be narrowed to 32 bits without loss, else 8. Telnet puts
// and imports are stored on this width. Source: Tags.fitsInFloat.
func FloatWidth(v float64) int {
	if float64(float32(v)) == v {
		return 4
	}
	return 8
}

// AppendShortFloat appends v on FloatWidth(v) bytes.
func AppendShortFloat(dst []byte, v float64) []byte {
	if FloatWidth(v) == 4 {
		return binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(v)))
	}
	return AppendDouble(dst, v)
}

// ParseValue decodes the value of a single cell. If the value's real length
// differs from that in the qualifier, the real one is used, because some writers
// set the qualifier wrong. An old version of OpenTSDB stored floats on 8 bytes,
// four zeros and then the float, with a qualifier that says 4: such a value is
// read from the last four bytes. With other leading bytes it is corrupt.
// Source: Internal.fixFloatingPointValue, Internal.fixQualifierFlags.
func ParseValue(q Qualifier, b []byte) (Value, error) {
	raw, width, err := readSingle(q, b)
	if err != nil {
		return Value{}, err
	}
	return widen(raw, width, q.Float), nil
}

// readSingle returns the bytes of a single cell's value as a number, and how many
// they really are; see ParseValue.
func readSingle(q Qualifier, b []byte) (raw uint64, width int, err error) {
	width = len(b)

	// The old error: four zeros before a 4-byte float.
	if q.Float && q.Width == 4 && width == 8 {
		if binary.BigEndian.Uint32(b) != 0 {
			return 0, 0, fmt.Errorf("encoding: value % X of a 4-byte float has 8 bytes, want the first four zero", b)
		}
		b, width = b[4:], 4
	}

	if !validWidth(width, q.Float) {
		return 0, 0, fmt.Errorf("encoding: value % X has %d bytes, want %s", b, width, widthsWanted(q.Float))
	}
	return readRaw(b, width), width, nil
}

// validWidth reports whether a value of the type can have width bytes.
func validWidth(width int, float bool) bool {
	if float {
		return width == 4 || width == 8
	}
	return width == 1 || width == 2 || width == 4 || width == 8
}

// valueFlags returns the last four bits of a qualifier: type and length.
func valueFlags(float bool, width int) uint8 {
	f := uint8(width-1) & lengthMask
	if float {
		f |= floatFlag
	}
	return f
}

// widthsWanted is the end of an error about a width.
func widthsWanted(float bool) string {
	if float {
		return "4 or 8 for a float"
	}
	return "1, 2, 4 or 8 for an integer"
}

// readRaw reads width bytes big-endian; b holds at least as many.
func readRaw(b []byte, width int) uint64 {
	switch width {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	}
	return binary.BigEndian.Uint64(b)
}

// appendRaw appends the width low bytes of raw big-endian.
func appendRaw(dst []byte, raw uint64, width int) []byte {
	for i := width - 1; i >= 0; i-- {
		dst = append(dst, byte(raw>>(8*i)))
	}
	return dst
}

// widen turns the bytes of a value, as a number, into a Value: it extends the sign
// of integers and widens 4-byte floats to doubles.
func widen(raw uint64, width int, float bool) Value {
	if float && width == 4 {
		return FloatValue(float64(math.Float32frombits(uint32(raw))))
	}
	if float {
		return Value{Float: true, Bits: raw}
	}

	shift := uint(64-8*width) & 63 // the mask avoids a test for larger shifts
	return IntValue(int64(raw<<shift) >> shift)
}
