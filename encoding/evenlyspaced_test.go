package encoding

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// evenEntries draws the entries of points at equal distances of whole seconds, with values of one
// type and length. The first bytes of the values are random, or all are the same extreme byte.
// stride is the length of an entry.
func evenEntries(t *rapid.T) (entries []byte, stride int) {
	step := rapid.SampledFrom([]int{1, 1, 2, 10, 60, 299, 1800}).Draw(t, "step")
	first := rapid.IntRange(0, 3600-step-1).Draw(t, "first")
	most := (3599-first)/step + 1
	points := rapid.OneOf(rapid.Just(most), rapid.IntRange(2, most)).Draw(t, "points")
	flags := rapid.SampledFrom([]uint16{0, 1, 3, 7, 8 | 3, 8 | 7}).Draw(t, "flags")
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	fill := rapid.SampledFrom([]int{-1, -1, 0x00, 0x7F, 0x80, 0xFF}).Draw(t, "bytes")
	for i := range points {
		entries = binary.BigEndian.AppendUint16(entries, uint16(first+i*step)<<flagBits|flags)
		for k := range int(flags&lengthMask) + 1 {
			b := byte(random.Uint32())
			if k == 0 && fill >= 0 {
				b = byte(fill)
			}
			entries = append(entries, b)
		}
	}
	return entries, len(entries) / points
}

// TestOnlyEven_equalsCellByCell: OnlyEven takes integers of 1, 2 or 4 bytes at equal distances,
// with the times and sums that Add and FinishDoubles give, and takes no damaged row otherwise
// than they do.
func TestOnlyEven_equalsCellByCell(t *testing.T) {
	var d RowDecoder
	rapid.Check(t, func(t *rapid.T) {
		entries, stride := evenEntries(t)
		kind := entries[1] & flagMask
		wants := kind < 4
		damaged := rapid.IntRange(0, 2).Draw(t, "damaged") == 0
		if damaged {
			entries = damage(t, "entries", entries)
		}
		e, ok := d.OnlyEvenlySpaced(AppendColumn, entries)
		if ok != wants && !damaged {
			t.Fatalf("taken: %t, want %t: entries of %d bytes: % X", ok, wants, stride, entries)
		}
		if !ok {
			return
		}
		if len(d.Annotations()) > 0 || d.Skipped() > 0 {
			t.Fatal("annotations or skipped cells of the row before are still there")
		}
		checkEven(t, &d, e, entries)
		// The next OnlyEven must forget this annotation.
		_ = d.Add([]byte{PrefixAnnotation, 0, 1}, []byte("note"), 1)
	})
}

func checkEven(t *rapid.T, d *RowDecoder, e EvenlySpaced, entries []byte) {
	d.Reset(3600)
	if err := d.Add(AppendColumn, entries, 1); err != nil {
		t.Fatalf("OnlyEven takes % X, which Add refuses: %v", entries, err)
	}
	offsets, values, err := d.FinishDoubles(nil)
	if err != nil || e.Points != len(offsets) {
		t.Fatalf("%d points, want %d, %v", e.Points, len(offsets), err)
	}
	for i, offset := range offsets {
		if got := e.First + int32(i)*e.Step; got != offset {
			t.Fatalf("point %d is at %d ms, want %d", i, got, offset)
		}
	}
	for range 4 {
		to := rapid.IntRange(0, e.Points).Draw(t, "to")
		from := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, to)).Draw(t, "from")
		want := 0.0
		for _, v := range values[from:to] {
			want += v
		}
		if got := e.Sum(from, to); float64(got) != want {
			t.Fatalf("sum of points %d to %d of %v: got %d, want %v", from, to, values, got, want)
		}
	}
	got, doubles, ok := d.OnlyCell(AppendColumn, entries, nil)
	if !ok || !slices.Equal(got, offsets) || !slices.EqualFunc(doubles, values, sameBits) {
		t.Fatalf("OnlyCell: %t, %v %v, want %v %v", ok, got, doubles, offsets, values)
	}
}

// A sealed column of integers at equal distances is read as its entries are, in whichever form the
// integers are packed.
func TestOnlyEven_sealed(t *testing.T) {
	summable := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SampledFrom([]string{"around 0", "counter", "outliers", "any"}).Draw(t, "shape")
		var entries []byte
		v := rapid.Int64Range(-1000, 1000).Draw(t, "first")
		points := rapid.IntRange(2, 60).Draw(t, "points")
		for i := range points {
			switch shape {
			case "around 0":
				v = rapid.Int64Range(-100, 100).Draw(t, "value")
			case "counter":
				v += 1_000_000 + rapid.Int64Range(0, 50).Draw(t, "more")
			case "outliers":
				v = rapid.SampledFrom([]int64{0, 1, 2, 3, 0, 1, 2, 3, 2_000_000_000}).Draw(t, "value")
			case "any":
				v = rapid.Int64Range(math.MinInt32, math.MaxInt32).Draw(t, "value")
			}
			entries = AppendEntry(entries, Qualifier{OffsetMS: int32(i) * 10_000, Width: 4},
				binary.BigEndian.AppendUint32(nil, uint32(v)))
		}
		var s Sealer
		sealed, ok := s.Seal(nil, entries)
		if !ok {
			return
		}
		var d, e RowDecoder
		want, ok := d.OnlyEvenlySpaced(AppendColumn, entries)
		got, sealedOK := e.OnlyEvenlySpaced(AppendColumn, sealed)
		if !ok || !sealedOK || got.First != want.First || got.Step != want.Step || got.Points != want.Points {
			t.Fatalf("%+v %t, sealed %+v %t", want, ok, got, sealedOK)
		}
		summable[got.sealed != nil]++
		for to := range points + 1 {
			from := rapid.IntRange(0, to).Draw(t, "from")
			if got.Sum(from, to) != want.Sum(from, to) || to > 0 && got.At(to-1) != want.At(to-1) {
				t.Fatalf("sum of points %d to %d: got %d, want %d", from, to, got.Sum(from, to), want.Sum(from, to))
			}
		}
	})
	if summable[true] == 0 || summable[false] == 0 {
		t.Errorf("%v columns are summable, want some of both", summable)
	}
}

// TestOnlyEven_refuses: OnlyEven takes only an append column of two or more integers of one
// length, up to 4 bytes, at equal distances in seconds and in ascending order.
//
//fault:even-with-a-gap-taken (y&mask^(want+add)) => 0*y
func TestOnlyEven_refuses(t *testing.T) {
	var d RowDecoder
	f := func(want bool, what, entries string) {
		t.Helper()
		b, err := hex.DecodeString(strings.ReplaceAll(entries, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := d.OnlyEvenlySpaced(AppendColumn, b); ok != want {
			t.Errorf("%s: taken: %t, want %t", what, ok, want)
		}
	}
	if _, ok := d.OnlyEvenlySpaced([]byte("\x05\x00\x01"), []byte("\x00\x00\x01\x00\x10\x02")); ok {
		t.Error("a cell of another column is taken")
	}
	f(true, "two points", "0000 01 0010 02")
	f(true, "up to the last second of the hour", "E0D0 01 E0E0 02 E0F0 03")
	f(false, "a second behind the hour", "E0E0 01 E0F0 02 E100 03")
	f(false, "a single point", "0000 01")
	f(false, "nothing", "")
	f(false, "one time twice", "0010 01 0010 02")
	f(false, "backwards", "0020 01 0010 02 0000 03")
	f(false, "two lengths that add up", "0000 01 0011 02")
	f(false, "a byte too many", "0000 01 0010 02 00")
	f(false, "cut short", "0001 0001 0011 00")
	f(false, "integers on 3 bytes", "0002 000001 0012 000002")
	f(false, "integers on 8 bytes", "0007 0000000000000001 0017 0000000000000001")
	f(false, "floats", "000B 3F800000 001B 3F800000")
	f(false, "milliseconds", "F0000000 01 F0000040 02")
	for at := range 12 { // entries are compared several at once: each position is tried
		gap, length, long, times := []byte{}, []byte{}, []byte{}, []int32{}
		for i := range 13 {
			times = append(times, int32(2000*i))
			if i == at+1 {
				times[i] += 1000 // one alone is late
			}
			gap = AppendEntry(gap, Qualifier{OffsetMS: int32(i+max(0, min(i-at, 1))) * 1000, Width: 1}, []byte{7})
			long = AppendEntry(long, Qualifier{OffsetMS: times[i], Width: 8}, make([]byte, 8))
			length = AppendEntry(length, Qualifier{OffsetMS: int32(i) * 1000, Width: 1}, []byte{7})
		}
		length[3*at+4] |= 1
		f(false, "a gap", hex.EncodeToString(gap))
		f(false, "another length", hex.EncodeToString(length))
		if got, _, ok := d.OnlyCell(AppendColumn, long, nil); !ok || !slices.Equal(got, times) {
			t.Errorf("OnlyCell of 8 bytes each, one late: got %v, %t, want %v", got, ok, times)
		}
	}
	if _, ok := d.OnlyEvenlySpaced([]byte{0, 0, 0, 0x10}, []byte{1, 2, 0}); ok {
		t.Error("a compacted cell is taken")
	}
}
