package compaction

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// old is a time at which all rows of these tests are old enough.
const old = (rowBase + 86_400) * 1000

// drawVersion draws a put of few columns, values and times, or a marker.
func drawVersion(t *rapid.T) (v store.Version) {
	v.Timestamp = rowBase*1000 + 5_000_000 + rapid.Int64Range(0, 6).Draw(t, "time")
	n := 1
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		v.Kind = rapid.SampledFrom([]store.VersionKind{store.VersionMarker, store.ColumnMarker}).Draw(t, "marker")
	case 1:
		if rapid.IntRange(0, 4).Draw(t, "of family") == 0 {
			v.Kind = rapid.SampledFrom([]store.VersionKind{store.FamilyMarker, store.FamilyVersionMarker}).Draw(t,
				"marker")
			return v
		}
	case 2:
		v.Qualifier, v.Value = []byte{encoding.PrefixAnnotation, 0, 1}, []byte("{}")
		return v
	case 3, 4:
		n = rapid.IntRange(2, 3).Draw(t, "points")
	}

	var b encoding.CellBuilder
	offset := int32(0)
	for range n {
		offset += 500 * rapid.Int32Range(1, 3).Draw(t, "half seconds")
		q := encoding.Qualifier{OffsetMS: offset, Milli: offset%1000 != 0 || rapid.Bool().Draw(t, "ms form"), Width: 1}
		value := []byte{rapid.ByteRange(0, 1).Draw(t, "value")}
		if rapid.IntRange(0, 5).Draw(t, "float") == 0 {
			q.Float, q.Width, value = true, 4, []byte{0x40, 0x40, 0, value[0]}
		}
		b.Add(q, value)
	}
	v.Qualifier, v.Value = b.Cell()
	if v.Kind != store.PutVersion {
		v.Value = nil
	}
	return v
}

// answer is what a query reads of a row's versions, and the error if it cannot.
func answer(fix bool, all []store.Version) (encoding.Points, error) {
	newest := map[string]store.Version{} // by column
	for _, v := range newHistory(all).unhidden {
		column := string(v.Qualifier)
		if seen, ok := newest[column]; hasPoints(v.Qualifier) && (!ok || seen.Timestamp < v.Timestamp) {
			newest[column] = v
		}
	}
	var cells []store.Version
	for _, column := range slices.Sorted(maps.Keys(newest)) {
		cells = append(cells, newest[column])
	}
	return readPoints(rowBase, fix, cells)
}

// checkPlan carries a plan out step by step. The answers do not change, and then the row has one
// cell of points and a second plan for it has nothing to do.
func checkPlan(t testing.TB, row store.VersionRow, fix bool) Plan {
	t.Helper()
	o := Options{FixDuplicates: fix, OlderThan: old}
	p := Decide(row, rowBase, o)
	if p.Reason != None {
		if len(p.Delete) > 0 || len(p.Stamps) > 0 {
			t.Fatalf("a row that stays, %v, has a plan: %+v", p.Reason, p)
		}
		return p
	}

	want, err := answer(fix, row.Versions)
	if err != nil {
		t.Fatalf("a row that cannot be read is compacted: %v", err)
	}
	same := func(step string, all []store.Version) {
		t.Helper()
		got, err := answer(fix, all)
		if err != nil || !slices.Equal(got.Time, want.Time) || !slices.Equal(got.Bits, want.Bits) ||
			!slices.Equal(got.Float, want.Float) {
			t.Fatalf("%s: %v, %v, want %v; plan %+v", step, got, err, want, p)
		}
	}
	all := slices.Clone(row.Versions)
	if !p.MergedExists {
		all = append(all, store.Version{
			Qualifier: p.Merged.Qualifier,
			Value:     p.Merged.Value,
			Timestamp: p.Merged.Timestamp,
		})
		same("next to its parts", all)
	}
	all = append(all, p.Delete...)
	same("alone", all)

	if !slices.IsSorted(p.Stamps) || len(slices.Compact(slices.Clone(p.Stamps))) != len(p.Stamps) {
		t.Fatalf("stamps %d, want them ascending, each once", p.Stamps)
	}
	points := 0
	h := newHistory(all)
	for _, v := range h.unhidden {
		if hasPoints(v.Qualifier) {
			points++
		}
	}
	if points != 1 {
		t.Fatalf("%d cells of points are left, want 1; plan %+v", points, p)
	}
	if again := Decide(store.VersionRow{Key: row.Key, Versions: all}, rowBase, o); again.Reason != Single {
		t.Fatalf("a second plan: %v", again.Reason)
	}
	return p
}

// TestDecide_answers: whatever a row holds, its plan does not change the answers in any state.
//
//fault:compaction-bares-older-versions h.puts => h.visible
func TestDecide_answers(t *testing.T) {
	seen := map[Reason]int{}
	rapid.Check(t, func(rt *rapid.T) {
		row := store.VersionRow{Key: []byte("row")}
		for range rapid.IntRange(1, 8).Draw(rt, "versions") {
			v := drawVersion(rt)
			// HBase returns one put of a column and time.
			if !slices.ContainsFunc(row.Versions, func(o store.Version) bool {
				return o.Kind == v.Kind && o.Timestamp == v.Timestamp && bytes.Equal(o.Qualifier, v.Qualifier)
			}) {
				row.Versions = append(row.Versions, v)
			}
		}
		seen[checkPlan(t, row, rapid.Bool().Draw(rt, "fix")).Reason]++
	})
	t.Logf("reasons: %v", seen)
}

// FuzzDecide: no row, however damaged, makes a plan that changes an answer.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{0, 0}, []byte{1}, []byte{0, 0x10}, []byte{2}, true)
	f.Add([]byte{0, 0, 0, 0x10}, []byte{1, 2, 0}, []byte{0, 0x10}, []byte{2}, false)
	f.Add([]byte{0xf0, 0, 0, 0x0b}, []byte{0, 0, 0, 0, 0x40, 0x40, 0, 0}, []byte{0, 0x0b}, []byte{0x40, 0x40, 0, 0},
		true)
	f.Fuzz(func(t *testing.T, q1, v1, q2, v2 []byte, fix bool) {
		at := int64(rowBase*1000 + 5_000_000)
		checkPlan(t, store.VersionRow{Key: []byte("row"), Versions: []store.Version{
			{Qualifier: q1, Value: v1, Timestamp: at}, {Qualifier: q2, Value: v2, Timestamp: at + 1}}}, fix)
	})
}

// put and mark are versions at a time, in ms, after the first possible one.
func put(q, v string, later int64) store.Version {
	return store.Version{Qualifier: []byte(q), Value: []byte(v), Timestamp: putAt + later}
}

func mark(kind store.VersionKind, q string, later int64) store.Version {
	return store.Version{Kind: kind, Qualifier: []byte(q), Timestamp: putAt + later}
}

const putAt = int64(rowBase*1000 + 5_000_000)

// decision is what Decide makes of a row.
type decision struct {
	name     string
	versions []store.Version
	o        Options
	want     Reason
	deleted  int
	there    bool
}

func checkDecisions(t *testing.T, all []decision) {
	t.Helper()
	for _, c := range all {
		if c.o.OlderThan == 0 {
			c.o.OlderThan = old
		}
		p := Decide(store.VersionRow{Versions: c.versions}, rowBase, c.o)
		if p.Reason != c.want || len(p.Delete) != c.deleted || p.MergedExists != c.there {
			t.Errorf("%s: %v, %d deleted, there %v, want %v, %d, %v",
				c.name, p.Reason, len(p.Delete), p.MergedExists, c.want, c.deleted, c.there)
		}
		if c.o.OlderThan == old {
			checkPlan(t, store.VersionRow{Versions: c.versions}, c.o.FixDuplicates)
		}
	}
}

// TestDecide_reasons: each reason for which a row is left, and the decision in a slightly different
// case.
func TestDecide_reasons(t *testing.T) {
	a, b := put("\x00\x00", "\x01", 0), put("\x00\x10", "\x02", 1)
	ab := func(more ...store.Version) []store.Version { return append([]store.Version{a, b}, more...) }
	checkDecisions(t, []decision{
		{"two cells", ab(), Options{}, None, 2, false},
		{"one", []store.Version{a}, Options{}, Single, 0, false},
		{"one is hidden", ab(mark(store.VersionMarker, "\x00\x10", 1)), Options{}, Single, 0, false},
		{"a marker of another version", ab(mark(store.VersionMarker, "\x00\x10", 0)), Options{}, None, 2, false},
		{"the row is deleted", ab(mark(store.FamilyMarker, "", 1)), Options{}, Single, 0, false},
		{"the versions of a time are deleted", ab(mark(store.FamilyVersionMarker, "", 1)), Options{}, Single, 0, false},
		{"an older version", ab(put("\x00\x10", "\x09", -5)), Options{}, None, 3, false},
		{"a young cell", ab(), Options{OlderThan: putAt}, Young, 0, false},
		{"a cell of just the age", ab(), Options{OlderThan: putAt + 1}, None, 2, false},
		{"a young annotation", ab(put("\x01\x00\x00", "{}", 9)), Options{OlderThan: putAt + 5}, Young, 0, false},
		{"an annotation and a histogram", ab(put("\x01\x00\x00", "{}", 9), put("\x06\x00\x00", "\x01\x02", 9)),
			Options{}, None, 2, false},
		{"a young deletion", ab(mark(store.ColumnMarker, "\x00\x20", 9)), Options{OlderThan: putAt + 5}, Young, 0,
			false},
		{"the mark of a job", ab(mark(store.ColumnMarker, "\xff", 9)), Options{OlderThan: putAt + 5}, None, 2, false},
		{"the hour has not ended",
			[]store.Version{put("\x00\x00", "\x01", -5_000_000+5), put("\x00\x10", "\x02", -5_000_000+7)},
			Options{OlderThan: rowBase*1000 + 3_599_999}, Young, 0, false},
		{"an append column", ab(put("\x05\x00\x00", "", 0)), Options{}, Appended, 0, false},
		{"a hidden version", ab(put("\x00\x10", "\x09", -5), mark(store.VersionMarker, "\x00\x10", -5)), Options{},
			None, 3, false},
		{"a deleted append column", ab(put("\x05\x00\x00", "", 0), mark(store.ColumnMarker, "\x05\x00\x00", 0)),
			Options{}, None, 2, false},
		{"differ", ab(put("\xf0\x00\x04\x00", "\x01", 0), put("\xf0\x00\x00\x00", "\x07", 3)), Options{},
			Duplicates, 0, false},
		{"differ, resolved", ab(put("\xf0\x00\x00\x00", "\x07", 3)), Options{FixDuplicates: true}, None, 3, false},
		{"differ at one time", ab(put("\xf0\x00\x00\x00", "\x07", 0)), Options{FixDuplicates: true}, Undecided, 0,
			false},
		{"seconds and milliseconds", []store.Version{a, put("\xf0\x00\x00\x00", "\x01", 0)}, Options{}, None, 1, true},
		{"times of data",
			[]store.Version{put("\x00\x00", "\x01", -5_000_000), put("\x00\x10", "\x02", -4_999_000)}, Options{},
			DataTimes, 0, false},
		{"one time of data", []store.Version{put("\x00\x00", "\x01", -5_000_000), b}, Options{}, None, 2, false},
		{"unreadable", []store.Version{a, put("\x00\x10", "\x02\x03\x04", 0)}, Options{}, Unreadable, 0, false},
		{"an empty qualifier", ab(put("", "x", 0)), Options{}, Unreadable, 0, false},
		{"an empty qualifier that is deleted", ab(put("", "x", -5), mark(store.VersionMarker, "", -5)), Options{},
			None, 2, false},
		{"a wrong end", []store.Version{a, put("\x00\x10\x00\x20", "\x02\x03\x07", 0)}, Options{}, Unreadable, 0,
			false},
		{"hidden by a column marker", ab(mark(store.ColumnMarker, "\x00\x00\x00\x10", 1)), Options{}, Hidden, 0, false},
		{"hidden by a version marker", ab(mark(store.VersionMarker, "\x00\x00\x00\x10", 1)), Options{}, Hidden, 0,
			false},
		{"a marker that is older", ab(mark(store.ColumnMarker, "\x00\x00\x00\x10", 0)), Options{}, None, 2, false},
		{"all in one, the newest", ab(put("\x00\x00\x00\x10", "\x01\x02\x00", 1)), Options{}, None, 2, true},
		{"all in one, and older versions",
			ab(put("\x00\x00\x00\x10", "\x01\x02\x00", 1), put("\x00\x00\x00\x10", "\x01\x09\x00", 0)), Options{},
			None, 3, true},
		{"all in one, older", ab(put("\x00\x00\x00\x10", "\x01\x02\x00", 0)), Options{}, None, 3, false},
	})
}

// TestDecide_cells: what the forms of the cells, their types and their times decide.
func TestDecide_cells(t *testing.T) {
	a, b := put("\x00\x00", "\x01", 0), put("\x00\x10", "\x02", 1)
	checkDecisions(t, []decision{
		{"seconds and milliseconds, and another time",
			[]store.Version{a, put("\xf0\x00\x00\x00", "\x01", 0), put("\x00\x10", "\x02", 0)}, Options{}, None, 3,
			false},
		{"differ in type at one time", []store.Version{put("\x00\x03", "\x3f\x80\x00\x00", 0),
			put("\xf0\x00\x00\x0b", "\x3f\x80\x00\x00", 0)}, Options{FixDuplicates: true}, Undecided, 0, false},
		{"a cell that is cut", []store.Version{a, put("\x00\x10\x00\x20", "\x02", 0)}, Options{}, Unreadable, 0, false},
		{"times of the first points", []store.Version{put("\x00\x00\x00\x10", "\x01\x02\x00", -5_000_000),
			put("\x00\x20\x00\x30", "\x03\x04\x00", -4_998_000)}, Options{}, DataTimes, 0, false},
		{"floats", []store.Version{put("\x00\x0b", "\x3f\x80\x00\x00", 0), put("\x00\x1b", "\x40\x00\x00\x00", 1)},
			Options{}, None, 2, false},
		{"an integer of more bytes than its qualifier says",
			[]store.Version{put("\x00\x03", "\x01\x02\x03\x04\x05\x06\x07\x08", 0), b}, Options{}, None, 2, false},
	})
}

// A marker hides puts up to its time, and none where there is no marker, whatever the time.
func TestHistory_firstMoment(t *testing.T) {
	h := newHistory([]store.Version{{Qualifier: []byte("\x00\x00"), Value: []byte("\x01")}})
	if len(h.visible) != 1 {
		t.Errorf("%d cells of the first moment are visible, want 1", len(h.visible))
	}
}

// TestDecide_form: the merged cell is OpenTSDB's, with the latest timestamp of its parts.
func TestDecide_form(t *testing.T) {
	at := int64(rowBase*1000 + 5_000_000)
	p := Decide(store.VersionRow{Versions: []store.Version{
		{Qualifier: []byte{0x00, 0x10}, Value: []byte{2}, Timestamp: at + 7},
		{
			Qualifier: []byte{0xf0, 0x00, 0x7d, 0x0b},
			Value:     []byte{0, 0, 0, 0, 0x40, 0x40, 0, 0},
			Timestamp: at,
		}, // 500 ms; the old error of floats
		{Qualifier: []byte{0x00, 0x27}, Value: []byte{3}, Timestamp: at}, // one byte of eight
		{Qualifier: []byte{0x01, 0x00, 0x00}, Value: []byte("{}"), Timestamp: at + 9},
	}}, rowBase, Options{OlderThan: old})
	want := store.Cell{
		Qualifier: []byte{0xf0, 0x00, 0x7d, 0x0b, 0x00, 0x10, 0x00, 0x20},
		Value:     []byte{0x40, 0x40, 0, 0, 2, 3, 1},
		Timestamp: at + 7,
	}
	if p.Reason != None || !bytes.Equal(p.Merged.Qualifier, want.Qualifier) ||
		!bytes.Equal(p.Merged.Value, want.Value) || p.Merged.Timestamp != want.Timestamp {
		t.Errorf("%v %x=%x@%d, want %x=%x@%d", p.Reason, p.Merged.Qualifier, p.Merged.Value, p.Merged.Timestamp,
			want.Qualifier, want.Value, want.Timestamp)
	}
}

// TestDecide_large: a merged cell beyond the bound is not made.
func TestDecide_large(t *testing.T) {
	var all []store.Version
	at := int64(rowBase*1000 + 5_000_000)
	for offset := range int32(90_000) {
		q := encoding.Qualifier{OffsetMS: offset, Milli: true, Float: true, Width: 8}
		all = append(all, store.Version{
			Qualifier: encoding.AppendQualifier(nil, q),
			Value:     make([]byte, 8),
			Timestamp: at,
		})
	}
	for n, want := range map[int]Reason{len(all): Large, maxCell/12 - 1: None} {
		if p := Decide(store.VersionRow{Versions: all[:n]}, rowBase, Options{OlderThan: old}); p.Reason != want {
			t.Errorf("%d points: %v, want %v", n, p.Reason, want)
		}
	}
}
