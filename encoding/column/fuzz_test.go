package column

import (
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// FuzzParse: no bytes make reading a block panic, and the points of a block that can be read make a block of the
// same points. The checksum is made right, so that what it covers is read.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		b := binary.AppendUvarint([]byte{Mark}, uint64(len(body)+checksumBytes))
		b = append(b, body...)
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		k, rest, err := Parse(b)
		if err != nil {
			return
		}
		if len(rest) > 0 {
			t.Fatalf("%d bytes are left of % X", len(rest), b)
		}
		var s Scratch
		var p, again Points
		if err := k.AppendTo(&p, &s); err != nil {
			return
		}
		var e Encoder
		c, _, err := Parse(e.Append(nil, p))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AppendTo(&again, &s); err != nil || !equal(p, again) {
			t.Fatalf("% X: %v become %v, %v", b, p, again, err)
		}
	})
}

// FuzzPoints: points of any bytes are given back.
func FuzzPoints(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		p := pointsOf(data)
		if p.Len() == 0 {
			return
		}
		var e Encoder
		var s Scratch
		var got Points
		k, _, err := Parse(e.Append(nil, p))
		if err != nil {
			t.Fatal(err)
		}
		if err := k.AppendTo(&got, &s); err != nil || !equal(got, p) {
			t.Fatalf("got %v, %v, want %v", got, err, p)
		}
	})
}

// pointsOf makes points of bytes: of each a distance, flags and as many bytes of a value as they say.
func pointsOf(data []byte) (p Points) {
	for at := int32(-1); len(data) > 2; {
		distance, flags := 1+int32(data[0])<<(data[1]>>5), data[1]&0x1F
		if !validFlags(flags) {
			flags &= FlagMillis
		}
		data = data[2:]
		n := int(flags&lengthMask) + 1
		if len(data) < n {
			break
		}
		if at += distance; flags&FlagMillis == 0 {
			at = (at + 999) / 1000 * 1000
		}
		if at > MaxOffset {
			break
		}
		raw := uint64(0)
		for _, b := range data[:n] {
			raw = raw<<8 | uint64(b)
		}
		p.Append(at, flags, raw)
		data = data[n:]
	}
	return p
}

// validFlags reports whether a point may have these flags.
func validFlags(flags uint8) bool {
	switch flags &^ FlagMillis {
	case 0, 1, 3, 7, FlagFloat | 3, FlagFloat | 7:
		return true
	}
	return false
}
