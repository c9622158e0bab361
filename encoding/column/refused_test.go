package column

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"downpour/encoding/seedtest"
)

// blockOf puts the mark, the length and the checksum around what is between them.
func blockOf(body []byte) []byte {
	b := binary.AppendUvarint([]byte{Mark}, uint64(len(body)+checksumBytes))
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// columnCases are what is between length and checksum of blocks, and in what Parse refuses them.
var columnCases = []struct{ name, body, want string }{
	{"nothing", "", "cut short"},
	{"six integers", "06 00 00000A 000000", ""},
	{"more behind", "06 00 00000A 000000 00", "bytes behind the columns is 1"},

	{"no points", "00 00 00000A 000000", "number of points is 0"},
	{"65,536 points", "808004 08 020001 000000", ""},
	{"65,537 points", "818004 00 020001 000000", "number of points is 65537"},

	{"a kind that is none", "06 10 00000A 000000", "kind of points is 16"},
	{"a run of no point", "06 8000 00 00000A 000000", "points of a kind is 0"},
	{"a run of all but one", "06 8005 00 00000A 000000", ""},
	{"a run of all that goes on", "06 8006 00 00000A 000000", "points of a kind is 6"},
	{"three runs", "06 8002 8103 00 00000A 000000", ""},
	{"three runs, the second of all that are left", "06 8002 8104 00 00000A 000000", "points of a kind is 4"},

	{"times of no form", "01 00 0400 000000", "form of times is 4"},
	{"the last second", "01 00 008F1C 000000", ""},
	{"the second behind it", "01 00 00901C 000000", "number in times is 3600"},
	{"the last millisecond", "01 08 02FFDCDB01 000000", ""},
	{"the millisecond behind it", "01 08 0280DDDB01 000000", "number in times is 3600000"},
	{"no distance", "06 00 000000 000000", "number in times is 0"},
	{"the last at the end", "06 00 0004CF05 000000", ""},
	{"the last behind the end", "06 00 0005CF05 000000", "last time is 3600"},
	{"one at other distances", "01 00 0100 000000", "not at equal distances is 1"},
	{"two at other distances", "02 00 01000101 00 000000", "not at equal distances is 2"},
	{"three at other distances", "03 00 01000101 00 000000", ""},
	{"no unit", "03 00 01000001 00 000000", "number in times is 0"},
	{"no least distance", "03 00 01000100 00 000000", "number in times is 0"},
	{"a unit of more than an hour", "03 00 0100901C01 00 000000", "number in times is 3600"},
	{"a distance of more than an hour", "03 00 010001901C 00 000000", "number in times is 3600"},

	{"an integer of more than 64 bits", "01 00 0000 00 FFFFFFFFFFFFFFFFFF7F 00", "cut short"},
	{"integers of no form", "06 00 00000A 020000", "form of integers is 2"},
	{"56 bits", "01 00 0000 0000 38 00000000000000", ""},
	{"57 bits", "01 00 0000 0000 39 0000000000000000", "width of packed numbers is 57"},
	{"63 bits", "01 00 0000 0000 3F 0000000000000000", "width of packed numbers is 63"},
	{"64 bits", "01 00 0000 0000 40 0000000000000000", ""},
	{"64 bits and higher ones", "01 00 0000 0000 C0 0000000000000000 01 0001", "number of patches is 1"},
	{"higher bits of all", "02 00 00000A 0000 81 00 02 00010001", ""},
	{"higher bits of more", "02 00 00000A 0000 81 00 03 000100010001", "number of patches is 3"},
	{"higher bits of the last", "02 00 00000A 0000 81 00 01 0101", ""},
	{"higher bits of one behind it", "02 00 00000A 0000 81 00 01 0201", "patch is 2"},
	{"higher bits of two behind each other", "02 00 00000A 0000 81 00 02 00010101", "patch is 1"},
	{"higher bits that are 0", "02 00 00000A 0000 81 00 01 0000", "patch is 0"},
	{"64 bits with the higher ones", "01 00 0000 0000 B8 00000000000000 01 00FF01", ""},
	{"65 bits with the higher ones", "01 00 0000 0000 B8 00000000000000 01 008002", "patch is 0"},

	{"floats of no form", "01 07 0000 03 0000000000000000", "form of floats is 3"},
	{"floats with bits that are none", "01 07 0000 10 0000000000000000", "form of floats is 16"},
	{"plain", "01 07 0000 00 0000000000000000", ""},
	{"plain, of four bytes", "01 06 0000 08 00000000", ""},
	{"eight bytes in four", "01 07 0000 08 00000000", "length of floats is 4"},
	{"eight bytes among four in four", "02 8601 07 00000A 08 0000000000000000", "length of floats is 4"},
	{"four bytes next to integers", "02 8601 00 00000A 000000 08 00000000", ""},
	{"four bytes with milliseconds, next to integers", "02 8E01 08 00000A 000000 08 00000000", ""},
	{"63 low bits", "02 07 00000A 01 0000000000000000 3F 00", ""},
	{"64 low bits", "02 07 00000A 01 0000000000000000 40 00", "number of low bits is 64"},
	{"an exponent of 22", "01 07 0000 02 16 000000 00", ""},
	{"an exponent of 23", "01 07 0000 02 17 000000 00", "exponent is 23"},
	{"all exceptions", "02 07 00000A 02 00 000000 02 00 0000000000000001 00 0000000000000002", ""},
	{"more exceptions", "01 07 0000 02 00 000000 02 00 0000000000000001 00 0000000000000002",
		"number of exceptions is 2"},
	{"the last is an exception", "02 07 00000A 02 00 000000 01 01 0000000000000001", ""},
	{"one behind it is", "02 07 00000A 02 00 000000 01 02 0000000000000001", "exception is 2"},
	{"the second is behind it", "02 07 00000A 02 00 000000 02 01 0000000000000001 00 0000000000000002",
		"exception is 0"},
}

// Blocks whose checksum is right are refused for what their columns cannot be, and those at the bounds are read. Of
// one that can be read no beginning can.
func TestParse_columns(t *testing.T) {
	t.Parallel()
	for _, c := range columnCases {
		body, err := hex.DecodeString(strings.ReplaceAll(c.body, " ", ""))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		k, rest, err := Parse(append(blockOf(body), "behind"...))
		if c.want != "" {
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want a damaged block whose %s", c.name, err, c.want)
			}
			continue
		}
		var p Points
		if err == nil {
			err = k.AppendTo(&p, new(Scratch))
		}
		if err != nil || p.Len() != k.Points || string(rest) != "behind" {
			t.Errorf("%s: %d points of %d, %q is left, %v", c.name, p.Len(), k.Points, rest, err)
		}
		for n := range body {
			if _, _, err := Parse(blockOf(body[:n])); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: the first %d bytes of % X: got %v, want a damaged block", c.name, n, body, err)
			}
		}
	}
}

// Times that leave the hour, or are no whole seconds where a point says so, are seen when they are unpacked. No point
// is added then.
func TestBlock_times(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, want string }{
		{"three in the hour", "03 00 03 00 01 01 00 000000", "whole seconds is 1"},
		{"three in the hour, of milliseconds", "03 08 03 00 01 01 00 000000", ""},
		{"the last one in its last second", "03 00 01 8D1C 01 01 00 000000", ""},
		{"the last one behind it", "03 00 01 8E1C 01 01 00 000000", "time is 3600000"},
		{"far away, by numbers that run over", "03 00 01 00 02 01 40 FFFFFFFFFFFFFF7F 0000000000000080 000000", "time"},
		{"whole seconds in milliseconds", "02 00 02 00 E807 000000", ""},
		{"no whole seconds", "02 00 02 01 E807 000000", "whole seconds is 1"},
		{"no whole seconds, as it says", "02 08 02 01 E807 000000", ""},
		{"no whole seconds, as the first says", "02 8801 00 02 00 E907 000000", "whole seconds is 1001"},
	} {
		body, err := hex.DecodeString(strings.ReplaceAll(c.body, " ", ""))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		k, _, err := Parse(blockOf(body))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		p := Points{Offset: []int32{7}, Raw: []uint64{8}, Flags: []uint8{9}}
		err = k.AppendTo(&p, new(Scratch))
		if c.want == "" && (err != nil || p.Len() != 1+k.Points) {
			t.Errorf("%s: %d points, %v, want %d", c.name, p.Len(), err, 1+k.Points)
		}
		if c.want != "" && (!errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want) || p.Len() != 1) {
			t.Errorf("%s: %d points, %v, want the one before and a block whose %s", c.name, p.Len(), err, c.want)
		}
	}
}

// A row's first and last millisecond are times of a block, and those next to them.
func TestTimes_ends(t *testing.T) {
	t.Parallel()
	var p, got Points
	for _, at := range []int32{0, 1, MaxOffset} {
		p.Append(at, FlagMillis, 7)
	}
	k, _, err := Parse(new(Encoder).Append(nil, p))
	if err == nil {
		err = k.AppendTo(&got, new(Scratch))
	}
	if err != nil || !equal(got, p) {
		t.Errorf("got %v, %v, want %v", got, err, p)
	}
}

// What is said of a block by its first bytes is what Parse says, and nothing is said of one that has been cut there.
func TestPeek(t *testing.T) {
	t.Parallel()
	r := seedtest.Rand(t)
	var e Encoder
	for _, kind := range valueKinds {
		p := generate(r, 40, "gaps", []string{kind, kind}, "both")
		b := e.Append(nil, p)
		n, rest, ok := Peek(append(slices.Clone(b), "behind"...))
		if n != p.Len() || string(rest) != "behind" || !ok {
			t.Errorf("%s: %d points, %q is left, %v, want %d", kind, n, rest, ok, p.Len())
		}
		if got := BeginsWithInteger(b); got != (p.Flags[0]&FlagFloat == 0) {
			t.Errorf("%s: begins with an integer: %v", kind, got)
		}
		for cut := range b {
			if n, rest, ok := Peek(b[:cut]); ok || n != 0 || len(rest) != cut {
				t.Errorf("%s, %d bytes of %d: %d points, %d bytes are left, %v", kind, cut, len(b), n, len(rest), ok)
			}
		}
		for cut := range 4 { // mark, length, count, kind
			if BeginsWithInteger(b[:cut]) {
				t.Errorf("%s: %d bytes begin with an integer", kind, cut)
			}
		}
		b[0]--
		if _, _, ok := Peek(b); ok || BeginsWithInteger(b) {
			t.Errorf("%s: something is said of bytes without the mark", kind)
		}
	}
	if n, _, ok := Peek(blockOf(binary.AppendUvarint(nil, MaxPoints+1))); n != MaxPoints || !ok {
		t.Errorf("more points than there can be: %d, %v, want %d", n, ok, MaxPoints)
	}
	if _, _, ok := Peek([]byte{Mark, 0}); ok {
		t.Error("a block without anything has points")
	}
	if BeginsWithInteger([]byte{Mark, 9, 0x80}) {
		t.Error("a block that is cut in its number of points begins with an integer")
	}
	other := binary.AppendUvarint([]byte{Mark - 1}, 7+checksumBytes)
	other = append(other, 1, 0, 0, 0, 0, 0, 0)
	other = binary.LittleEndian.AppendUint32(other, crc32.Checksum(other, castagnoli))
	if _, _, err := Parse(other); !errors.Is(err, ErrDamaged) {
		t.Errorf("a block with another mark: got %v", err)
	}
}
