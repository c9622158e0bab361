package encoding

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// BaseTime gives the rows of rollup tables the base times that a real OpenTSDB gave them.
func TestRowSpan_BaseTime(t *testing.T) {
	f := func(count int, unit, at, want string) {
		t.Helper()
		s := RowSpan{count, unit}
		if got := s.BaseTime(seconds(t, at)); got != seconds(t, want) {
			t.Errorf("%s: %s is in the row of %s, want %s", s, at, time.Unix(got, 0).UTC(), want)
		}
	}
	f(1, "h", "2013-10-15 13:59:59", "2013-10-15 13:00:00")
	f(6, "h", "2013-10-15 13:59:59", "2013-10-15 12:00:00")
	f(10, "h", "1970-01-01 10:00:00", "1970-01-01 10:00:00")
	f(1, "d", "2013-10-15 13:59:59", "2013-10-15 00:00:00")
	f(1, "n", "2013-10-15 13:59:59", "2013-10-01 00:00:00")
	f(1, "n", "2012-02-29 23:59:59", "2012-02-01 00:00:00")
	f(1, "y", "2013-10-15 13:59:59", "2013-01-01 00:00:00")
	f(1, "y", "2012-12-31 23:59:59", "2012-01-01 00:00:00")
}

func seconds(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.DateTime, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix()
}

var spans = []RowSpan{{1, "h"}, {2, "h"}, {6, "h"}, {24, "h"}, {1, "d"}, {1, "n"}, {1, "y"}}

// Every time is in the row of its base time and not in the next one, and base times are
// multiples of the alignment, which is a whole number of hours.
func TestRowSpan_rows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		s := spans[random.IntN(len(spans))]
		at := random.Int64N(1 << 32)
		base := s.BaseTime(at)
		next := s.Next(base)
		switch {
		case base > at || at >= next:
			t.Fatalf("%s: %d is given the row [%d, %d), in which it does not lie", s, at, base, next)
		case s.BaseTime(base) != base || s.BaseTime(next) != next || s.BaseTime(next-1) != base:
			t.Fatalf("%s: rows [%d, %d) do not follow each other", s, base, next)
		case base%s.Alignment() != 0 || s.Alignment()%RowSeconds != 0:
			t.Fatalf("%s: base %d, alignment %d, want a multiple of it, and it a multiple of an hour", s, base,
				s.Alignment())
		case next-base > s.Seconds():
			t.Fatalf("%s: a row of %d s, want at most %d", s, next-base, s.Seconds())
		}
	}
}

func TestRollupLayout_Validate(t *testing.T) {
	f := func(interval int64, count int, unit string, ok bool) {
		t.Helper()
		l := RollupLayout{interval, RowSpan{count, unit}}
		if err := l.Validate(); (err == nil) != ok {
			t.Errorf("%+v: error %v, want the opposite", l, err)
		}
	}
	f(300, 1, "h", true)
	f(301, 1, "h", false) // 11 intervals, want at least 12
	f(600, 6, "h", true)
	f(600, 3, "h", false)
	f(600, 0, "h", false)
	f(600, 1<<40, "h", false)
	if err := (RowSpan{366*24 + 2, "h"}).Validate(); err == nil {
		t.Error("a span of more hours than a year has is valid")
	}
	if err := (RowSpan{0, "h"}).Validate(); err == nil {
		t.Error("a row of no hours")
	}
	f(225, 256, "h", true) // 4096 intervals
	f(3600, 1, "d", true)
	f(3600, 2, "d", false)
	f(21, 1, "d", false) // 4114 intervals, but the index has 12 bits
	f(22, 1, "d", true)
	f(86400, 1, "n", true)
	f(86400, 1, "y", true)
	f(7*86400, 1, "n", false)
	f(86400, 1, "w", false)
	f(0, 1, "d", false)
	f(-1, 1, "d", false)
}

// Split and AppendRollupQualifier give values the rows and qualifiers of cells that OpenTSDB
// wrote, see docs/rollup.md. 0x525c8580 is 2013-10-15, 0x524a1080 is 2013-10-01.
func TestRollupQualifier_recorded(t *testing.T) {
	f := func(l RollupLayout, id byte, base, at int64, float bool, width int, want ...byte) {
		t.Helper()
		gotBase, index, err := l.Split(at)
		if err != nil || gotBase != base {
			t.Fatalf("base %d (%v), want %d", gotBase, err, base)
		}
		if got := AppendRollupQualifier(nil, id, index, float, width); !bytes.Equal(got, want) {
			t.Errorf("% X, want % X", got, want)
		}
	}
	tenMinutes, day := RollupLayout{600, RowSpan{6, "h"}}, RollupLayout{3600, RowSpan{1, "d"}}
	f(tenMinutes, 0, 0x525c8580, 0x525c8580+600, false, 1, 0x00, 0x00, 0x10)
	f(day, 0, 0x525c8580, 0x525c8580+3599, true, 8, 0x00, 0x00, 0x0f)
	f(day, 0, 0x525c8580, 0x525c8580+7200, false, 2, 0x00, 0x00, 0x21)
	f(RollupLayout{86400, RowSpan{1, "n"}}, 1, 0x524a1080, 0x524a1080+14*86400+5, false, 1, 0x01, 0x00, 0xe0)
}

// If a row span is no whole number of intervals, Split refuses the times after the last whole one,
// with OpenTSDB's error text.
func TestRollupLayout_Split_beyond(t *testing.T) {
	l := RollupLayout{1500, RowSpan{6, "h"}}
	if _, _, err := l.Split(14 * 1500); err == nil ||
		err.Error() != "Offset of 14 was greater than the configured intervals 14" {
		t.Errorf("got %v, want OpenTSDB's error for offset 14", err)
	}
	if _, index, err := l.Split(14*1500 - 1); err != nil || index != 13 {
		t.Errorf("index %d, %v, want 13 and no error", index, err)
	}
}

// decodeRollup decodes cells, each a qualifier and a value, written a ms after the one before.
func decodeRollup(d *RollupDecoder, base uint32, cells ...[2][]byte) (out Points, err error) {
	d.Reset(base)
	for i, c := range cells {
		if _, err := d.Add(c[0], c[1], int64(i)); err != nil {
			return out, err
		}
	}
	d.Finish(&out)
	return out, nil
}

// Rollup values are read as they were written, with their types, in the order of time, whatever
// the order of the cells.
func TestRollupDecoder_written(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		s := spans[random.IntN(len(spans))]
		l := RollupLayout{s.Seconds() / int64(12+random.IntN(200)), s}
		d := &RollupDecoder{Layout: l, Column: RollupColumn{ID: byte(random.IntN(128)), Name: "sum"}}
		base := s.BaseTime(random.Int64N(1 << 32))

		want, cells := Points{}, [][2][]byte(nil)
		for at := base; at < s.Next(base); at += l.Interval {
			_, index, err := l.Split(at)
			if err != nil || random.IntN(3) == 0 {
				continue
			}
			v := IntValue(random.Int64() >> random.IntN(64))
			value := AppendInt(nil, v.Int())
			if random.IntN(2) == 0 {
				v = FloatValue(random.NormFloat64())
				value = AppendDouble(nil, v.Double())
			}
			want.Append(at*1000, v)
			cells = append(cells, [2][]byte{AppendRollupQualifier(nil, d.Column.ID, index, v.Float, len(value)), value})
		}
		random.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
		got, err := decodeRollup(d, uint32(base), cells...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%+v at %d: -written +read\n%s", l, base, diff)
		}
	}
}

func TestRollupDecoder(t *testing.T) {
	d := &RollupDecoder{Layout: RollupLayout{3600, RowSpan{1, "d"}}, Column: RollupColumn{ID: 's', Name: "sum"}}
	f := func(what, want string, cells ...[2][]byte) {
		t.Helper()
		got, err := decodeRollup(d, 86400, cells...)
		text := ""
		for i := range got.Len() {
			ms, v := got.At(i)
			text += time.UnixMilli(ms).UTC().Format("15h ") + v.String() + ";"
		}
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%s: got %s, want %s", what, text, want)
		}
	}
	cell := func(qualifier string, value ...byte) [2][]byte { return [2][]byte{[]byte(qualifier), value} }
	f("by ID", "01h 5;", cell("s\x00\x10", 5))
	f("by name", "01h 5;", cell("sum:\x00\x10", 5))
	f("other columns", "", cell("t\x00\x10", 5), cell("max:\x00\x10", 5), cell("s\x00", 5), cell("s\x00\x10\x00", 5),
		cell("sum\x00\x10", 5), cell(":\x00\x10", 5), cell("", 5))
	f("written again, the float later", "00h 1.5;", cell("s\x00\x00", 5), cell("s\x00\x0b", 0x3f, 0xc0, 0, 0))
	f("written again, the integer later", "00h 5;", cell("s\x00\x0b", 0x3f, 0xc0, 0, 0), cell("s\x00\x00", 5))
	f("beyond the row", "encoding: qualifier 73 01 80 is interval 24 of 3600 s, which is beyond the row's span of 1d",
		cell("s\x01\x80", 5))
	f("a value of no width", "encoding: value 01 02 03 has 3 bytes, want 1, 2, 4 or 8 for an integer",
		cell("s\x00\x00", 1, 2, 3))
}

// FuzzRollupDecoder: no cell makes the decoder panic, and points lie in their row.
func FuzzRollupDecoder(f *testing.F) {
	f.Add(uint8(4), int64(3600), uint32(86400), []byte{0, 0, 0x10}, []byte{5})
	f.Add(uint8(5), int64(86400), uint32(0), []byte("sum:\x00\x0f"), []byte{0x3f, 0xf8, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, n uint8, interval int64, at uint32, qualifier, value []byte) {
		l := RollupLayout{interval, spans[int(n)%len(spans)]}
		if l.Validate() != nil {
			return
		}
		base := l.Span.BaseTime(int64(at))
		got, err := decodeRollup(&RollupDecoder{Layout: l, Column: RollupColumn{Name: "sum"}}, uint32(base),
			[2][]byte{qualifier, value})
		if err != nil || got.Len() == 0 {
			return
		}
		if s := got.Time[0] / 1000; s < base || s >= l.Span.Next(base) {
			t.Errorf("%d lies outside of [%d, %d)", s, base, l.Span.Next(base))
		}
	})
}
