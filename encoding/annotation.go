package encoding

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Annotation is a note on a series, or on everything when it has no TSUID. Its
// JSON tags are those of the HTTP API, which leaves out an empty custom; the
// stored form is that of AppendAnnotation. Source: net.opentsdb.meta.Annotation.
type Annotation struct {
	TSUID       string            `json:"tsuid"`     // upper-case hex, "" for a global note
	StartTime   int64             `json:"startTime"` // seconds, or ms beyond 32 bits
	EndTime     int64             `json:"endTime"`   // like StartTime, 0 for none
	Description string            `json:"description"`
	Notes       string            `json:"notes"`
	Custom      map[string]string `json:"custom,omitempty"`
}

// An annotation lies in the row of its series and hour, beside the points. The
// global ones have rows of their own, of metric 0, without tags and salt:
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
	secondMask        = 0xFFFFFFFF << 32 // Const.SECOND_MASK: a time beyond it is in ms
)

// AppendAnnotationKey appends the row key of an annotation that starts at start
// (seconds, or ms beyond 32 bits). An empty tsuid makes the global row's key.
func (s Schema) AppendAnnotationKey(dst, tsuid []byte, start int64) ([]byte, error) {
	if start < 1 {
		return dst, fmt.Errorf("encoding: annotation starts at %d, want more than 0", start)
	}
	if uint64(start)&secondMask != 0 {
		start /= 1000
	}
	if len(tsuid) == 0 {
		dst = append(dst, make([]byte, s.BaseTimeAt())...)
		return binary.BigEndian.AppendUint32(dst, BaseTime(start)), nil
	}
	metric, tags, err := s.SplitTSUID(tsuid)
	if err != nil {
		return dst, err
	}
	return s.AppendRowKey(dst, metric, BaseTime(start), tags), nil
}

// AppendAnnotationQualifier appends the column of an annotation that starts at
// start. OpenTSDB takes a time that is a multiple of 1000 for milliseconds on a
// full second, also when it is in seconds; the offset of such a time is not
// that from the row's base time, but writers agree on it, and a note is found
// again only under the same column. The start itself is in the JSON.
func AppendAnnotationQualifier(dst []byte, start int64) []byte {
	if start%1000 == 0 {
		start /= 1000
	}
	dst = append(dst, PrefixAnnotation)
	if uint64(start)&secondMask == 0 {
		return binary.BigEndian.AppendUint16(dst, uint16(start%RowSeconds))
	}
	return binary.BigEndian.AppendUint32(dst, uint32(start-int64(BaseTime(start/1000))*1000))
}

// ParseAnnotationQualifier returns the offset that an annotation's column names,
// in ms, and whether it is stored in ms.
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
		return 0, false, fmt.Errorf("encoding: annotation column % X has offset %d ms, want at most %d", q, ms, maxOffsetMS)
	}
	return int32(ms), milli, nil
}

// ParseAnnotation reads the JSON of an annotation's cell. Unknown keys are
// ignored, as OpenTSDB does.
func ParseAnnotation(b []byte) (a Annotation, err error) {
	if err = json.Unmarshal(b, &a); err != nil {
		err = fmt.Errorf("encoding: annotation of %d bytes: %w", len(b), err)
	}
	return a, err
}
