package encoding

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// modelPoint is one stored point, as the model below sees it.
type modelPoint struct {
	q     Qualifier
	value []byte
	stamp int64 // of its cell
}

type modelCell struct {
	form   string // single, compacted, append
	stamp  int64
	points []modelPoint
}

// TestRowDecoder_equalsModel: random rows decode to what a model makes of them that follows each
// rule in the plainest way: one list of all points, no fast paths.
//
//fault:older-duplicate-wins b.stamp, a.stamp => a.stamp, b.stamp
func TestRowDecoder_equalsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.Custom(drawCell), 0, 6).Draw(t, "cells")
		d := RowDecoder{FixDuplicates: rapid.Bool().Draw(t, "fix")}
		want, wantErr := modelRow(cells, d.FixDuplicates)
		for range 2 { // the second time with the memory of the first
			d.Reset(3600)
			for _, c := range cells {
				q, v := c.encode()
				if err := d.Add(q, v, c.stamp); err != nil {
					t.Fatal(err)
				}
			}
			var got Points
			err := d.Finish(&got)
			var dup *DuplicateError
			if wantErr >= 0 {
				if !errors.As(err, &dup) || dup.OffsetMS != wantErr {
					t.Fatalf("error %v, want a duplicate at %d ms", err, wantErr)
				}
			} else if diff := gocmp.Diff(want, got, gocmp.Comparer(samePoints)); err != nil || diff != "" {
				t.Fatalf("%v\n(-model +decoder)\n%s", err, diff)
			}
			offsets, doubles, err := d.FinishDoubles(nil)
			if wantErr >= 0 {
				if !errors.As(err, &dup) {
					t.Fatalf("doubles: error %v, want a duplicate", err)
				}
			} else if err != nil || !sameDoubles(want, offsets, doubles) {
				t.Fatalf("doubles: %v\n%v %v, want %v", err, offsets, doubles, want)
			}
		}
	})
}

// sameDoubles compares points of the hour 3600 with offsets and doubles.
func sameDoubles(p Points, offsets []int32, doubles []float64) bool {
	same := len(offsets) == p.Len() && len(doubles) == p.Len()
	for i := 0; same && i < p.Len(); i++ {
		ms, v := p.At(i)
		same = ms == 3600_000+int64(offsets[i]) && math.Float64bits(v.Double()) == math.Float64bits(doubles[i])
	}
	return same
}

// samePoints compares bits, so that NaN equals itself, and treats nil and empty as equal.
func samePoints(a, b Points) bool {
	return slices.Equal(a.Time, b.Time) && slices.Equal(a.Bits, b.Bits) && slices.Equal(a.Float, b.Float)
}

// drawPoint draws one of few times and values, so that there are duplicates.
func drawPoint(t *rapid.T) (p modelPoint) {
	offset := rapid.OneOf(rapid.Int32Range(0, 6), rapid.Int32Range(0, maxOffsetMS/500),
		rapid.Just(int32(maxOffsetMS/500))).Draw(t, "half seconds") * 500
	p.q = Qualifier{
		OffsetMS: offset,
		Milli:    offset%1000 != 0 || rapid.Bool().Draw(t, "ms form"),
		Float:    rapid.Bool().Draw(t, "float"),
	}
	if p.q.Float {
		p.q.Width = rapid.SampledFrom([]int{4, 8}).Draw(t, "width")
	} else {
		p.q.Width = rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "width")
	}
	fill := rapid.SampledFrom([]byte{0x00, 0x01, 0x40, 0x7F, 0x80, 0xFF}).Draw(t, "byte")
	p.value = bytes.Repeat([]byte{fill}, p.q.Width)
	return p
}

func drawCell(t *rapid.T) (c modelCell) {
	c.form = rapid.SampledFrom([]string{"single", "compacted", "append"}).Draw(t, "form")
	c.stamp = rapid.Int64Range(1, 3).Draw(t, "stamp")
	switch c.form {
	case "single":
		c.points = []modelPoint{drawPoint(t)}
	case "append":
		c.points = rapid.SliceOfN(rapid.Custom(drawPoint), 0, 12).Draw(t, "points")
	case "compacted":
		c.points = rapid.SliceOfN(rapid.Custom(drawPoint), 2, 12).Draw(t, "points")
		if rapid.Bool().Draw(t, "sorted") { // as writers write it
			slices.SortStableFunc(c.points,
				func(a, b modelPoint) int { return cmp.Compare(a.q.OffsetMS, b.q.OffsetMS) })
		}
	}
	for i := range c.points {
		c.points[i].stamp = c.stamp
	}
	return c
}

func (c modelCell) encode() (qualifier, value []byte) {
	if c.form == "append" {
		for _, p := range c.points {
			value = AppendEntry(value, p.q, p.value)
		}
		return AppendColumn, value
	}
	var b CellBuilder
	for _, p := range c.points {
		b.Add(p.q, p.value)
	}
	return b.Cell()
}

// modelRow returns the row's points and -1, or the first offset in ms that has two different
// values.
func modelRow(cells []modelCell, fix bool) (want Points, duplicate int32) {
	var all []modelPoint
	for _, c := range cells {
		if c.form == "append" {
			last := map[int32]modelPoint{}
			for _, p := range c.points {
				last[p.q.OffsetMS] = p
			}
			for _, p := range last {
				all = append(all, p)
			}
			continue
		}
		all = append(all, c.points...)
	}
	slices.SortStableFunc(all, func(a, b modelPoint) int {
		return cmp.Or(cmp.Compare(a.q.OffsetMS, b.q.OffsetMS), cmp.Compare(b.stamp, a.stamp))
	})
	for i := 0; i < len(all); {
		kept := all[i]
		for ; i < len(all) && all[i].q.OffsetMS == kept.q.OffsetMS; i++ {
			if !fix && !bytes.Equal(all[i].value, kept.value) {
				return Points{}, kept.q.OffsetMS
			}
		}
		want.Append(3600_000+int64(kept.q.OffsetMS), kept.number())
	}
	return want, -1
}

// number decodes the value by arithmetic, byte by byte.
func (p modelPoint) number() Value {
	var n uint64
	for _, b := range p.value {
		n = n*256 + uint64(b)
	}
	switch {
	case p.q.Float && p.q.Width == 4:
		return FloatValue(float64(math.Float32frombits(uint32(n))))
	case p.q.Float:
		return FloatValue(math.Float64frombits(n))
	case p.value[0] >= 0x80 && p.q.Width < 8:
		return IntValue(int64(n) - int64(1)<<(8*p.q.Width))
	}
	return IntValue(int64(n))
}
