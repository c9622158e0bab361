package batch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"downpour/encoding"
)

func drawAligned(t *rapid.T) (a Aligned) {
	a.Group = rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "group")
	a.Kind = rapid.Uint8Range(0, 3).Draw(t, "kind")
	at := rapid.Int64Range(-1000, 1<<40).Draw(t, "first")
	even := rapid.Bool().Draw(t, "even")
	for range rapid.IntRange(0, 12).Draw(t, "times") {
		a.Time, a.Bits = append(a.Time, at), append(a.Bits, rapid.Uint64().Draw(t, "bits"))
		at += 10_000
		if !even {
			at += rapid.Int64Range(0, 5).Draw(t, "more")
		}
	}
	rate := rapid.Bool().Draw(t, "rate")
	for range rapid.IntRange(0, 20).Draw(t, "spans") {
		a.Spans = append(a.Spans, rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "span"))
		f := rapid.Uint8Range(0, 7).Draw(t, "flags")
		a.Flags = append(a.Flags, f)
		for range Edges(f) {
			if rate {
				v := encoding.Value{Float: rapid.Bool().Draw(t, "float edge"), Bits: rapid.Uint64().Draw(t, "edge")}
				a.AddEdge(v)
				if got := a.Edge(len(a.EdgeBits) - 1); got != v {
					t.Fatalf("edge %v, want %v", got, v)
				}
			}
		}
		if f&SpanAnnotationsOnly != 0 {
			a.NoteSpan, a.Notes = append(a.NoteSpan, int32(len(a.Spans)-1)), append(a.Notes, []byte("{}"))
		}
	}
	return a
}

// An aligned batch is read as it was written, and all memory is released.
func TestAligned_roundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem, check := checkedAllocator(t)
		defer check()
		want := rapid.SliceOfN(rapid.Custom(drawAligned), 0, 4).Draw(t, "rows")
		w := NewAlignedWriter(mem)
		defer w.Release()
		for i := range want {
			w.Append(&want[i])
		}
		r := w.Record()
		defer r.Release()
		reader, err := NewAlignedReader(r)
		if err != nil || reader.Len() != len(want) || !IsAligned(r) || IsPartial(r) {
			t.Fatal(err, reader.Len())
		}
		for i := range want {
			var got Aligned
			if err := reader.At(i, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[i], got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// A row whose lists do not fit each other is refused: they are used as indexes.
func TestAlignedReader_refuses(t *testing.T) {
	mem, check := checkedAllocator(t)
	defer check()
	f := func(wantInError string, a Aligned) {
		t.Helper()
		w := NewAlignedWriter(mem)
		defer w.Release()
		w.Append(&a)
		r := w.Record()
		defer r.Release()
		reader, err := NewAlignedReader(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.At(0, &a); err == nil || !strings.Contains(err.Error(), wantInError) {
			t.Errorf("%v, want an error with %q", err, wantInError)
		}
	}
	span := [][]byte{{1}}
	f("2 times and 1 values", Aligned{Time: []int64{1, 2}, Bits: []uint64{1}})
	f("has time 1 after 1", Aligned{Time: []int64{1, 1}, Bits: []uint64{1, 2}})
	f("has time 0 after 1", Aligned{Time: []int64{1, 0}, Bits: []uint64{1, 2, 3}})
	f("0 flags, want 1", Aligned{Spans: span})
	f("1 edges and 1 types of edges, want none or 2",
		Aligned{Spans: span, Flags: []uint8{0}, EdgeBits: []uint64{1}, EdgeFloat: []uint8{0}})
	f("1 edges and 0 types of edges", Aligned{Spans: span, Flags: []uint8{SpanLate}, EdgeBits: []uint64{1}})
	f("1 annotations of 0 spans", Aligned{Spans: span, Flags: []uint8{0}, Notes: span})
	f("annotation of span 1, want less than 1",
		Aligned{Spans: span, Flags: []uint8{0}, NoteSpan: []int32{1}, Notes: span})
	f("annotation of span -1", Aligned{Spans: span, Flags: []uint8{0}, NoteSpan: []int32{-1}, Notes: span})
	f("want them ascending", Aligned{
		Spans:    [][]byte{{1}, {2}},
		Flags:    []uint8{0, 0},
		NoteSpan: []int32{1, 0},
		Notes:    [][]byte{{1}, {2}},
	})

	w := NewSeriesWriter(mem)
	defer w.Release()
	other := w.Record()
	defer other.Release()
	if _, err := NewAlignedReader(other); err == nil || IsAligned(other) {
		t.Error("a series batch was read as an aligned one")
	}
}

// The columns of an aligned batch of version 3 never change. Other columns need a new version.
// A span has an edge for each of its ends, unless another row has the end, or it has no points.
func TestEdges(t *testing.T) {
	for flags, want := range map[uint8]int{
		0: 2, SpanEarly: 1, SpanLate: 1, SpanEarly | SpanLate: 0, SpanAnnotationsOnly: 0,
	} {
		if got := Edges(flags); got != want {
			t.Errorf("%d edges with the flags %b, want %d", got, flags, want)
		}
	}
}

func TestAlignedSchema_isFrozen(t *testing.T) {
	var got []string
	for _, f := range AlignedSchema().Fields() {
		got = append(got, f.Name+" "+f.Type.String())
	}
	want := []string{
		"aligned_group binary", "time list<item: int64>", "bits list<item: int64>", "kind uint8", "spans binary",
		"flags list<item: uint8>",
		"edge_bits list<item: int64>", "edge_float list<item: uint8>", "note_span list<item: int32>",
		"notes list<item: binary>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if m := AlignedSchema().Metadata(); m.Values()[m.FindKey(versionKey)] != "3" {
		t.Errorf("version in %v, want 3", m)
	}
}
