package encoding

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unhex reads hex with or without spaces.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// row decodes cells given as "qualifier=value" in hex, each written a ms after
// the one before it.
func row(t testing.TB, fix bool, base uint32, cells ...string) (Points, error) {
	t.Helper()
	d := RowDecoder{FixDuplicates: fix}
	d.Reset(base)
	for i, c := range cells {
		q, v, _ := strings.Cut(c, "=")
		if err := d.Add(unhex(t, q), unhex(t, v), int64(i)); err != nil {
			return Points{}, err
		}
	}
	var p Points
	err := d.Finish(&p)
	return p, err
}

func points(atValue ...any) (p Points) {
	for i := 0; i < len(atValue); i += 2 {
		v, isFloat := atValue[i+1].(float64)
		value := FloatValue(v)
		if !isFloat {
			value = IntValue(int64(atValue[i+1].(int)))
		}
		p.Append(int64(atValue[i].(int)), value)
	}
	return p
}

// The example of OpenTSDB's schema page: mysql.bytes_sent host=ubuntu, 476 at
// 1292148123.
func TestDocumentedExample_integer(t *testing.T) {
	s := DefaultSchema()
	metric, tagk, tagv := UID{0, 0, 1}, UID{0, 0, 1}, UID{0, 0, 1}
	base := KeyTime(Hour(1292148123))
	if base != 1292148000 {
		t.Errorf("base time %d, want 1292148000", base)
	}
	key := s.AppendRowKey(nil, metric, base, s.AppendTags(nil, []TagPair{{tagk, tagv}}))
	if want := unhex(t, "000001 4D049D20 000001 000001"); !bytes.Equal(key, want) {
		t.Errorf("row key % X, want % X", key, want)
	}
	value := AppendInt(nil, 476)
	q := AppendQualifier(nil, Qualifier{OffsetMS: 123_000, Width: len(value)})
	if !bytes.Equal(q, []byte{0x07, 0xB1}) || !bytes.Equal(value, []byte{0x01, 0xDC}) {
		t.Errorf("cell % X = % X, want 07 B1 = 01 DC", q, value)
	}
	for _, cell := range []string{"07B1=01DC", "07B3=000001DC", "07B7=00000000000001DC"} {
		got, err := row(t, false, base, cell)
		if diff := cmp.Diff(points(1292148123000, 476), got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", cell, err, diff)
		}
	}
}

// The example of OpenTSDB's storage page: a float at 1297574486.
func TestDocumentedExample_float(t *testing.T) {
	base := KeyTime(Hour(1297574486))
	if want := uint32(0x4D576550); want != 1297573200 || base != want {
		t.Errorf("base time %d = %X, want 1297573200 = 4D576550", base, base)
	}
	offset := 1297574486 - int64(base)
	if offset != 1286 {
		t.Errorf("offset %d, want 1286", offset)
	}
	for width, want := range map[int]string{4: "506B", 8: "506F"} {
		got := AppendQualifier(nil, Qualifier{OffsetMS: int32(offset) * 1000, Float: true, Width: width})
		if !bytes.Equal(got, unhex(t, want)) {
			t.Errorf("qualifier of a float on %d bytes % X, want %s", width, got, want)
		}
	}
	if got := AppendShortFloat(nil, 4.25); !bytes.Equal(got, unhex(t, "40880000")) {
		t.Errorf("4.25 is % X, want 40 88 00 00", got)
	}
	if got := AppendShortFloat(nil, 0.1); len(got) != 8 {
		t.Errorf("0.1 is % X, want 8 bytes", got)
	}
	for _, cell := range []string{"506B=40880000", "506F=4011000000000000"} {
		got, err := row(t, false, base, cell)
		if diff := cmp.Diff(points(1297574486000, 4.25), got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", cell, err, diff)
		}
	}
}

func TestRowDecoder_reads(t *testing.T) {
	f := func(name string, want Points, cells ...string) {
		t.Helper()
		got, err := row(t, false, 0, cells...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	f("no cells", Points{})
	f("length by the value, not the qualifier: 8 said, 1 there", points(123_000, 5), "07B7=05")
	f("1 said, 8 there", points(123_000, -2), "07B0=FFFFFFFFFFFFFFFE")
	f("float, 8 said, 4 there", points(1286_000, 4.25), "506F=40880000")
	f("milliseconds, 8 said, 2 there", points(123, -2), "F0001EC7=FFFE")
	f("old float: 4 said, 8 there, four zeros", points(1286_000, 4.25), "506B=0000000040880000")
	f("integers of all widths, signed", points(0, -1, 1000, -2, 2000, -3, 3000, math.MinInt64),
		"0000=FF", "0011=FFFE", "0023=FFFFFFFD", "0037=8000000000000000")
	f("compacted, seconds", points(0, 1, 1000, 300, 2000, 4.25), "00000011002B=01 012C 40880000 00")
	f("compacted, milliseconds", points(1, 1, 2, 2), "F0000040F0000080=01 02 00")
	f("compacted, seconds and milliseconds", points(0, 1, 250, 2, 1000, 3), "0000F0003E800010=01 02 03 01")
	f("compacted, milliseconds first, mixed without saying so", points(250, 2, 1000, 3), "F0003E800010=02 03 00")
	f("single cells out of order", points(250, 2, 1000, 3), "0010=03", "F0003E80=02")
	f("compacted and late single cells", points(0, 1, 1000, 2, 2000, 3, 3000, 4), "00000020=01 03 00", "0010=02",
		"0030=04")
	f("append", points(0, 1, 1000, 300, 2000, 4.25), "050000=0000 01 0011 012C 002B 40880000")
	f("append, empty", Points{}, "050000=")
	f("append, out of order, the later entry of a time wins", points(0, 7, 1000, 9), "050000=0010 05 0000 07 0010 09")
	f("append, later wins over another width and form", points(1000, 300, 2000, 2),
		"050000=0010 05 0020 02 F000FA01 012C")
	f("append after a single cell", points(0, 1, 1000, 2), "0010=02", "050000=0000 01")
	f("append column of another offset, as OpenTSDB reads it", points(0, 1), "050010=0000 01")
	f("append and single of equal bytes", points(1000, 2), "0010=02", "050000=0010 02")
	f("equal bytes of one time are one point", points(1000, 5), "0010=05", "F000FA00=05")
	f("annotation and unknown columns next to a point", points(0, 1), "0000=01", "010000=7B7D", "060000=00",
		"0900FF=00")
}

func TestRowDecoder_refuses(t *testing.T) {
	f := func(name, wantInError string, cells ...string) {
		t.Helper()
		got, err := row(t, false, 0, cells...)
		if err == nil || !strings.Contains(err.Error(), wantInError) {
			t.Errorf("%s: %v, %v, want an error with %q", name, got, err, wantInError)
		}
	}
	f("old float without zeros", "first four zero", "506B=4011000000000000")
	f("integer on 3 bytes", "has 3 bytes", "0002=010203")
	f("float on 2 bytes", "4 or 8 for a float", "0009=0102")
	f("no value", "has 0 bytes", "0000=")
	f("empty qualifier", "empty qualifier", "=01")
	f("seconds beyond the hour", "at most 3599999", "E100=01")
	f("milliseconds beyond the hour", "at most 3599999", "FDBBA000=01")
	f("compacted, value short", "at most the 1 left", "00000011=01 02")
	f("compacted, no trailer", "has 2 value bytes, 0 after its points, want 1", "00000010=01 02")
	f("compacted, too long", "2 after its points, want 1", "00000010=01 02 03 00")
	f("compacted, trailer", "ends with 02", "00000010=01 02 02")
	f("compacted, length 3", "1, 2, 4 or 8", "00020010=01020304050607080900")
	f("compacted, qualifier cut", "cut short", "0000F000=01 02 00")
	f("compacted, beyond the hour", "at qualifier byte 2", "0000E100=0102030405060708090000")
	f("append, cut in the value", "append column at byte 3", "050000=0000 01 0011 01")
	f("append, cut in the qualifier", "append column at byte 3", "050000=0000 01 00")
	f("append column of 5 bytes", "want 3", "0500000000=0000 01")
	f("duplicates", "duplicate timestamp at offset 1000 ms: 07 and 05", "0010=05", "F000FA00=07")
	f("an append does not overwrite a cell", "duplicate", "0010=05", "050000=0010 07")
	f("equal numbers on different widths", "duplicate", "0010=05", "0011=0005")
	f("duplicates inside a compacted cell", "duplicate", "00100010=05 07 00")
}

func TestRowDecoder_duplicates(t *testing.T) {
	_, err := row(t, false, 0, "0000=01", "0010=05", "F000FA01=012C")
	var dup *DuplicateError
	if !errors.As(err, &dup) {
		t.Fatalf("error %v, want a DuplicateError", err)
	}
	if diff := cmp.Diff(&DuplicateError{1000, []byte{1, 0x2C}, []byte{5}}, dup); diff != "" {
		t.Error(diff)
	}
	f := func(name string, want Points, cells ...string) {
		t.Helper()
		got, err := row(t, true, 0, cells...)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	f("fixed: the later write wins", points(0, 1, 1000, 300), "0000=01", "0010=05", "F000FA01=012C")
	f("whatever its form", points(1000, 5), "F000FA01=012C", "0010=05")
	f("also against a compacted cell", points(1000, 9, 2000, 3), "00100020=02 03 00", "0010=09")
	// Only bytes are compared, not types; the newest cell's type stays.
	f("integer and float of equal bytes", points(1000, 1.0), "0013=3F800000", "001B=3F800000")
	got, err := row(t, false, 0, "0013=3F800000", "001B=3F800000")
	if diff := cmp.Diff(points(1000, 1.0), got); err != nil || diff != "" {
		t.Errorf("integer and float of equal bytes, not fixed: %v\n%s", err, diff)
	}
}

func TestRowDecoder_isReused(t *testing.T) {
	var d RowDecoder
	var p Points
	for range 2 { // the second row must not see the first
		d.Reset(3600)
		if err := errors.Join(d.Add(unhex(t, "0010"), []byte{2}, 1), d.Add(unhex(t, "0000"), []byte{1}, 1),
			d.Add(unhex(t, "F000FA00"), []byte{2}, 2), d.Add(unhex(t, "F0000000"), []byte{1}, 2),
			d.Add(unhex(t, "010000"), []byte("{}"), 1), d.Add(unhex(t, "070000"), nil, 1)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Finish(&p), d.Finish(&p)); err != nil {
			t.Fatal(err)
		}
		if len(d.Annotations()) != 1 || d.Skipped() != 1 {
			t.Errorf("%d annotations, %d skipped, want 1 and 1", len(d.Annotations()), d.Skipped())
		}
	}
	// Two rows, each finished twice.
	once := points(3600_000, 1, 3601_000, 2)
	var want Points
	for range 4 {
		want.AppendPoints(once)
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
}

// Salt gives the salts that OpenTSDB gave the rows in testdata/rows; one hash is negative.
func TestSalt_asOpenTSDB(t *testing.T) {
	s := recordedFiles[2].schema
	buckets := map[int]bool{}
	for _, c := range readRows(t, recordedFiles[2].name) {
		if c.Family != FamilyData {
			continue
		}
		k, err := s.ParseRowKey(c.Row)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Salt(k.Metric, k.Tags); uint64(got) != UIDNumber(k.Salt) {
			t.Errorf("row % X: Salt gives %d, want the salt in the row key", c.Row, got)
		}
		buckets[s.Salt(k.Metric, k.Tags)] = true
	}
	if len(buckets) != 4 {
		t.Errorf("buckets %v, want all four", buckets)
	}
}
