package pebble

import (
	"encoding/binary"
	"fmt"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

const (
	// tagAppend is the first byte of an append operand, or of joined ones: 00 bytes….
	tagAppend = 0x00
	// tagPut is the first byte of a value with its write time: 01, six bytes, value.
	tagPut = 0x01
	// tagSealed is the first byte of an append column whose beginning is sealed, see encoding.Sealer:
	// 02, FF, the length of that beginning as an uvarint, and the value. The FF, which begins no
	// entry, makes a value whose first byte has become 00 unreadable.
	tagSealed  = 0x02
	sealedMark = 0xFF
	// putHeader is the length of tag and time.
	putHeader = 7
	// mostHeader is the length of the longest header: lengths are below 2^35.
	mostHeader = 7
	// maxMillis is the last write time that six bytes hold, in the year 10889.
	maxMillis = 1<<48 - 1
)

// cellValue is a stored value.
type cellValue struct {
	tag    byte
	ms     int64 // write time of a put, 0 for others
	sealed int   // how many bytes of a sealed one were sealed
	bytes  []byte
}

// entries returns the value as it was before anything of it was sealed: a view, or what it has appended to
// dst[:0]. It fails with store.ErrDamaged if a block is not as it was written.
func (v cellValue) entries(dst []byte, u *encoding.Unsealer) ([]byte, error) {
	if v.tag != tagSealed {
		return v.bytes, nil
	}
	value, err := u.Unseal(dst[:0], v.bytes[:v.sealed])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	// What was appended later is what it is, entries or not.
	return append(value, v.bytes[v.sealed:]...), nil
}

// head is all of a value but its bytes.
func (v cellValue) head() cellValue {
	v.bytes = nil
	return v
}

// kind is what a value is, in words.
func (v cellValue) kind() string {
	return [...]string{tagAppend: "an append", tagPut: "a put", tagSealed: "a sealed column"}[v.tag]
}

// fillPut writes a put's header into dst[:putHeader].
func fillPut(dst []byte, ms int64) {
	dst[0] = tagPut
	for i := range 6 {
		dst[1+i] = byte(ms >> (40 - 8*i))
	}
}

// appendSealedHeader appends the beginning of a value with so many sealed bytes.
func appendSealedHeader(dst []byte, sealed int) []byte {
	return binary.AppendUvarint(append(dst, tagSealed, sealedMark), uint64(sealed))
}

// parseValue parses a stored value.
func parseValue(stored []byte) (v cellValue, err error) {
	switch {
	case len(stored) > 0 && stored[0] == tagAppend:
		return cellValue{tag: tagAppend, bytes: stored[1:]}, nil
	case len(stored) >= putHeader && stored[0] == tagPut:
		for _, c := range stored[1:putHeader] {
			v.ms = v.ms<<8 | int64(c)
		}
		v.tag, v.bytes = tagPut, stored[putHeader:]
		return v, nil
	case len(stored) > 2 && stored[0] == tagSealed && stored[1] == sealedMark:
		length, n := binary.Uvarint(stored[2:])
		if n <= 0 || length > uint64(len(stored)-2-n) {
			return v, fmt.Errorf(
				"cannot parse a sealed value of %d bytes that begins with % x, want the length of what is sealed",
				len(stored), stored[:3])
		}
		return cellValue{tag: tagSealed, sealed: int(length), bytes: stored[2+n:]}, nil
	case len(stored) == 0:
		return v, fmt.Errorf("cannot parse an empty stored value, want a tag 00, 01 or 02")
	}
	return v, fmt.Errorf(
		"cannot parse a stored value of %d bytes that begins with %#02x, want 00, 01 and 6 bytes of time, or 02 ff",
		len(stored), stored[0])
}

// writeTime returns the write time of a put in milliseconds: its own, or the clock's
// if that is 0.
func writeTime(ms int64, now func() time.Time) (int64, error) {
	if ms == 0 {
		ms = now().UnixMilli()
	}
	if ms < 0 || ms > maxMillis {
		return 0, fmt.Errorf("timestamp %d ms, want 0 to %d", ms, int64(maxMillis))
	}
	return ms, nil
}
