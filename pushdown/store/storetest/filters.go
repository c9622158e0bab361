package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Ranges select rows. A store may return rows between the ranges; h.scan drops them.
func testRanges(h *harness) {
	keys := awkwardKeys()
	h.putRows(keys)
	one := func(k ...byte) store.KeyRange {
		return store.KeyRange{Start: k, Stop: append(bytes.Clone(k), 0)}
	}
	for _, ranges := range [][]store.KeyRange{
		{one(0)},
		{one(0, 0), one(0x10), one(0x10, 0), one(0xff)},
		{{Stop: []byte{3}}, {Start: []byte{5}, Stop: []byte{5, 0xff}}, {Start: []byte{0xf0}}},
		{{Start: []byte{1, 0, 0}, Stop: []byte{2}}, {Start: []byte{2}, Stop: []byte{2, 0}}},
		{one(0x20, 0), one(0x30, 0x31, 0x32), {Start: []byte{0xff, 0xff, 2}}},
		exactRanges(keys),
	} {
		h.filter(store.Scan{Filter: store.RowFilter{Ranges: ranges}}, keys)
		h.filter(store.Scan{
			Filter:     store.RowFilter{Ranges: ranges},
			Start:      []byte{0},
			Stop:       []byte{0xff, 0xff},
			BlockBytes: 32,
		}, keys)
	}
}

// exactRanges returns a range for every seventh key, with that key only.
func exactRanges(keys [][]byte) []store.KeyRange {
	var out []store.KeyRange
	for i := 0; i < len(keys); i += 7 {
		out = append(out, store.KeyRange{Start: keys[i], Stop: append(bytes.Clone(keys[i]), 0)})
	}
	return out
}

// filter compares the keys that a scan returns with those that its filter and bounds
// admit.
func (h *harness) filter(s store.Scan, keys [][]byte) {
	h.Helper()
	in := store.KeyRange{Start: s.Start, Stop: s.Stop}
	var want [][]byte
	for _, k := range keys {
		if in.Contains(k) && s.Filter.Matches(k) {
			want = append(want, k)
		}
	}

	if len(want) == 0 {
		h.Fatalf("the test wants no row: %+v", s)
	}
	got := h.scan(h, s)
	for _, r := range got {
		if !in.Contains(r.Key) {
			h.Fatalf("row %x is outside [%x, %x)", r.Key, s.Start, s.Stop)
		}
	}

	sameKeys(h, got, want)
}

// Names and values of the pattern tests: bytes that are special in regular
// expressions, line ends and quoting included.
var (
	elementNames  = [][]byte{{0, 0, 1}, {0, '\n', 0xff}, {'\\', 'E', '.'}, {0xff, '(', '|'}}
	elementValues = [][]byte{{0, 0, 1}, {0, '\n', '$'}, {'\\', 'Q', 0x80}, {'^', 0xc3, 0xa9}, {0xff, 0xff, 0xff}}
)

// patternKeys returns keys with two beginnings and every choice of elements after them,
// some of which look like the name of another across a border, and keys of odd lengths.
func patternKeys() [][]byte {
	var keys [][]byte
	for _, prefix := range []string{"\x00\x00\x01\x4d\x57\x65\x50", "\x00\x00\x01\x4d\x57\x73\x60"} {
		n := len(elementValues) + 1
		for choice := range n * n * n * n {
			key := []byte(prefix)
			for i, c := 0, choice; i < 4; i, c = i+1, c/n {
				// 0 leaves the element out.
				if v := c % n; v > 0 {
					key = append(append(key, elementNames[i]...), elementValues[v-1]...)
				}
			}
			keys = append(keys, key)
		}

		keys = append(keys, []byte(prefix[:3]), []byte(prefix+"\x00"), []byte(prefix+"\x00\x00\x01\x00\x00"))
	}
	return sortedKeys(keys)
}

// patterns are patterns with one want, several, any value, exact, none.
func patterns() []*store.KeyPattern {
	p := func(exact bool, wants ...store.Want) *store.KeyPattern {
		return &store.KeyPattern{Head: 7, NameLen: 3, ValueLen: 3, Wants: wants, Exact: exact}
	}
	n, v := elementNames, elementValues
	return []*store.KeyPattern{
		p(false),
		p(true),
		p(false, store.Want{Name: n[0], Values: v[:1]}),
		p(false, store.Want{Name: n[1], Values: v[1:2]}),
		p(false, store.Want{Name: n[2], Values: v[1:4]}),
		p(false, store.Want{Name: n[3]}),
		p(false, store.Want{Name: n[0]}, store.Want{Name: n[3], Values: [][]byte{v[0], v[4]}}),
		p(true, store.Want{Name: n[1], Values: v[2:3]}),
		p(true, store.Want{Name: n[0], Values: v[:1]}, store.Want{Name: n[2]}),
		p(false, store.Want{Name: n[0], Values: v}, store.Want{Name: n[1], Values: v},
			store.Want{Name: n[2], Values: v[4:]}, store.Want{Name: n[3], Values: v[:2]}),
	}
}

// Pattern selects rows by elements of their keys.
func testPattern(h *harness) {
	keys := patternKeys()
	h.putRows(keys)
	for i, p := range patterns() {
		sortValues(p)
		h.Logf("pattern %d: %+v", i, *p)
		h.filter(store.Scan{Filter: store.RowFilter{Pattern: p}}, keys)
	}
}

// sortValues sorts the values of wants, as a Want needs them.
func sortValues(p *store.KeyPattern) {
	for i := range p.Wants {
		p.Wants[i].Values = slices.Clone(p.Wants[i].Values)
		slices.SortFunc(p.Wants[i].Values, bytes.Compare)
	}
}

// Both parts of a filter must admit a row.
func testRangesAndPattern(h *harness) {
	keys := patternKeys()
	h.putRows(keys)
	prefix := keys[len(keys)-1][:7] // the second beginning of patternKeys, as long as a Head
	for _, p := range patterns() {
		sortValues(p)
		if p.Exact && len(p.Wants) == 0 {
			continue // admits no row with elements
		}
		f := store.RowFilter{Pattern: p, Ranges: []store.KeyRange{
			{Start: keys[10], Stop: append(bytes.Clone(keys[10]), 0)},
			{Start: keys[40], Stop: keys[len(keys)/2]},
			{Start: prefix},
		}}
		h.filter(store.Scan{Filter: f, BlockBytes: 500}, keys)
	}
}

// Columns restricts cells to qualifier ranges.
func testColumns(h *harness) {
	var all []store.Row
	var ms []store.Mutation
	// Each row has other columns, the later ones ever fewer at the beginning.
	for i := range 6 {
		r := row(fmt.Sprintf("r%d", i))
		for q := range 256 {
			if q%6 > i || q < 40*i {
				continue
			}
			r.Cells = append(r.Cells, row("", string([]byte{byte(q)}), "v", string([]byte{byte(q), 0}), "w").Cells...)
		}

		all = append(all, r)
		for _, c := range r.Cells {
			ms = append(ms, store.Mutation{Row: r.Key, Family: "t", Qualifier: c.Qualifier, Value: c.Value})
		}
	}

	h.apply(h, ms...)
	for _, columns := range [][]store.KeyRange{
		{{Start: []byte{7}, Stop: []byte{7, 0}}},
		{{Stop: []byte{40}}},
		{{Start: []byte{199}}},
		{{Start: []byte{12, 0}, Stop: []byte{13, 0}}, {Start: []byte{100}, Stop: []byte{120}}, {Start: []byte{250}}},
	} {
		var want []store.Row
		for _, r := range all {
			kept := store.Row{Key: r.Key}
			for _, c := range r.Cells {
				if slices.ContainsFunc(columns, func(k store.KeyRange) bool { return k.Contains(c.Qualifier) }) {
					kept.Cells = append(kept.Cells, c)
				}
			}
			if len(kept.Cells) > 0 {
				want = append(want, kept)
			}
		}

		for _, most := range []bool{false, true} {
			same(h, h.scan(h, store.Scan{Family: "t", Columns: columns, MostInColumns: most}), want)
		}
	}
}

// Columns that are prefixes, as those of rollups are: sums and counts by their IDs and by
// their names. Rows have only these, these and others, or only columns between them.
func testColumnPrefixes(h *harness) {
	var ms []store.Mutation
	for i, columns := range [][]string{
		{"\x00", "\x01"}, {"\x00", "\x01", "\x02", "\x03", "sum:"}, {"\x02", "\x03"}, {"max:", "min:", "sum;"},
		{"count:", "d", "sum:"},
		{"\x01", "co", "count", "count9", "count;", "s", "sum", "sum9", "t"}, {"\xff"}, {"\x01", "\xff\xff"},
		{"count:", "\xfe"}, {"\x02"},
	} {
		for _, c := range columns {
			for hour := range 1 + i%3*5 {
				ms = append(ms, put(fmt.Sprintf("r%02d", i), c+string([]byte{byte(hour), 0}), "v"))
			}
			ms = append(ms, put(fmt.Sprintf("r%02d", i), c, "alone")) // the prefix itself
		}
	}
	h.apply(h, ms...)
	m := model{}
	m.apply(ms)

	pattern := &store.KeyPattern{
		Head:     2,
		ValueLen: 1,
		Wants:    []store.Want{{Values: [][]byte{[]byte("1"), []byte("3"), []byte("5"), []byte("8")}}},
	}
	for _, all := range [][]string{{"\x00", "\x01", "count:", "sum:"}, {"\x02", "min:"}, {"\x00", "\x02", "\x03"},
		{"\x01", "\xff"}, {"c", "s"}, {"\xfe", "\xff"}} {
		var columns []store.KeyRange
		for _, p := range all {
			columns = append(columns, store.KeyRange{Start: []byte(p), Stop: encoding.PrefixEnd([]byte(p))})
		}
		for _, s := range []store.Scan{
			{}, {Family: "t"}, {BlockBytes: 1}, {BlockBytes: 100}, {Start: []byte("r02"), Stop: []byte("r06")},
			{MaxRows: 1}, {MaxRows: 3}, {MaxRows: 3, BlockBytes: 1}, {Filter: store.RowFilter{Pattern: pattern}},
			{Filter: store.RowFilter{
				Ranges: []store.KeyRange{{Start: []byte("r01"), Stop: []byte("r03")},
					{Start: []byte("r05"), Stop: []byte("r09")}},
			}},
		} {
			s.Columns = columns
			for _, s.MostInColumns = range []bool{false, true} {
				same(h, h.scan(h, s), m.rows(s))
			}
		}

		var keys [][]byte
		for _, r := range m.rows(store.Scan{Columns: columns}) {
			keys = append(keys, r.Key)
		}
		sameKeys(h, h.scan(h, store.Scan{Columns: columns, KeysOnly: true}), keys)
	}
}

// Since returns the cells written at or after a time. Times are kept.
func testSince(h *harness) {
	base := time.Now().Add(-time.Hour).UnixMilli()
	at := func(m store.Mutation, ms int64) store.Mutation {
		m.Timestamp = ms
		return m
	}
	h.apply(h,
		at(put("a", "q1", "v1"), base), at(put("a", "q2", "v2"), base+1),
		at(put("b", "q1", "v3"), base-1), at(put("c", "q1", "v4"), base+5000), put("d", "q1", "v5"))
	h.apply(h, mutation(store.Append, "e", "t", "q1", "v6"))
	// d has the store's own time, an hour later, and e a later one or none: every Since here
	// keeps both.
	all := []store.Row{row("a", "q1", "v1", "q2", "v2"), row("b", "q1", "v3"), row("c", "q1", "v4"),
		row("d", "q1", "v5"), row("e", "q1", "v6")}
	rows := h.scan(h, store.Scan{})
	same(h, rows, all)
	if rows[0].Cells[0].Timestamp != base || rows[0].Cells[1].Timestamp != base+1 {
		h.Fatalf("times %d and %d, want %d and one more", rows[0].Cells[0].Timestamp, rows[0].Cells[1].Timestamp, base)
	}

	same(h, h.scan(h, store.Scan{Since: base - 1}), all)
	same(h, h.scan(h, store.Scan{Since: base}), []store.Row{all[0], all[2], all[3], all[4]})
	same(h, h.scan(h, store.Scan{Since: base + 1}), []store.Row{row("a", "q2", "v2"), all[2], all[3], all[4]})
	same(h, h.scan(h, store.Scan{Since: base + 5001}), all[3:])
}
