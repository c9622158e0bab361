package encoding

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Annotation is a note at a time, of one series, or of all if it has no TSUID. Its
// JSON tags are those of the HTTP API, which leaves out an empty custom; the
// stored form is that of AppendAnnotation. Source: net.opentsdb.meta.Annotation.
type Annotation struct {
	TSUID       string            `json:"tsuid"`     // upper-case hex, "" for a global annotation
	StartTime   int64             `json:"startTime"` // seconds; ms if it has more than 32 bits
	EndTime     int64             `json:"endTime"`   // as StartTime; 0 for none
	Description string            `json:"description"`
	Notes       string            `json:"notes"`
	Custom      map[string]string `json:"custom,omitempty"`
}

// An annotation is a cell in the row of its series and hour, next to the points. Global
// annotations have rows of their own, with metric 0, salt 0 and no tags:
//
//	row      00 00 00 | 50 E2 27 00                     (salt 00) | metric 0 | base time
//	column   01 | 00 00              prefix | offset in s, 2 bytes
//	         01 | 00 00 04 57        prefix | offset in ms, 4 bytes
//	value    JSON, see AppendAnnotation
//
// Source: Annotation.getRowKey, Annotation.getQualifier.
const (
	annotationSeconds = 3 // length of a qualifier with an offset in s
	annotationMillis  = 5
	secondMask        = 0xFFFFFFFF << 32 // Const.SECOND_MASK: a time with one of these bits is in ms
)

// AppendAnnotationKey appends the row key of an annotation that starts at start,
// in seconds, or in ms if it has more than 32 bits. With an empty tsuid it is
// the key of the row of global annotations. It fails for a start below 1 or after
// MaxTime, and for a tsuid whose length does not fit the schema.
func (s Schema) AppendAnnotationKey(dst, tsuid []byte, start int64) ([]byte, error) {
	if start < 1 {
		return dst, fmt.Errorf("encoding: annotation starts at %d, want more than 0", start)
	}

	if uint64(start)&secondMask != 0 {
		start /= 1000
	}
	base, err := BaseTime(start)
	if err != nil {
		return dst, fmt.Errorf("encoding: startTime of an annotation: %w", err)
	}

	if len(tsuid) == 0 {
		dst = append(dst, make([]byte, s.BaseTimeAt())...) // salt 0, metric 0
		return binary.BigEndian.AppendUint32(dst, base), nil
	}

	metric, tags, err := s.SplitTSUID(tsuid)
	if err != nil {
		return dst, err
	}
	return s.AppendRowKey(dst, metric, base, tags), nil
}

// AppendAnnotationQualifier appends the column of an annotation that starts at start.
// OpenTSDB reads every multiple of 1000 as milliseconds, even if it is in seconds. The
// offset of such a time is wrong, but must be the same here: an annotation is found
// only in the column that OpenTSDB computes. The right start is in the JSON.
func AppendAnnotationQualifier(dst []byte, start int64) []byte {
	if start%1000 == 0 {
		start /= 1000
	}

	dst = append(dst, PrefixAnnotation)
	if uint64(start)&secondMask == 0 { // seconds: not more than 32 bits
		return binary.BigEndian.AppendUint16(dst, uint16(start%RowSeconds))
	}
	return binary.BigEndian.AppendUint32(dst, uint32(start-Hour(start/1000)*1000))
}

// ParseAnnotationQualifier returns the offset of an annotation's column in ms.
// milli is set if the column has the milliseconds form.
func ParseAnnotationQualifier(q []byte) (offsetMS int32, milli bool, err error) {
	if len(q) != annotationSeconds && len(q) != annotationMillis || q[0] != PrefixAnnotation {
		return 0, false, fmt.Errorf("encoding: annotation column % X, want %02X and 2 or 4 bytes", q, PrefixAnnotation)
	}

	var ms uint64
	if milli = len(q) == annotationMillis; milli {
		ms = uint64(binary.BigEndian.Uint32(q[1:]))
	} else {
		ms = uint64(binary.BigEndian.Uint16(q[1:])) * 1000
	}

	if ms > maxOffsetMS {
		return 0, false, fmt.Errorf("encoding: annotation column % X has offset %d ms, want at most %d", q, ms,
			maxOffsetMS)
	}

	return int32(ms), milli, nil
}

// ParseAnnotation reads the JSON of an annotation's cell. Unknown keys are
// ignored, as OpenTSDB does.
func ParseAnnotation(b []byte) (a Annotation, err error) {
	if err = json.Unmarshal(b, &a); err != nil {
		err = fmt.Errorf("encoding: cannot parse annotation of %d bytes: %w", len(b), err)
	}
	return a, err
}
