// Package message reads protocol buffers in place, field by field: requests of thousands of small messages are read
// without memory for each.
//
//	0a 02 7570    field 1, bytes: up
//	10 64         field 2, a number: 100
//
// Source: protobuf.dev, encoding.
package message

import (
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// Value is the value of a field: a number or bytes.
type Value struct {
	Kind   protowire.Type
	Number uint64 // of a VarintType or Fixed64Type
	Bytes  []byte // of a BytesType, in place
}

// Text is the bytes, which must not change as long as it is used.
func (v Value) Text() string { return unsafe.String(unsafe.SliceData(v.Bytes), len(v.Bytes)) }

// Next reads the first field of a message, and returns what is behind it; ok is false if the message is cut off or
// broken.
func Next(b []byte) (number protowire.Number, v Value, rest []byte, ok bool) {
	// Nearly all fields are text of less than 128 bytes.
	if len(b) >= 2 && b[0] < 0x80 && b[0]&7 == byte(protowire.BytesType) && b[1] < 0x80 && b[0] >= 8 {
		end := 2 + int(b[1])
		if end > len(b) {
			return 0, v, nil, false
		}
		return protowire.Number(b[0] >> 3), Value{Kind: protowire.BytesType, Bytes: b[2:end]}, b[end:], true
	}

	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return 0, v, nil, false
	}
	b = b[n:]
	v.Kind = kind
	switch kind {
	case protowire.VarintType:
		v.Number, n = protowire.ConsumeVarint(b)
	case protowire.Fixed64Type:
		v.Number, n = protowire.ConsumeFixed64(b)
	case protowire.BytesType:
		v.Bytes, n = protowire.ConsumeBytes(b)
	default:
		n = protowire.ConsumeFieldValue(number, kind, b)
	}
	if n < 0 {
		return 0, v, nil, false
	}
	return number, v, b[n:], true
}
