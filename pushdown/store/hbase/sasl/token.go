package sasl

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// TokenID is the kind of a token in a context's establishment.
type TokenID uint16

// The tokens of RFC 4121, section 4.1.
const (
	APReq    TokenID = 0x0100
	APRep    TokenID = 0x0200
	KRBError TokenID = 0x0300
)

// mechanism is Kerberos's object identifier 1.2.840.113554.1.2.2 in DER.
var mechanism = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

const applicationTag = 0x60 // ASN.1: application 0, constructed

// AppendToken appends a token of the context's establishment. Source: RFC 2743, section
// 3.1.
func AppendToken(dst []byte, id TokenID, body []byte) []byte {
	n := len(mechanism) + 2 + len(body)
	dst = append(dst, applicationTag)
	switch {
	case n < 0x80:
		dst = append(dst, byte(n))
	case n < 0x10000:
		dst = append(dst, 0x82, byte(n>>8), byte(n))
	default:
		dst = append(dst, 0x84)
		dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	}
	dst = append(dst, mechanism...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(id))
	return append(dst, body...)
}

// ParseToken parses a token of the context's establishment. The body is a part of b.
func ParseToken(b []byte) (id TokenID, body []byte, err error) {
	if len(b) < 2 || b[0] != applicationTag {
		return 0, nil, fmt.Errorf("%w: token of %d bytes does not begin with 60 and a length", ErrFrame, len(b))
	}

	// A length of more than 127 comes after the number of its own bytes.
	n, rest := int(b[1]), b[2:]
	if n >= 0x80 {
		size := n & 0x7f
		if size < 1 || size > 4 || size > len(rest) {
			return 0, nil, fmt.Errorf("%w: token: got a length of %d bytes, want 1 to 4", ErrFrame, size)
		}
		n = 0
		for _, c := range rest[:size] {
			n = n<<8 | int(c)
		}
		rest = rest[size:]
	}
	if n != len(rest) {
		return 0, nil, fmt.Errorf("%w: token: got length %d before %d bytes", ErrFrame, n, len(rest))
	}

	rest, ok := bytes.CutPrefix(rest, mechanism)
	if !ok || len(rest) < 2 {
		return 0, nil, fmt.Errorf("%w: token is not Kerberos's", ErrFrame)
	}
	return TokenID(binary.BigEndian.Uint16(rest)), rest[2:], nil
}
