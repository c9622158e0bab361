package hbase

import (
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// Several prefixes become one filter, and so does a single range. Other ranges become a list of
// filters.
func TestColumnFilter(t *testing.T) {
	prefix := func(p string) store.KeyRange {
		return store.KeyRange{Start: []byte(p), Stop: encoding.PrefixEnd([]byte(p))}
	}
	for _, test := range []struct {
		columns []store.KeyRange
		want    string
	}{
		{[]store.KeyRange{prefix("\x00"), prefix("\x01"), prefix("count:"), prefix("sum:")},
			"MultipleColumnPrefixFilter"},
		{[]store.KeyRange{prefix("\x01\xff"), prefix("\xff")}, "MultipleColumnPrefixFilter"},
		{[]store.KeyRange{prefix("sum:")}, "ColumnRangeFilter"},
		{[]store.KeyRange{{Start: []byte("a"), Stop: []byte("c")}, prefix("sum:")}, "FilterList"},
		{[]store.KeyRange{prefix("a"), {Start: []byte("sum:")}}, "FilterList"},
		{[]store.KeyRange{{Stop: []byte{1}}, prefix("sum:")}, "FilterList"},
	} {
		f, err := columnFilter(test.columns).ConstructPBFilter()
		if err != nil {
			t.Fatal(err)
		}
		if got := f.GetName(); !strings.HasSuffix(got, "."+test.want) {
			t.Errorf("columns %x: filter %s, want %s", test.columns, got, test.want)
		}
	}
	// A bound that is empty is none, which HBase knows by its absence.
	open, err := columnFilter([]store.KeyRange{{Start: []byte("a"), Stop: []byte{}}}).ConstructPBFilter()
	var m pb.ColumnRangeFilter
	if err != nil || proto.Unmarshal(open.GetSerializedFilter(), &m) != nil || m.MaxColumn != nil {
		t.Errorf("without a stop: %v, %v", &m, err)
	}
}

// Ranges of keys: the first key from each of some on that they admit, and how many a region gets.
func TestScanFilters_ranges(t *testing.T) {
	f := &scanFilters{ranges: []store.KeyRange{
		{Start: []byte("b"), Stop: []byte("d")}, {Start: []byte("f"), Stop: []byte("h")},
		{Start: []byte("h"), Stop: []byte("k")},
	}}
	for key, want := range map[string]string{"": "b", "b": "b", "c": "c", "d": "f", "g": "g", "h": "h", "k": "none"} {
		got, ok := f.firstWanted([]byte(key))
		if !ok {
			got = []byte("none")
		}
		if string(got) != want {
			t.Errorf("from %q on: %q, want %q", key, got, want)
		}
	}
	for region, want := range map[[2]string]int{
		{"", ""}: 3, {"", "b"}: 0, {"", "c"}: 1, {"c", "f"}: 1, {"d", "g"}: 1, {"g", ""}: 2, {"k", ""}: 0,
	} {
		pf, err := f.multiRange([]byte(region[0]), []byte(region[1])).ConstructPBFilter()
		var m pb.MultiRowRangeFilter
		if err != nil || proto.Unmarshal(pf.GetSerializedFilter(), &m) != nil || len(m.RowRangeList) != want {
			t.Errorf("region %q: %v, %v, want %d ranges", region, &m, err, want)
		}
	}
	open := &scanFilters{ranges: []store.KeyRange{{Start: []byte("b")}}}
	if got, ok := open.firstWanted([]byte("z")); !ok || string(got) != "z" {
		t.Errorf("of a range without a stop: %q, %t, want z", got, ok)
	}
	f.ranges[1].Start = []byte("c")
	if err := checkRanges("keys", f.ranges); err == nil || !strings.Contains(err.Error(), "want it at or after 64") {
		t.Errorf("ranges that overlap: %v", err)
	}
	// A range of columns may reject the cell that a server takes for the first one.
	for _, columns := range [][]store.KeyRange{nil, {{Start: []byte("q")}}} {
		f, err := newScanFilters(&store.Scan{KeysOnly: true, Columns: columns})
		if err != nil || len(f.keys) != 2-len(columns) {
			t.Errorf("keys alone, columns %q: %d filters, %v", columns, len(f.keys), err)
		}
	}
}
