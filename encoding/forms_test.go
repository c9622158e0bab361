package encoding

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// validTypes are the flags of values: integers on 1, 2, 4 and 8 bytes, floats on 4 and 8.
var validTypes = []uint8{0, 1, 3, 7, floatFlag | 3, floatFlag | 7}

// cellOfTypes returns a compacted cell, or the value of an append column, of points ten seconds apart with values of
// these types, each of different bytes.
func cellOfTypes(appended bool, types []uint8) (qualifier, value []byte) {
	next := byte(0x85)
	var qualifiers, values, entries []byte
	for i, f := range types {
		q := binary.BigEndian.AppendUint16(nil, uint16(10*i)<<flagBits|uint16(f))
		var v []byte
		for range int(f&lengthMask) + 1 {
			v = append(v, next)
			next += 0x35
		}
		qualifiers, values = append(qualifiers, q...), append(values, v...)
		entries = append(append(entries, q...), v...)
	}
	if appended {
		return AppendColumn, entries
	}
	return qualifiers, append(values, 0)
}

// pointsOf returns the points of a cell as Add and Finish make them, none if it cannot be read.
func pointsOf(t *testing.T, qualifier, value []byte) (p Points, err error) {
	t.Helper()
	var d RowDecoder
	d.Reset(0)
	err = d.Add(qualifier, value, 1)
	if finished := d.Finish(&p); finished != nil {
		t.Fatal(finished)
	}
	return p, err
}

// checkFast compares what OnlyCell, OnlyBits and OnlyEvenlySpaced of new decoders make of a cell with its points.
func checkFast(t *testing.T, what string, qualifier, value []byte, want Points, err error) (cell, bits bool) {
	t.Helper()
	var d, e, f RowDecoder
	offsets, doubles, cell := d.OnlyCell(qualifier, value, nil)
	times, raw, isFloat, bits := e.OnlyBits(qualifier, value, nil)
	even, evenly := f.OnlyEvenlySpaced(qualifier, value)
	if err != nil && (cell || bits || evenly) {
		t.Fatalf("%s, which cannot be read (%v), is taken: OnlyCell %t, OnlyBits %t, OnlyEvenlySpaced %t", what, err,
			cell, bits, evenly)
	}
	for i := range want.Len() {
		ms, v := want.At(i)
		if cell && (int64(offsets[i]) != ms || !sameBits(doubles[i], v.Double())) ||
			bits && (int64(times[i]) != ms || raw[i] != v.Bits || isFloat != v.Float) ||
			evenly && (int64(even.First)+int64(i)*int64(even.Step) != ms || even.At(i) != v.Int()) {
			t.Fatalf("%s: point %d differs from %v at %d ms", what, i, v, ms)
		}
	}
	return cell, bits
}

// Points of each of the 16 types that a qualifier can name are read in each way if it is one of the six that exist,
// and are an error otherwise, however many stand next to them; so is a cell that is cut. An error leaves no points.
func TestRowDecoder_everyType(t *testing.T) {
	for _, appended := range []bool{false, true} {
		for n := 2; n <= 20; n++ {
			for f := range uint8(16) {
				for _, other := range validTypes {
					types := slices.Repeat([]uint8{f}, n)
					types[n/2] = other
					qualifier, value := cellOfTypes(appended, types)
					what := fmt.Sprintf("append column %t of the types %d", appended, types)
					p, err := pointsOf(t, qualifier, value)
					valid := slices.Contains(validTypes, f)
					if valid != (err == nil) || valid && p.Len() != n || !valid && p.Len() != 0 {
						t.Fatalf("%s: %d points, error %v, want them valid: %t", what, p.Len(), err, valid)
					}
					cell, bits := checkFast(t, what, qualifier, value, p, err)
					if f == other && (!cell || !bits) {
						t.Fatalf("%s: OnlyCell %t, OnlyBits %t, want both", what, cell, bits)
					}
				}
			}
		}
	}
	for _, types := range [][]uint8{{0, 0, 0}, {1, 0, 7}, {7, 7}, {floatFlag | 3, floatFlag | 3}, {0, floatFlag | 7}} {
		for _, appended := range []bool{false, true} {
			qualifier, value := cellOfTypes(appended, types)
			for n := range value {
				p, err := pointsOf(t, qualifier, value[:n])
				checkFast(t, fmt.Sprintf("% X = % X", qualifier, value[:n]), qualifier, value[:n], p, err)
				if (err == nil) != (appended && wholeEntries(value[:n])) {
					t.Fatalf("% X = % X: error %v", qualifier, value[:n], err)
				}
			}
		}
	}
}

// wholeEntries reports whether a value consists of entries in the seconds form.
func wholeEntries(value []byte) bool {
	for len(value) >= 2 {
		width := 2 + int(value[1]&lengthMask) + 1
		if width > len(value) {
			return false
		}
		value = value[width:]
	}
	return len(value) == 0
}

// A time beyond the hour is an error, also among many, and says where it is, as a value of an unknown type does.
func TestRowDecoder_whereErrorsAre(t *testing.T) {
	types := slices.Repeat([]uint8{0}, 9)
	hour := uint16(3600) << flagBits
	for _, c := range []struct {
		appended bool
		at       int // of the point that is changed
		to       uint16
		want     string
	}{
		{false, 0, hour, "compacted cell at qualifier byte 0: encoding: qualifier E1 00 has offset 3600000 ms"},
		{false, 8, hour, "compacted cell at qualifier byte 16: "},
		{false, 0, 2, "value at byte 0 is said to have 3 bytes"},
		{false, 8, 2, "value at byte 8 is said to have 3 bytes, want 1, 2, 4 or 8 for an integer and at most the 2 " +
			"left"},
		{true, 0, hour, "append column at byte 0: encoding: qualifier E1 00 has offset 3600000 ms"},
		{true, 8, hour, "append column at byte 24: "},
		{true, 0, 2, "append column at byte 0: value is said to have 3 bytes"},
		{true, 8, 2, "append column at byte 24: value is said to have 3 bytes, want 1, 2, 4 or 8 for an integer " +
			"and at most the 1 left"},
	} {
		qualifier, value := cellOfTypes(c.appended, types)
		if c.appended {
			binary.BigEndian.PutUint16(value[3*c.at:], c.to)
		} else {
			binary.BigEndian.PutUint16(qualifier[2*c.at:], c.to)
		}
		p, err := pointsOf(t, qualifier, value)
		if err == nil || !strings.Contains(err.Error(), c.want) || p.Len() != 0 {
			t.Errorf("% X = % X: %d points, error %v, want %q", qualifier, value, p.Len(), err, c.want)
		}
	}
}

// The last millisecond of an hour is a time of it.
func TestParseQualifier_lastMillisecond(t *testing.T) {
	want := Qualifier{OffsetMS: 3_599_999, Milli: true, Width: 1}
	if got, rest, err := ParseQualifier(AppendQualifier(nil, want)); err != nil || got != want || len(rest) != 0 {
		t.Errorf("got %+v, %d bytes left, %v, want %+v", got, len(rest), err, want)
	}
}

// The last byte of a compacted cell says whether it has times of both forms, however many it has of each.
func TestCellBuilder_trailer(t *testing.T) {
	for seconds := range 5 {
		for millis := range 5 {
			if seconds+millis < 2 {
				continue
			}
			var b, other CellBuilder // of two orders
			for i := range seconds {
				b.Add(Qualifier{OffsetMS: int32(i) * 1000, Width: 1}, []byte{7})
			}
			for i := range millis {
				b.Add(Qualifier{OffsetMS: int32(i)*1000 + 1, Milli: true, Width: 1}, []byte{7})
				other.Add(Qualifier{OffsetMS: int32(i) + 1, Milli: true, Width: 1}, []byte{7})
			}
			for i := range seconds {
				other.Add(Qualifier{OffsetMS: int32(i)*1000 + 1000, Width: 1}, []byte{7})
			}
			want := byte(0)
			if seconds > 0 && millis > 0 {
				want = 1
			}
			if _, value := b.Cell(); value[len(value)-1] != want || len(value) != seconds+millis+1 {
				t.Errorf("%d s and %d ms: value % X, want the end %02X", seconds, millis, value, want)
			}
			if _, value := other.Cell(); value[len(value)-1] != want {
				t.Errorf("%d ms and %d s: value % X, want the end %02X", millis, seconds, value, want)
			}
		}
	}
}

// Of entries at equal distances two are compared at a time, up to the last ones.
func TestEvenlySpacedPairs(t *testing.T) {
	for _, f := range []uint8{0, 1, 3} {
		for n := 2; n <= 40; n++ {
			_, b := cellOfTypes(true, slices.Repeat([]uint8{f}, n))
			for i := range n { // from 30 s on
				at := b[i*(3+int(f)):]
				binary.BigEndian.PutUint16(at, binary.BigEndian.Uint16(at)+30<<flagBits)
			}
			stride, want := 3+int(f), 0
			for want+2*stride+8 <= len(b) {
				want += 4 * stride
			}
			first := uint64(30)<<flagBits | uint64(f)
			if got := evenlySpacedPairs(b, stride, first, 10<<flagBits); got != want {
				t.Errorf("%d entries of %d bytes: ended at byte %d, want %d", n, stride, got, want)
			}
		}
	}
}

// A sealed column of one type is read by OnlyCell and OnlyBits, and as evenly spaced if its integers fit four bytes, by
// a new decoder as by one that has read annotations, which are those of another row.
func TestRowDecoder_sealed(t *testing.T) {
	var s Sealer
	sealed := map[string]int{}
	eight := func(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }
	integer, float, short := Qualifier{Width: 8}, Qualifier{Width: 8, Float: true}, Qualifier{Width: 4, Float: true}
	for what, c := range map[string]struct {
		q     Qualifier
		value func(i int) []byte
		even  bool
	}{
		"one byte":        {Qualifier{Width: 1}, func(i int) []byte { return []byte{byte(i)} }, true},
		"four bytes":      {Qualifier{Width: 4}, func(int) []byte { return []byte{0, 1, 2, 3} }, true},
		"eight, small":    {integer, func(int) []byte { return eight(7) }, true},
		"eight, large":    {integer, func(int) []byte { return eight(1 << 40) }, false},
		"eight, growing":  {integer, func(i int) []byte { return eight(int64(i) << 30) }, false},
		"the last beyond": {integer, func(i int) []byte { return eight(1<<31 - 20 + int64(i)) }, false},
		"floats":          {short, func(i int) []byte { return []byte{64, byte(i), 0, 0} }, false},
		"doubles":         {float, func(i int) []byte { return AppendDouble(nil, float64(i)/3) }, false},
	} {
		for n := 2; n <= 40; n++ {
			var entries []byte
			for i := range n {
				c.q.OffsetMS = int32(i) * 10_000
				entries = AppendEntry(entries, c.q, c.value(i))
			}
			value, ok := s.Seal(nil, entries)
			if !ok || len(value) == len(entries) {
				continue
			}
			sealed[what]++
			p, err := pointsOf(t, AppendColumn, value)
			if cell, bits := checkFast(t, what, AppendColumn, value, p, err); !cell || !bits || p.Len() != n {
				t.Fatalf("%d of %s: OnlyCell %t, OnlyBits %t, %d points, want all", n, what, cell, bits, p.Len())
			}
			fits := c.even || what == "the last beyond" && n <= 20 || what == "eight, growing" && n == 2
			for _, read := range []func(d *RowDecoder) bool{
				func(d *RowDecoder) bool { _, ok := d.OnlyEvenlySpaced(AppendColumn, value); return ok },
				func(d *RowDecoder) bool { _, _, ok := d.OnlyCell(AppendColumn, value, nil); return ok },
				func(d *RowDecoder) bool { _, _, _, ok := d.OnlyBits(AppendColumn, value, nil); return ok },
			} {
				var d RowDecoder
				if err := d.Add([]byte{PrefixAnnotation, 0, 1}, []byte("{}"), 1); err != nil {
					t.Fatal(err)
				}
				if read(&d) && len(d.Annotations()) > 0 {
					t.Fatalf("%d of %s: the annotation of another row is left", n, what)
				}
			}
			var d RowDecoder
			if _, ok := d.OnlyEvenlySpaced(AppendColumn, value); ok != fits {
				t.Fatalf("%d of %s: taken as evenly spaced: %t", n, what, ok)
			}
		}
		if sealed[what] == 0 {
			t.Errorf("no column of %s was sealed", what)
		}
	}
}
