package encoding

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"downpour/encoding/column"
)

// drawAppended draws the value of an append column: some stretches of points in order, each of which may begin before
// the one before it has ended, as late points do.
func drawAppended(t *rapid.T) (value []byte) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
	kinds := []string{"short", "growing", "wide", "floats", "doubles", "mixed", "nan"}
	types := rapid.SampledFrom(kinds).Draw(t, "types")
	millis := rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "milliseconds")
	late := rapid.SampledFrom([]bool{false, false, true}).Draw(t, "late")
	at := rapid.SampledFrom([]int32{0, 1, 100, 3000}).Draw(t, "first") * 1000
	for range rapid.IntRange(1, 3).Draw(t, "stretches") {
		n := rapid.SampledFrom([]int{1, 2, 5, 30, 300}).Draw(t, "points")
		step := rapid.SampledFrom([]int32{1, 7, 10, 60}).Draw(t, "step") * 1000
		even := rapid.Bool().Draw(t, "even")
		for range n {
			q := Qualifier{OffsetMS: at, Milli: millis == 1 || millis == 2 && r.IntN(3) == 0}
			if at > maxOffsetMS {
				break
			}
			if q.Milli && millis == 1 {
				q.OffsetMS += r.Int32N(1000)
			}
			value = appendDrawn(value, r, q, types)
			at += step
			if !even {
				at += r.Int32N(3) * 1000
			}
		}
		if late {
			at = r.Int32N(3600) * 1000
		}
	}
	return value
}

// appendDrawn appends an entry with a value of some type.
func appendDrawn(dst []byte, r *rand.Rand, q Qualifier, types string) []byte {
	var v []byte
	switch types {
	case "short":
		v = AppendInt(nil, int64(r.IntN(100)))
	case "growing":
		v = AppendInt(nil, int64(q.OffsetMS)/10+r.Int64N(10))
	case "wide":
		v = binary.BigEndian.AppendUint32(nil, r.Uint32()>>r.IntN(32))
	case "floats":
		v, q.Float = AppendShortFloat(nil, float64(r.IntN(1000))/100), true
	case "doubles":
		v, q.Float = AppendDouble(nil, r.NormFloat64()), true
	case "nan":
		v, q.Float = binary.BigEndian.AppendUint32(nil, 0x7F80_0000|r.Uint32()>>r.IntN(32)), true
	default:
		if v = AppendInt(nil, int64(r.Uint64())>>r.IntN(64)); r.IntN(3) == 0 {
			v, q.Float = AppendShortFloat(nil, math.Copysign(float64(r.IntN(3)), -1)), true
		}
	}
	q.Width = len(v)
	return AppendEntry(dst, q, v)
}

// readAppended reads an append column by each way that takes it, and fails if two ways differ.
func readAppended(t *rapid.T, d *RowDecoder, value []byte) (p Points) {
	d.Reset(3600)
	if err := d.Add(AppendColumn, value, 1); err != nil {
		t.Fatalf("% X: %v", value, err)
	}
	if err := d.Finish(&p); err != nil {
		t.Fatal(err)
	}
	offsets, doubles, err := d.FinishDoubles(nil)
	if err != nil || !sameDoubles(p, offsets, doubles) {
		t.Fatalf("doubles %v %v, %v, want %v", offsets, doubles, err, p)
	}
	if offsets, doubles, ok := d.OnlyCell(AppendColumn, value, nil); ok && !sameDoubles(p, offsets, doubles) {
		t.Fatalf("OnlyCell: %v %v, want %v", offsets, doubles, p)
	}
	if offsets, bits, isFloat, ok := d.OnlyBits(AppendColumn, value, nil); ok {
		var got Points
		for i, o := range offsets {
			got.Append(3_600_000+int64(o), Value{Float: isFloat, Bits: bits[i]})
		}
		if !samePoints(got, p) {
			t.Fatalf("OnlyBits: %v, want %v", got, p)
		}
	}
	if e, ok := d.OnlyEvenlySpaced(AppendColumn, value); ok {
		checkSums(t, &e, p)
	}
	return p
}

func checkSums(t *rapid.T, e *EvenlySpaced, p Points) {
	if e.Points != p.Len() {
		t.Fatalf("OnlyEven has %d points, want %d", e.Points, p.Len())
	}
	from := rapid.IntRange(0, e.Points-1).Draw(t, "from")
	to := rapid.IntRange(from+1, e.Points).Draw(t, "to")
	sum, least, most := int64(0), int64(math.MaxInt64), int64(math.MinInt64)
	for i := range p.Time {
		if got := 3_600_000 + int64(e.First) + int64(i)*int64(e.Step); got != p.Time[i] || p.Float[i] {
			t.Fatalf("OnlyEven has an integer at %d, want %v", got, p)
		}
		if v := int64(p.Bits[i]); i >= from && i < to {
			sum, least, most = sum+v, min(least, v), max(most, v)
		}
	}
	if got := e.Sum(from, to); got != sum {
		t.Fatalf("sum of [%d, %d) is %d, want %d", from, to, got, sum)
	}
	if l, m := e.Bounds(from, to); l != least || m != most {
		t.Fatalf("[%d, %d) is between %d and %d, want %d and %d", from, to, l, m, least, most)
	}
}

// A sealed column is read as its entries are, by all ways, and gives them back byte by byte: sealed once,
// sealed again with what came later, and with that behind it.
//
//fault:sealed-types-lost p.Flags => make([]uint8, len(p.Flags))
func TestSealer_sameEntries(t *testing.T) {
	t.Parallel()
	var s Sealer
	var d RowDecoder
	var u Unsealer
	blocks := 0
	rapid.Check(t, func(t *rapid.T) {
		value, later := drawAppended(t), drawAppended(t)
		sealed, ok := s.Seal([]byte("x"), value)
		if !ok {
			t.Fatalf("not sealed: % X", value)
		}
		sealed = sealed[1:]
		if bytes.IndexByte(sealed, column.Mark) >= 0 {
			blocks++
		}
		if len(sealed) > len(value) {
			t.Fatalf("% X takes more bytes than % X", sealed, value)
		}
		both := slices.Concat(value, later)
		again, ok := s.Seal(nil, slices.Concat(sealed, later))
		if !ok {
			t.Fatalf("not sealed again: % X", sealed)
		}
		for _, c := range []struct {
			stored, want []byte
		}{{sealed, value}, {slices.Concat(sealed, later), both}, {again, both}} {
			got, err := u.Unseal([]byte("x"), c.stored)
			if err != nil || !bytes.Equal(got[1:], c.want) {
				t.Fatalf("% X has the entries % X, %v, want % X", c.stored, got, err, c.want)
			}
			if got, want := readAppended(t, &d, c.stored), readAppended(t, &d, c.want); !samePoints(got, want) {
				t.Fatalf("% X is read as %v, want %v", c.stored, got, want)
			}
		}
	})
	if blocks == 0 {
		t.Error("no block was made: the test tries nothing")
	}
}

// What is no plain list of entries stays as it is, and a damaged block is an error for every reader.
func TestSealer_damage(t *testing.T) {
	t.Parallel()
	var s Sealer
	for _, value := range [][]byte{{0x00, 0x00}, {0xFF, 1, 2}, {0x00, 0x02, 1, 2, 3}, {0xF0, 0x00, 0x00, 0x10, 1}, {
		0xF0, 0x00, 0x00, 0x30, 1,
	}} {
		if got, ok := s.Seal(nil, value); ok || len(got) > 0 {
			t.Errorf("% X is sealed as % X, want it left alone", value, got)
		}
	}

	var entries []byte
	for i := range 40 {
		entries = AppendEntry(entries, Qualifier{OffsetMS: int32(i) * 10_000, Width: 1}, []byte{byte(i)})
	}
	sealed, ok := s.Seal(nil, entries)
	if !ok || len(sealed) >= len(entries) {
		t.Fatalf("sealed %t, % X", ok, sealed)
	}
	var d RowDecoder
	var u Unsealer
	// An entry that is cut is left as it is.
	for _, cut := range [][]byte{{0x00}, {0xF0, 0x00}, {0x00, 0x12, 1}} {
		value := append(slices.Clone(sealed), cut...)
		if got, err := u.Unseal(nil, value); err != nil || !bytes.Equal(got, append(slices.Clone(entries), cut...)) {
			t.Errorf("% X: got % X, %v, want the entries and % X", value, got, err, cut)
		}
	}
	cut := append(slices.Clone(entries[:6]), sealed[:len(sealed)-1]...)
	if err := d.Add(AppendColumn, cut, 1); err == nil ||
		!strings.HasPrefix(err.Error(), "encoding: append column at byte 6: ") {
		t.Errorf("a block that is cut: got %v, want an error of byte 6", err)
	}
	for i := range sealed {
		damaged := slices.Clone(sealed)
		damaged[i] ^= 0x10
		d.Reset(0)
		if err := d.Add(AppendColumn, damaged, 1); err == nil {
			t.Errorf("byte %d: added, want an error", i)
		}
		if _, _, ok := d.OnlyCell(AppendColumn, damaged, nil); ok {
			t.Errorf("byte %d: OnlyCell takes it", i)
		}
		if _, _, _, ok := d.OnlyBits(AppendColumn, damaged, nil); ok {
			t.Errorf("byte %d: OnlyBits takes it", i)
		}
		if _, ok := d.OnlyEvenlySpaced(AppendColumn, damaged); ok {
			t.Errorf("byte %d: OnlyEven takes it", i)
		}
		// The first byte is what shows that it is a block at all.
		if _, err := u.Unseal(nil, damaged); i > 0 && !errors.Is(err, column.ErrDamaged) {
			t.Errorf("byte %d: %v, want a damaged block", i, err)
		}
	}
}

// Blocks of one cell stand for no more points than Seal makes of any, for every reader: some bytes each would else
// fill any memory. A cell with more is not sealed.
func TestSealer_bound(t *testing.T) {
	t.Parallel()
	var p column.Points
	for i := range int32(column.MaxPoints) {
		p.Append(i, column.FlagMillis, 7)
	}
	block := new(column.Encoder).Append(nil, p)
	const most = maxSealedPoints / column.MaxPoints

	var d RowDecoder
	var u Unsealer
	var s Sealer
	for _, blocks := range []int{most, most + 1, 40} {
		value, fits := bytes.Repeat(block, blocks), blocks <= most
		check := func(what string, err error) {
			if fits && err != nil || !fits && (!errors.Is(err, column.ErrDamaged) ||
				!strings.Contains(err.Error(), "1114112 points or more, want at most 1048576")) {
				t.Errorf("%s, %d blocks of %d bytes: %v", what, blocks, len(block), err)
			}
		}
		_, err := u.Unseal(nil, value)
		check("unsealed", err)
		d.Reset(0)
		check("added", d.Add(AppendColumn, value, 1))
		if !fits {
			if _, _, ok := d.OnlyCell(AppendColumn, value, nil); ok {
				t.Errorf("OnlyCell takes %d blocks", blocks)
			}
			if _, ok := s.Seal(nil, value); ok {
				t.Errorf("%d blocks are sealed again", blocks)
			}
		}
	}

	var entries []byte
	for i := range maxSealedPoints + 1 {
		entries = AppendEntry(entries, Qualifier{OffsetMS: int32(i) % 3600 * 1000, Width: 1}, []byte{7})
	}
	if _, ok := s.Seal(nil, entries); ok {
		t.Errorf("%d points are sealed", maxSealedPoints+1)
	}
	sealed, ok := s.Seal(nil, entries[:3*maxSealedPoints])
	if got, err := u.Unseal(nil, sealed); !ok || err != nil || !bytes.Equal(got, entries[:3*maxSealedPoints]) {
		t.Errorf("%d points: sealed %t, %d bytes of entries, %v", maxSealedPoints, ok, len(got), err)
	}
}
