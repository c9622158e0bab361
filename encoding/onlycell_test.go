package encoding

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawOnlyCell draws a compacted cell or an append column. It is often as writers write it, but
// may have times that do not ascend, milliseconds, or values of several types and lengths.
func drawOnlyCell(t *rapid.T) (c modelCell) {
	c.form = rapid.SampledFrom([]string{"compacted", "append"}).Draw(t, "form")
	c.points = rapid.SliceOfN(rapid.Custom(drawPoint), 1, 30).Draw(t, "points")
	alike, seconds := rapid.Bool().Draw(t, "alike"), rapid.IntRange(0, 4).Draw(t, "seconds") > 0
	for i := range c.points {
		p, first := &c.points[i], c.points[0]
		if seconds {
			p.q.OffsetMS, p.q.Milli = p.q.OffsetMS/1000*1000, false
		}
		if alike {
			p.q.Float, p.q.Width = first.q.Float, first.q.Width
			p.value = bytes.Repeat(p.value[:1], p.q.Width)
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "sorted") > 0 {
		slices.SortStableFunc(c.points, func(a, b modelPoint) int { return cmp.Compare(a.q.OffsetMS, b.q.OffsetMS) })
		c.points = slices.CompactFunc(c.points, func(a, b modelPoint) bool { return a.q.OffsetMS == b.q.OffsetMS })
	}
	return c
}

// plain reports whether OnlyCell accepts the cell: its points are in the seconds form,
// ascend, and are several or appended.
func (c modelCell) plain() bool {
	for i, p := range c.points {
		if p.q.Milli || i > 0 && p.q.OffsetMS <= c.points[i-1].q.OffsetMS {
			return false
		}
	}
	return len(c.points) > 1 || c.form == "append"
}

// TestOnlyCell_equalsCellByCell: OnlyCell makes of a plain cell the columns that Add and
// FinishDoubles make. It takes no other cell, and no damaged one otherwise than they do.
func TestOnlyCell_equalsCellByCell(t *testing.T) {
	var d RowDecoder // one for all rows, to notice what a row leaves for the next
	rapid.Check(t, func(t *rapid.T) {
		c := drawOnlyCell(t)
		qualifier, value := c.encode()
		damaged := rapid.IntRange(0, 2).Draw(t, "damaged") == 0
		if damaged {
			qualifier, value = damage(t, "qualifier", slices.Clone(qualifier)), damage(t, "value", value)
		}
		offsets, doubles, ok := d.OnlyCell(qualifier, value, nil)
		offsets = slices.Clone(offsets)
		if want := c.plain(); !damaged && ok != want {
			t.Fatalf("taken: %t, want %t: % X % X", ok, want, qualifier, value)
		}
		if !ok {
			return
		}
		if len(d.Annotations()) > 0 || d.Skipped() > 0 {
			t.Fatal("annotations or skipped cells of the row before are still there")
		}
		d.Reset(3600)
		if err := d.Add(qualifier, value, 1); err != nil {
			t.Fatalf("OnlyCell takes % X = % X, which Add refuses: %v", qualifier, value, err)
		}
		wantOffsets, want, err := d.FinishDoubles(nil)
		if err != nil || !slices.Equal(offsets, wantOffsets) || !slices.EqualFunc(doubles, want, sameBits) {
			t.Fatalf("got %v %v, want %v %v, %v", offsets, doubles, wantOffsets, want, err)
		}
		// The next OnlyCell must forget this annotation.
		_ = d.Add([]byte{PrefixAnnotation, 0, 1}, []byte("note"), 1)
	})
}

// TestOnlyCell_cachesQualifiers: a decoder reads a row as a new one does, whatever rows it has
// read before: of the same qualifiers or others, with OnlyCell or with Add.
func TestOnlyCell_cachesQualifiers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows [][2][]byte
		for range 3 {
			qualifier, value := drawOnlyCell(t).encode()
			other := slices.Clone(value) // other values, or a cell that is no longer plain
			other[rapid.IntRange(0, len(other)-1).Draw(t, "byte")]++
			rows = append(rows, [2][]byte{qualifier, value}, [2][]byte{qualifier, other})
		}
		var d RowDecoder
		for range rapid.IntRange(2, 12).Draw(t, "rows") {
			row := rapid.SampledFrom(rows).Draw(t, "row")
			if rapid.IntRange(0, 3).Draw(t, "by cell") == 0 {
				d.Reset(0)
				_ = d.Add(row[0], row[1], 1)
				continue
			}
			var fresh RowDecoder
			want, wantDoubles, wantOK := fresh.OnlyCell(row[0], row[1], nil)
			got, doubles, ok := d.OnlyCell(row[0], row[1], nil)
			if ok != wantOK || ok && (!slices.Equal(got, want) || !slices.EqualFunc(doubles, wantDoubles, sameBits)) {
				t.Fatalf("% X, % X: got %v %v %t, want %v %v %t", row[0], row[1], got, doubles, ok, want, wantDoubles,
					wantOK)
			}
		}
	})
}

func sameBits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// damage changes, drops or adds a byte.
func damage(t *rapid.T, what string, b []byte) []byte {
	i := rapid.IntRange(0, len(b)-1).Draw(t, what)
	switch rapid.IntRange(0, 3).Draw(t, "how "+what) {
	case 0:
		return slices.Replace(b, i, i+1, rapid.Byte().Draw(t, "byte"))
	case 1:
		return slices.Delete(b, i, i+1)
	case 2:
		return slices.Insert(b, i, rapid.Byte().Draw(t, "byte"))
	}
	return b
}

// TestOnlyCell_refuses: OnlyCell takes plain cells and leaves all others, valid or not, to Add.
//
//fault:only-cell-out-of-order-taken | (e - c - 1) =>
func TestOnlyCell_refuses(t *testing.T) {
	var d RowDecoder
	f := func(want bool, what, qualifier, value string) {
		t.Helper()
		q, err1 := hex.DecodeString(strings.ReplaceAll(qualifier, " ", ""))
		v, err2 := hex.DecodeString(strings.ReplaceAll(value, " ", ""))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if _, _, ok := d.OnlyCell(q, v, nil); ok != want {
			t.Errorf("%s: taken: %t, want %t", what, ok, want)
		}
	}
	f(true, "two points", "0000 0010", "01 02 00")
	f(true, "mixed", "0001 0010 002B", "0001 02 3F800000 00")
	f(true, "the last second of the hour", "0000 0010 0020 E0F0", "01 02 03 04 00")
	f(false, "a second behind the hour", "0000 0010 0020 E100", "01 02 03 04 00")
	f(false, "milliseconds", "0000 F0000040 0020", "01 02 03 01")
	f(false, "milliseconds at the end", "0000 0010 F0400000", "01 02 03 01")
	for _, q := range []string{"0010 0000 0020 0030", "0000 0020 0010 0030", "0000 0010 0030 0020",
		"0000 0010 0020 0020", "0000 0010 0020 0030 0030"} {
		f(false, "not ascending: "+q, q, "01 02 03 04 05 00"[:3*(strings.Count(q, " ")+1)]+"00")
	}
	f(false, "no trailer", "0000 0010", "01 02")
	f(false, "a trailer that is none", "0000 0010", "01 02 02")
	f(false, "mixed, a trailer that is none", "0001 0010", "0001 02 02")
	f(false, "a byte too many", "0000 0010", "01 02 00 00")
	f(false, "mixed, a byte too many", "0001 0010", "0001 02 00 00")
	f(false, "mixed, cut short", "0000 0013", "01 00 00")
	f(false, "integers on 3 bytes", "0002 0012", "000001 000002 00")
	f(false, "mixed, one on 3 bytes", "0000 0012", "01 000002 00")
	f(false, "floats on 2 bytes", "0009 0019", "0001 0002 00")
	f(false, "a single point", "0000", "01 00")
	f(false, "an annotation", "0100 0200 05", "01 02 00")
	f(false, "nothing", "", "00")

	const column = "05 00 00"
	f(true, "appended, one point", column, "0010 01")
	f(true, "appended, the last second of the hour", column, "0010 01 E0F1 0001")
	f(false, "appended, a second behind the hour", column, "0010 01 E101 0001")
	f(false, "appended, milliseconds", column, "0010 01 F0000080 01")
	f(false, "appended, nothing", column, "")
	f(false, "appended, a byte too many", column, "0010 01 00")
	f(false, "appended, cut short", column, "0010 01 0021 00")
	f(false, "appended, integers on 3 bytes", column, "0010 01 0022 000001")
	f(false, "appended, floats on 2 bytes", column, "0010 01 0029 0001")
	for _, times := range []string{"0120", "1023", "0213", "0132", "0012", "0122", "0113"} {
		// Alone, or between others: after an entry of 1 or of 2 bytes.
		for _, before := range []string{"", "0020 01", "0021 0001"} {
			entries := before
			for i, s := range "345678901" {
				if i < 4 {
					entries += fmt.Sprintf(" 00%c0 01", '4'+rune(times[i])-'0')
				} else if before != "" {
					entries += fmt.Sprintf(" 01%c0 01", s)
				}
			}
			f(false, "appended, not ascending: "+entries, column, entries)
		}
	}
	f(false, "a column that is none", "05 00 01", "0010 01")
}
