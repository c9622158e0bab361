package storetest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"downpour/encoding"
	_ "downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// model is a naive store: cells by name, in a map.
type model map[modelKey]string

type modelKey struct{ row, family, qualifier string }

// apply does what store.Writer.Apply promises.
func (m model) apply(mutations []store.Mutation) {
	for _, mu := range mutations {
		k := modelKey{string(mu.Row), mu.Family, string(mu.Qualifier)}
		switch mu.Kind {
		case store.Put:
			m[k] = string(mu.Value)
		case store.Append:
			m[k] += string(mu.Value)
		case store.DeleteCell:
			delete(m, k)
		case store.DeleteRow:
			for other := range m {
				if other.row == k.row && other.family == k.family {
					delete(m, other)
				}
			}
		}
	}
}

// rows returns the rows of s.
func (m model) rows(s store.Scan) []store.Row {
	var keys []modelKey
	bounds := store.KeyRange{Start: s.Start, Stop: s.Stop}
	for k := range m {
		if bounds.Contains([]byte(k.row)) && s.Filter.Matches([]byte(k.row)) &&
			(s.Family == "" || s.Family == k.family) && anyContains(s.Columns, []byte(k.qualifier)) {
			keys = append(keys, k)
		}
	}

	slices.SortFunc(keys, func(a, b modelKey) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.family, b.family), cmp.Compare(a.qualifier, b.qualifier))
	})
	var rows []store.Row
	for _, k := range keys {
		if n := len(rows); n == 0 || string(rows[n-1].Key) != k.row {
			rows = append(rows, store.Row{Key: []byte(k.row)})
		}
		r := &rows[len(rows)-1]
		r.Cells = append(r.Cells,
			store.Cell{Family: []byte(k.family), Qualifier: []byte(k.qualifier), Value: []byte(m[k])})
	}

	if s.MaxRows > 0 && len(rows) > s.MaxRows {
		rows = rows[:s.MaxRows]
	}
	return rows
}

// anyContains reports whether one of ranges contains key. It is true without ranges.
func anyContains(ranges []store.KeyRange, key []byte) bool {
	return len(ranges) == 0 || slices.ContainsFunc(ranges, func(r store.KeyRange) bool { return r.Contains(key) })
}

// Any sequence of calls leaves the cells that the model has. Each run has a prefix of
// its own in one table, because creating tables is slow on a cluster.
func testModel(h *harness) {
	run := 0
	rapid.Check(h.T, func(t *rapid.T) {
		run++
		g := generator{t: t, prefix: fmt.Appendf(nil, "%06d/", run)}
		m := model{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			g.step(h, m)
		}
		// All rows of the prefix: '0' follows '/', with which it ends.
		all := store.Scan{Start: g.prefix, Stop: append(bytes.Clone(g.prefix[:len(g.prefix)-1]), '0')}
		same(t, h.scan(t, all), m.rows(all))
	})
}

// generator draws calls inside one prefix.
type generator struct {
	t      *rapid.T
	prefix []byte
}

// step makes one call of the store, and the same change of the model.
func (g generator) step(h *harness, m model) {
	switch rapid.IntRange(0, 5).Draw(g.t, "call") {
	case 0, 1, 2:
		ms := g.mutations()
		m.apply(ms)
		tick() // before and after: no put and delete of two calls in one millisecond
		h.apply(g.t, ms...)
		tick()
	case 3:
		s := g.scan()
		same(g.t, h.scan(g.t, s), m.rows(s))
	case 4:
		g.get(h, m)
	case 5:
		g.compareAndPut(h, m)
	}
}

// key draws a short row key of few different bytes, so that keys are often equal or
// begin with one another.
func (g generator) key(label string) []byte {
	return append(bytes.Clone(g.prefix), g.small(label, 0, 4)...)
}

// small draws a short string of awkward bytes.
func (g generator) small(label string, least, most int) []byte {
	return rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x2f, 0xfe, 0xff}), least, most).Draw(g.t, label)
}

// mutations draws up to eight mutations, either puts and appends or deletes: how HBase
// orders both in one call is a test of its own.
func (g generator) mutations() []store.Mutation {
	deletes := rapid.IntRange(0, 3).Draw(g.t, "deletes") == 0
	ms := make([]store.Mutation, rapid.IntRange(1, 8).Draw(g.t, "mutations"))
	for i := range ms {
		kind := rapid.SampledFrom([]store.MutationKind{store.Put, store.Append}).Draw(g.t, "kind")
		if deletes {
			kind = rapid.SampledFrom([]store.MutationKind{store.DeleteCell, store.DeleteRow}).Draw(g.t, "kind")
		}
		family := rapid.SampledFrom(families).Draw(g.t, "family")
		ms[i] = store.Mutation{Kind: kind, Row: g.key("row"), Family: family, Qualifier: g.small("qualifier", 1, 3)}
		if !deletes {
			ms[i].Value = g.small("value", 0, 4)
		}
	}
	return ms
}

// scan draws bounds, columns and limits.
func (g generator) scan() store.Scan {
	// Only rows of the prefix: '0' follows '/', with which it ends.
	s := store.Scan{Start: g.key("start"), Stop: append(bytes.Clone(g.prefix[:len(g.prefix)-1]), '0')}
	if stop := g.key("stop"); bytes.Compare(stop, s.Start) > 0 {
		s.Stop = stop
	}
	s.Family = rapid.SampledFrom(append([]string{""}, families...)).Draw(g.t, "family")
	s.BlockBytes = rapid.SampledFrom([]int{0, 1, 30}).Draw(g.t, "block")
	if rapid.Bool().Draw(g.t, "columns") && s.Family != "" {
		s.Columns = g.columns()
		s.MostInColumns = rapid.Bool().Draw(g.t, "most in columns")
	}

	// Never a limit and ranges together: a store may return rows between the ranges,
	// which may count for the limit.
	switch rapid.IntRange(0, 2).Draw(g.t, "restrict") {
	case 1:
		s.MaxRows = rapid.IntRange(1, 4).Draw(g.t, "rows")
	case 2:
		s.Filter.Ranges = g.ranges()
	}
	return s
}

// columns draws sorted, disjoint ranges of qualifiers. All, some or none of them are
// prefixes.
func (g generator) columns() (out []store.KeyRange) {
	var starts [][]byte
	for range rapid.IntRange(1, 4).Draw(g.t, "columns") {
		starts = append(starts, g.small("from", 1, 2))
	}

	prefixes := rapid.IntRange(0, 2).Draw(g.t, "prefixes") // 0: none, 1: some, 2: all
	for _, from := range sortedKeys(starts) {
		r := store.KeyRange{Start: from, Stop: encoding.PrefixEnd(from)}
		if prefixes == 0 || prefixes == 1 && rapid.Bool().Draw(g.t, "short") {
			r.Stop = append(bytes.Clone(from), 0xff)
		}
		if n := len(out); n == 0 || len(out[n-1].Stop) > 0 && bytes.Compare(out[n-1].Stop, from) <= 0 {
			out = append(out, r)
		}
	}
	return out
}

// ranges draws sorted, disjoint ranges.
func (g generator) ranges() []store.KeyRange {
	var edges [][]byte
	for range rapid.IntRange(2, 7).Draw(g.t, "edges") {
		edges = append(edges, g.key("edge"))
	}
	edges = sortedKeys(edges)

	var out []store.KeyRange
	for i := 0; i+1 < len(edges); i += 2 {
		out = append(out, store.KeyRange{Start: edges[i], Stop: edges[i+1]})
	}
	return out
}

// get compares a Get with the model's rows, in the order drawn.
func (g generator) get(h *harness, m model) {
	family := rapid.SampledFrom([]string{"", "t"}).Draw(g.t, "family")
	var keys [][]byte
	var want []store.Row
	for range rapid.IntRange(0, 5).Draw(g.t, "keys") {
		k := g.key("row")
		if slices.ContainsFunc(keys, func(o []byte) bool { return bytes.Equal(o, k) }) {
			continue // Get promises nothing for a key that is given twice
		}
		keys = append(keys, k)
		want = append(want, m.rows(store.Scan{Start: k, Stop: append(bytes.Clone(k), 0), Family: family})...)
	}

	got, err := h.Get(h.ctx, h.table, family, keys)
	if err != nil {
		g.t.Fatalf("get: %v", err)
	}
	same(g.t, got, want)
}

// compareAndPut compares the outcome with the model's.
func (g generator) compareAndPut(h *harness, m model) {
	cell := store.CellKey{Row: g.key("row"), Family: "id", Qualifier: g.small("qualifier", 1, 2)}
	expected, value := g.small("expected", 0, 2), g.small("value", 1, 2)
	k := modelKey{string(cell.Row), cell.Family, string(cell.Qualifier)}
	old, found := m[k]
	// Drawn values would seldom be the right ones.
	if found && rapid.Bool().Draw(g.t, "right") {
		expected = []byte(old)
	}

	want := len(expected) == 0 && !found || len(expected) > 0 && found && old == string(expected)

	tick()
	got, err := h.CompareAndPut(h.ctx, h.table, cell, expected, value)
	if err != nil || got != want {
		g.t.Fatalf("compare and put, cell %q found %v, expected %q: %v, %v, want %v", old, found, expected, got, err,
			want)
	}
	if want {
		m[k] = string(value)
	}
}
