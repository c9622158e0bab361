package pebble

import (
	"fmt"
	"time"
)

const (
	// tagAppend is the first byte of an append operand, or of joined ones: 00 bytes….
	tagAppend = 0x00
	// tagPut is the first byte of a value with its write time: 01, six bytes, value.
	tagPut = 0x01
	// putHeader is the length of tag and time.
	putHeader = 7
	// maxMillis is the last write time that six bytes hold, in the year 10889.
	maxMillis = 1<<48 - 1
)

// fillPut writes a put's header into dst[:putHeader].
func fillPut(dst []byte, ms int64) {
	dst[0] = tagPut
	for i := range 6 {
		dst[1+i] = byte(ms >> (40 - 8*i))
	}
}

// parseValue splits a stored value into its write time, 0 for an appended one, and
// its bytes.
func parseValue(stored []byte) (ms int64, value []byte, err error) {
	switch {
	case len(stored) > 0 && stored[0] == tagAppend:
		return 0, stored[1:], nil
	case len(stored) >= putHeader && stored[0] == tagPut:
		for _, c := range stored[1:putHeader] {
			ms = ms<<8 | int64(c)
		}
		return ms, stored[putHeader:], nil
	case len(stored) == 0:
		return 0, nil, fmt.Errorf("cannot parse an empty stored value, want a tag 00 or 01")
	}
	return 0, nil, fmt.Errorf("cannot parse a stored value of %d bytes that begins with %#02x, want 00, or 01 and 6 bytes of time", len(stored), stored[0])
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
