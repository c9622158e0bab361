package write

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
)

// entryOf returns the entry of a value in column 0 of a rollup table whose interval is an hour
// and whose row span is a day.
func entryOf(t *testing.T, at int64, v encoding.Value) []byte {
	t.Helper()
	p := &Point{
		Time:   at,
		Value:  v,
		Rollup: &RollupCell{&encoding.RollupLayout{Interval: 3600, Span: encoding.RowSpan{Count: 1, Unit: "d"}}, 0},
	}
	entry, base, err := p.appendEntry(nil)
	if err != nil || base != 86400 {
		t.Fatalf("base %d, %v", base, err)
	}
	return entry
}

// If a batch has several values of one interval, only the last one is written: all cells of a
// batch have the same timestamp, so that the store could not tell which is newer.
func TestCells_rollups(t *testing.T) {
	schema := encoding.DefaultSchema()
	r := newRows()
	s := newSeriesKey(encoding.UID{0, 0, 1}, []byte{0, 0, 1, 0, 0, 1})
	for _, e := range [][]byte{entryOf(t, 86400, encoding.IntValue(5)), entryOf(t, 90000, encoding.IntValue(6)),
		entryOf(t, 86401, encoding.FloatValue(1.5)), entryOf(t, 90001, encoding.IntValue(300))} {
		r.add(&schema, s, 86400, rowItem{entry: e})
	}
	r.groupByRow()
	mutations, err := r.cells.build(r, rollupCells)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]byte{}
	for _, m := range mutations {
		got[string(m.Qualifier)] = m.Value
	}
	want := map[string][]byte{"\x00\x00\x0f": {0x3f, 0xf8, 0, 0, 0, 0, 0, 0}, "\x00\x00\x11": {1, 44}}
	if d := cmp.Diff(want, got); d != "" || len(mutations) != 2 {
		t.Errorf("%d mutations, -want +got\n%s", len(mutations), d)
	}
}
