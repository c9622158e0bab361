package encoding

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestOnlyBits_equalsCellByCell: OnlyBits makes of a cell that it takes the columns that Add and
// Finish make, also of a damaged one. It takes plain compacted cells of one type, or of integers,
// and append columns at equal distances.
//
//fault:bits-without-sign int8(b[i]) => b[i]
func TestOnlyBits_equalsCellByCell(t *testing.T) {
	var d RowDecoder // one for all rows, to notice what a row leaves for the next
	taken, appended := 0, 0
	check := func(t *rapid.T) {
		c := drawOnlyCell(t)
		even := c.form == "append" && rapid.Bool().Draw(t, "even")
		onlyIntegers := rapid.Bool().Draw(t, "only integers") // of several lengths
		for i := range c.points {
			p := &c.points[i]
			if even {
				p.q.OffsetMS, p.q.Milli = int32(i)*10_000, false
			}
			p.q.Float = p.q.Float && !onlyIntegers
		}
		qualifier, value := c.encode()
		damaged := rapid.SampledFrom([]string{"", "", "", "qualifier", "value", "both"}).Draw(t, "damaged")
		if damaged == "qualifier" || damaged == "both" {
			qualifier = damage(t, "qualifier", slices.Clone(qualifier))
		}
		if damaged == "value" || damaged == "both" {
			value = damage(t, "value", value)
		}

		offsets, bits, isFloat, ok := d.OnlyBits(qualifier, value, nil)
		offsets = slices.Clone(offsets)
		alike, integers := true, true
		for _, p := range c.points {
			alike = alike && p.q.Float == c.points[0].q.Float && p.q.Width == c.points[0].q.Width
			integers = integers && !p.q.Float
		}
		if damaged == "" && c.form == "compacted" && c.plain() && (alike || integers) && !ok {
			t.Fatalf("not taken: % X % X", qualifier, value)
		}
		if !ok {
			return
		}
		taken++
		if c.form == "append" {
			appended++
		}
		if len(d.Annotations()) > 0 || d.Skipped() > 0 {
			t.Fatal("annotations or skipped cells of the row before are still there")
		}

		d.Reset(3600)
		if err := d.Add(qualifier, value, 1); err != nil {
			t.Fatalf("OnlyBits takes % X = % X, which Add refuses: %v", qualifier, value, err)
		}
		var want Points
		if err := d.Finish(&want); err != nil {
			t.Fatal(err)
		}
		var got Points
		for i, o := range offsets {
			got.Append(3_600_000+int64(o), Value{Float: isFloat, Bits: bits[i]})
		}
		if !slices.Equal(got.Time, want.Time) || !slices.Equal(got.Bits, want.Bits) ||
			!slices.Equal(got.Float, want.Float) {
			t.Fatalf("% X = % X: got %v, want %v", qualifier, value, got, want)
		}
		// The next OnlyBits must forget this annotation.
		_ = d.Add([]byte{PrefixAnnotation, 0, 1}, []byte("note"), 1)
	}
	for range 10 { // so that rare cells are drawn too
		rapid.Check(t, check)
	}
	if taken == 0 || appended == 0 {
		t.Errorf("%d cells taken, %d append columns: the test tries nothing", taken, appended)
	}
}
