package encoding

import (
	"fmt"
	"slices"
	"testing"
)

// benchCells are 360 points of one hour, one every 10 s, with values on 1 to 8
// bytes, as single cells.
func benchCells() (qualifiers, values [][]byte) {
	for i := range 360 {
		v := int64(i) << (i % 4 * 12)
		q := Qualifier{OffsetMS: int32(i) * 10_000, Width: IntWidth(v)}
		qualifiers = append(qualifiers, AppendQualifier(nil, q))
		values = append(values, AppendInt(nil, v))
	}
	return qualifiers, values
}

func benchCompacted() (qualifier, value []byte) {
	qs, vs := benchCells()
	for i := range qs {
		qualifier, value = append(qualifier, qs[i]...), append(value, vs[i]...)
	}
	return qualifier, append(value, 0)
}

// BenchmarkRowDecoder_row decodes a row of 360 points; ns/point is the figure
// to watch.
func BenchmarkRowDecoder_row(b *testing.B) {
	qs, vs := benchCells()
	cq, cv := benchCompacted()
	for _, c := range []struct {
		form string
		qs   [][]byte
		vs   [][]byte
	}{{"compacted", [][]byte{cq}, [][]byte{cv}}, {"single", qs, vs}} {
		b.Run(fmt.Sprintf("form=%s", c.form), func(b *testing.B) { benchRow(b, c.qs, c.vs) })
	}
}

func benchRow(b *testing.B, qs, vs [][]byte) {
	var d RowDecoder
	var p Points
	b.ReportAllocs()
	for b.Loop() {
		d.Reset(1356998400)
		p.Reset()
		for i := range qs {
			if err := d.Add(qs[i], vs[i], 1); err != nil {
				b.Fatal(err)
			}
		}
		if err := d.Finish(&p); err != nil {
			b.Fatal(err)
		}
	}
	if p.Len() != 360 {
		b.Fatalf("decoded %d points, want 360", p.Len())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/360, "ns/point")
}

// BenchmarkRowDecoder_doubles decodes a row of 360 points that is one cell, as a downsampling scan
// does: with values of one byte, with larger ones, and with values of one and of two bytes mixed.
func BenchmarkRowDecoder_doubles(b *testing.B) {
	for name, width := range map[string]func(i int) int64{
		"bytes":  func(i int) int64 { return int64(i % 100) },
		"counts": func(i int) int64 { return int64(i)<<20 + 1<<40 },
		"mixed":  func(i int) int64 { return int64(i*i%251) - 20 },
	} {
		var c CellBuilder
		var entries []byte
		for i := range 360 {
			v := AppendInt(nil, width(i))
			q := Qualifier{OffsetMS: int32(i) * 10_000, Width: len(v)}
			c.Add(q, v)
			entries = append(AppendQualifier(entries, q), v...)
		}
		qualifier, value := c.Cell()
		later := slices.Clone(qualifier)
		later[len(later)-1] += 1 << flagBits // the last point a second later
		benchDoubles(b, name+"/compacted", value, qualifier, later)
		benchDoubles(b, name+"/compacted, the same times", value, qualifier)
		benchDoubles(b, name+"/appended", entries, AppendColumn)
	}
}

// benchDoubles reads a row of 360 points that is one cell. It alternates between the qualifiers, so
// that two of them keep the decoder from using those cached of the last row.
func benchDoubles(b *testing.B, name string, value []byte, qualifiers ...[]byte) {
	var d RowDecoder
	var doubles []float64
	perPoint := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/360, "ns/point") }
	b.Run(name+"/by cell", func(b *testing.B) {
		for b.Loop() {
			d.Reset(0)
			if err := d.Add(qualifiers[0], value, 1); err != nil {
				b.Fatal(err)
			}
			_, doubles, _ = d.FinishDoubles(doubles)
		}
		perPoint(b)
	})
	b.Run(name+"/only cell", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			var ok bool
			if _, doubles, ok = d.OnlyCell(qualifiers[n%len(qualifiers)], value, doubles); !ok {
				b.Fatal("OnlyCell has not taken the row")
			}
		}
		perPoint(b)
	})
}
