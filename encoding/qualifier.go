package encoding

import "fmt"

// A qualifier names a point inside its row: the offset from the base time, the
// type and the length of its value.
//
//	seconds, 2 bytes:       oooo oooo oooo fLLL      o = offset in s
//	milliseconds, 4 bytes:  1111 oooo oooo oooo oooo oooo oo00 fLLL   o = offset in ms
//
// f = 1 for a float, LLL = length of the value minus 1. The first four bits distinguish
// the forms: an offset in seconds is at most 3599 = E0F. Example: 07 B1 is 123 s,
// integer, 2 bytes. Source: Internal.buildQualifier.
const (
	floatFlag    = 0x8
	lengthMask   = 0x7
	flagBits     = 4
	flagMask     = 0xF
	milliFlag    = 0xF0 // first byte of a millisecond qualifier
	milliShift   = 6
	maxOffsetMS  = RowSeconds*1000 - 1
	milliBitMask = 0x3FFFFF
	// maxSecondsQualifier is larger than every qualifier of the seconds form, read
	// as a number, and smaller than every one of the milliseconds form.
	maxSecondsQualifier = RowSeconds << flagBits
)

// validFlags is a set of flags, one bit for each of the 16 values that the four
// flag bits can have: set for integers on 1, 2, 4 and 8 bytes and for floats on 4
// and 8, which are those that OpenTSDB reads.
const validFlags = 1<<0 | 1<<1 | 1<<3 | 1<<7 | 1<<(floatFlag|3) | 1<<(floatFlag|7)

// Column prefixes: the first byte of a qualifier of odd length.
const (
	PrefixAnnotation = 0x01 // 3 bytes: offset in s; 5 bytes: offset in ms
	PrefixAppend     = 0x05 // 05 00 00
	PrefixHistogram  = 0x06
)

// AppendColumn is the qualifier of the append column.
// Source: AppendDataPoints.APPEND_COLUMN_QUALIFIER.
var AppendColumn = []byte{PrefixAppend, 0x00, 0x00}

// Qualifier is the parsed qualifier of one point.
type Qualifier struct {
	OffsetMS int32 // from the base time
	Milli    bool  // stored in the millisecond form
	Float    bool
	Width    int // length of the value, 1 to 8
}

// AppendQualifier appends q in the milliseconds form if q.Milli is set, else in
// the seconds form, for which the offset must be whole seconds.
func AppendQualifier(dst []byte, q Qualifier) []byte {
	flags := uint32(valueFlags(q.Float, q.Width))
	if !q.Milli {
		v := uint32(q.OffsetMS/1000)<<flagBits | flags
		return append(dst, byte(v>>8), byte(v))
	}

	v := uint32(milliFlag)<<24 | uint32(q.OffsetMS)<<milliShift | flags
	return append(dst, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// QualifierWidth is the length, 2 or 4, of the qualifier that begins with b.
func QualifierWidth(b byte) int {
	if b&milliFlag == milliFlag {
		return 4
	}
	return 2
}

// ParseQualifier parses the qualifier at the start of b and returns the bytes that
// follow it. It fails if b is too short, and for an offset beyond the hour. It
// does not check the length of the value, which ParseValue does.
func ParseQualifier(b []byte) (q Qualifier, rest []byte, err error) {
	if len(b) == 0 || len(b) < QualifierWidth(b[0]) {
		return q, b, fmt.Errorf("encoding: qualifier % X is cut short", b)
	}

	var v uint32
	if QualifierWidth(b[0]) == 2 {
		v = uint32(b[0])<<8 | uint32(b[1])
		q.OffsetMS, rest = int32(v>>flagBits)*1000, b[2:]
	} else {
		v = uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
		q.OffsetMS, q.Milli, rest = int32(v>>milliShift&milliBitMask), true, b[4:]
	}

	q.Float, q.Width = v&floatFlag != 0, int(v&lengthMask)+1
	if q.OffsetMS > maxOffsetMS {
		return q, b, fmt.Errorf("encoding: qualifier % X has offset %d ms, want at most %d", b[:len(b)-len(rest)],
			q.OffsetMS, maxOffsetMS)
	}

	return q, rest, nil
}
