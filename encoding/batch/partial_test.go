package batch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func drawPartial(t *rapid.T) (p Partial) {
	p.Group = rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "group")
	n := rapid.IntRange(0, 30).Draw(t, "buckets")
	if rapid.Bool().Draw(t, "holes") {
		p.Real = rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "real")
	}
	p.Live = rapid.SliceOfN(rapid.Int32(), n, n).Draw(t, "live")
	if rapid.Bool().Draw(t, "counts") {
		p.N = rapid.SliceOfN(rapid.Int32(), n, n).Draw(t, "n")
	}
	p.A = rapid.SliceOfN(rapid.Float64(), n, n).Draw(t, "a")
	if rapid.Bool().Draw(t, "proven") {
		p.Low = rapid.SliceOfN(rapid.Int16(), n, n).Draw(t, "low")
		p.High = rapid.SliceOfN(rapid.Int16(), n, n).Draw(t, "high")
	}
	for range rapid.IntRange(0, 20).Draw(t, "spans") {
		p.Spans = append(p.Spans, rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "span"))
		f := rapid.Uint8Range(0, 7).Draw(t, "flags")
		p.Flags = append(p.Flags, f)
		for _, bit := range []uint8{EdgeFirst, EdgeLast} {
			if f&bit != 0 {
				p.EdgeTime = append(p.EdgeTime, rapid.Int64().Draw(t, "ms"))
				p.EdgeValue = append(p.EdgeValue, rapid.Float64().Draw(t, "edge"))
			}
		}
		if f&EdgeAnnotationsOnly != 0 {
			p.NoteSpan = append(p.NoteSpan, int32(len(p.Spans)-1))
			p.Notes = append(p.Notes, []byte("{}"))
		}
	}
	return p
}

// A batch of partial aggregates is read as it was written, and all memory is released.
func TestPartial_roundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem, check := checkedAllocator(t)
		defer check()
		want := rapid.SliceOfN(rapid.Custom(drawPartial), 0, 4).Draw(t, "rows")
		w := NewPartialWriter(mem)
		defer w.Release()
		for i := range want {
			w.Append(&want[i])
		}
		r := w.Record()
		defer r.Release()
		reader, err := NewPartialReader(r)
		if err != nil || reader.Len() != len(want) || !IsPartial(r) {
			t.Fatal(err, reader.Len())
		}
		for i := range want {
			var got Partial
			if err := reader.At(i, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[i], got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// A row is refused if the lengths of its lists do not fit each other, and so is a record of
// another schema.
func TestPartialReader_refuses(t *testing.T) {
	mem, check := checkedAllocator(t)
	defer check()
	f := func(wantInError string, p Partial) {
		t.Helper()
		w := NewPartialWriter(mem)
		defer w.Release()
		w.Append(&p)
		r := w.Record()
		defer r.Release()
		reader, err := NewPartialReader(r)
		if err != nil {
			t.Fatal(err)
		}
		var got Partial
		if err := reader.At(0, &got); err == nil || !strings.Contains(err.Error(), wantInError) {
			t.Errorf("%v, want an error with %q", err, wantInError)
		}
	}
	span := [][]byte{{1}}
	f("1 elements of real, want none or 2", Partial{Live: []int32{1, 2}, Real: []bool{true}})
	f("1 elements of a, want none or 0", Partial{A: []float64{1}})
	f("2 elements of low and 0 of high, want as many", Partial{Live: []int32{1, 2}, Low: []int16{1, 2}})
	f("0 flags, want 1", Partial{Spans: span})
	f("0 edge times and 0 edge values, want 2", Partial{Spans: span, Flags: []uint8{EdgeFirst | EdgeLast}})
	f("0 edge times and 1 edge values, want 1",
		Partial{Spans: span, Flags: []uint8{EdgeFirst}, EdgeValue: []float64{1}})
	f("1 annotations of 0 spans", Partial{Notes: span})
	f("annotations of spans [1 0], want them ascending",
		Partial{Spans: [][]byte{{1}, {2}}, Flags: []uint8{0, 0}, Notes: [][]byte{{1}, {2}}, NoteSpan: []int32{1, 0}})
	f("an annotation of span 1, want less than 1",
		Partial{Spans: span, Flags: []uint8{0}, Notes: span, NoteSpan: []int32{1}})

	w := NewSeriesWriter(mem)
	defer w.Release()
	r := w.Record()
	defer r.Release()
	if _, err := NewPartialReader(r); err == nil || IsPartial(r) {
		t.Error("a series batch was read as a partial one")
	}
}

// The columns of a partial batch of version 3 never change. Other columns need a new version.
func TestPartialSchema_isFrozen(t *testing.T) {
	var got []string
	for _, f := range PartialSchema().Fields() {
		got = append(got, f.Name+" "+f.Type.String())
	}
	want := []string{
		"group binary", "real list<item: bool>", "live list<item: int32>", "n list<item: int32>",
		"a list<item: float64>", "b list<item: float64>",
		"low list<item: int16>", "high list<item: int16>",
		"spans binary", "flags list<item: uint8>", "edge_time list<item: int64>", "edge_value list<item: float64>",
		"note_span list<item: int32>", "notes list<item: binary>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if m := PartialSchema().Metadata(); m.Values()[m.FindKey(versionKey)] != "3" {
		t.Errorf("version in %v, want 3", m)
	}
}
