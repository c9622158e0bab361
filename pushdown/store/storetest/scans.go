package storetest

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"downpour/pushdown/store"
)

// putRows writes one cell t:q = v in each row.
func (h *harness) putRows(keys [][]byte) {
	h.Helper()
	var ms []store.Mutation
	for _, k := range keys {
		ms = append(ms, store.Mutation{Row: k, Family: "t", Qualifier: []byte("q"), Value: []byte("v")})
	}
	h.apply(h, ms...)
}

// awkwardKeys returns keys with every byte, many of which begin with others.
func awkwardKeys() [][]byte {
	var keys [][]byte
	for b := range 256 {
		c := byte(b)
		keys = append(keys, []byte{c}, []byte{c, 0}, []byte{c, 0, 0}, []byte{c, 0xff}, []byte{c, c, 1})
	}
	keys = append(keys, bytes.Repeat([]byte{0xff}, 40), bytes.Repeat([]byte{0}, 40))
	return sortedKeys(keys)
}

// sortedKeys sorts keys and removes duplicates.
func sortedKeys(keys [][]byte) [][]byte {
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal)
}

// Rows come in unsigned byte order of their keys, for any bytes; a key comes before
// keys that begin with it.
func testRowOrder(h *harness) {
	keys := awkwardKeys()
	backwards := slices.Clone(keys)
	slices.Reverse(backwards)
	h.putRows(backwards)
	sameKeys(h, h.scan(h, store.Scan{}), keys)
	sameKeys(h, h.scan(h, store.Scan{BlockBytes: 64}), keys)
}

// Cells come ordered by family, then qualifier; a qualifier comes before those that begin
// with it.
func testCellOrder(h *harness) {
	var ms []store.Mutation
	want := store.Row{Key: []byte("r")}
	for _, f := range families {
		for _, q := range append([][]byte{{}}, awkwardKeys()...) {
			want.Cells = append(want.Cells, store.Cell{Family: []byte(f), Qualifier: q, Value: q})
			ms = append(ms, store.Mutation{Row: want.Key, Family: f, Qualifier: q, Value: q})
		}
	}

	slices.Reverse(ms)
	h.apply(h, ms...)
	same(h, h.scan(h, store.Scan{}), []store.Row{want})
	got, err := h.Get(h.ctx, h.table, "", [][]byte{want.Key})
	if err != nil {
		h.Fatalf("get: %v", err)
	}

	same(h, got, []store.Row{want})
	for i, f := range families {
		n := len(want.Cells) / len(families)
		only := store.Row{Key: want.Key, Cells: want.Cells[i*n : (i+1)*n]}
		same(h, h.scan(h, store.Scan{Family: f}), []store.Row{only})
	}
}

// Values may have any bytes, or none.
func testValues(h *harness) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}

	long := strings.Repeat(string(every), 40)
	want := []store.Row{row("a", "", "empty qualifier", "empty", ""), row("b", "every", string(every), "long", long)}
	for b := range 256 {
		want = append(want, row(fmt.Sprintf("c%03d", b), "one", string([]byte{byte(b)})))
	}

	var ms []store.Mutation
	for _, r := range want {
		for _, c := range r.Cells {
			ms = append(ms, store.Mutation{Row: r.Key, Family: "t", Qualifier: c.Qualifier, Value: c.Value})
		}
	}

	h.apply(h, ms...)
	same(h, h.scan(h, store.Scan{}), want)
}

// No row is split between blocks, however small the blocks are.
func testWholeRows(h *harness) {
	var want []store.Row
	for i := range 30 {
		r := row(fmt.Sprintf("row%02d", i))
		for q := range 1 + i*7%50 {
			r.Cells = append(r.Cells, row("", fmt.Sprintf("q%04d", q), strings.Repeat("v", 100)).Cells...)
		}
		want = append(want, r)
		var ms []store.Mutation
		for _, c := range r.Cells {
			ms = append(ms, store.Mutation{Row: r.Key, Family: "t", Qualifier: c.Qualifier, Value: c.Value})
		}
		h.apply(h, ms...)
	}

	for _, size := range []int{1, 150, 1000, 1 << 20} {
		same(h, h.scan(h, store.Scan{BlockBytes: size}), want) // a split row would print as two
		for _, r := range h.scan(h, store.Scan{BlockBytes: size, MaxRows: 7}) {
			if i := slices.IndexFunc(want,
				func(w store.Row) bool { return bytes.Equal(w.Key, r.Key) }); len(r.Cells) != len(want[i].Cells) {
				h.Fatalf("block bytes %d: row %q has %d cells, want %d", size, r.Key, len(r.Cells), len(want[i].Cells))
			}
		}
	}

	h.noKeyTwice(1)
}

// noKeyTwice checks that no two blocks have a row of the same key.
func (h *harness) noKeyTwice(blockBytes int) {
	sc, err := h.Scan(h.ctx, store.Scan{Table: h.table, BlockBytes: blockBytes})
	if err != nil {
		h.Fatalf("scan: %v", err)
	}
	defer sc.Close()

	var last []byte
	for {
		block, err := sc.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			h.Fatalf("next: %v", err)
		}

		for _, r := range block {
			if last != nil && bytes.Compare(last, r.Key) >= 0 {
				h.Fatalf("row %x comes after row %x", r.Key, last)
			}
			last = bytes.Clone(r.Key)
		}
	}
}

// Start is the first key, Stop the first that is not returned.
func testBounds(h *harness) {
	keys := awkwardKeys()
	h.putRows(keys)
	edges := [][]byte{nil, {0}, {0, 0}, {1}, {1, 0}, {1, 0, 0, 0}, {0x7f, 0xff}, {0x80}, {0xfe, 0xff, 0xff}, {0xff},
		{0xff, 0xff}, bytes.Repeat([]byte{0xff}, 40), bytes.Repeat([]byte{0xff}, 41)}
	for _, start := range edges {
		for _, stop := range edges {
			if len(stop) > 0 && bytes.Compare(start, stop) >= 0 {
				continue // an empty range is not allowed
			}
			in := store.KeyRange{Start: start, Stop: stop}
			var want [][]byte
			for _, k := range keys {
				if in.Contains(k) {
					want = append(want, k)
				}
			}

			sameKeys(h, h.scan(h, store.Scan{Start: start, Stop: stop}), want)
		}
	}
}

// Regions cover the range without a hole.
func testRegions(h *harness) {
	for _, in := range []store.KeyRange{{}, {Start: []byte("b"), Stop: []byte("c")}, {Start: []byte{0xff, 0xff}}} {
		regions, err := h.Regions(h.ctx, h.table, in.Start, in.Stop)
		if err != nil || len(regions) == 0 {
			h.Fatalf("regions of %x: %d, %v", in, len(regions), err)
		}
		if bytes.Compare(regions[0].Start, in.Start) > 0 {
			h.Fatalf("regions of %x begin at %x", in, regions[0].Start)
		}

		for i := 1; i < len(regions); i++ {
			if !bytes.Equal(regions[i-1].Stop, regions[i].Start) {
				h.Fatalf("region ends at %x, next begins at %x", regions[i-1].Stop, regions[i].Start)
			}
		}

		last := regions[len(regions)-1].Stop
		if len(last) > 0 && (len(in.Stop) == 0 || bytes.Compare(last, in.Stop) < 0) {
			h.Fatalf("regions of %x end at %x", in, last)
		}
	}
}

// A scan that finds nothing ends with the first Next, and stays ended.
func testEmptyScan(h *harness) {
	h.putRows([][]byte{[]byte("a"), []byte("c")})
	for _, s := range []store.Scan{
		{Start: []byte("b"), Stop: []byte("c")},
		{Start: []byte("d")},
		{Filter: store.RowFilter{Ranges: []store.KeyRange{{Start: []byte("b"), Stop: []byte("c")}}}},
		{Family: "id"},
		{Columns: []store.KeyRange{{Start: []byte("x")}}},
	} {
		s.Table = h.table
		sc, err := h.Scan(h.ctx, s)
		if err != nil {
			h.Fatalf("scan %+v: %v", s, err)
		}
		var got []store.Row
		for err == nil {
			var block []store.Row
			block, err = sc.Next()
			got = append(got, cloneRows(block)...)
		}

		if rows := admitted(s.Filter, got); len(rows) != 0 || err != io.EOF {
			h.Fatalf("scan %+v: %d rows, %v, want EOF alone", s, len(rows), err)
		}
		if _, err := sc.Next(); err != io.EOF {
			h.Fatalf("next after the end: %v, want EOF", err)
		}

		if err := sc.Close(); err != nil {
			h.Fatalf("close: %v", err)
		}
	}
}

// MaxRows ends a scan.
func testMaxRows(h *harness) {
	var keys [][]byte
	for i := range 40 {
		keys = append(keys, fmt.Appendf(nil, "r%02d", i))
	}
	h.putRows(keys)
	for _, n := range []int{1, 2, 39, 40, 41, 1000} {
		sameKeys(h, h.scan(h, store.Scan{MaxRows: n}), keys[:min(n, 40)])
		sameKeys(h, h.scan(h, store.Scan{MaxRows: n, BlockBytes: 10, Start: keys[5]}), keys[5:min(5+n, 40)])
	}
}

// KeysOnly returns every key, with one cell.
func testKeysOnly(h *harness) {
	h.apply(h, put("a", "q1", "v"), put("a", "q2", "v"), mutation(store.Put, "a", "id", "x", "v"), put("b", "q1", "v"),
		put("c", "", ""))
	rows := h.scan(h, store.Scan{KeysOnly: true})
	sameKeys(h, rows, [][]byte{[]byte("a"), []byte("b"), []byte("c")})
	for _, r := range rows {
		if len(r.Cells) != 1 {
			h.Fatalf("row %q has %d cells, want 1", r.Key, len(r.Cells))
		}
	}
}
