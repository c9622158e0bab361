package storetest

import (
	"fmt"
	"testing"

	"downpour/pushdown/store"
)

// CreateTable creates a table once.
func testTables(h *harness) {
	name := uniqueTable(h.T)
	h.exists(name, false)
	if err := h.CreateTable(h.ctx, h.spec(name)); err != nil {
		h.Fatalf("create table: %v", err)
	}
	h.exists(name, true)
	wantError(h, "create it again", h.CreateTable(h.ctx, h.spec(name)), store.ErrTableExists)

	h.apply(h, put("r", "q", "v"))
	rows, err := h.Get(h.ctx, name, "", [][]byte{[]byte("r")})
	if err != nil || len(rows) != 0 {
		h.Fatalf("get from an empty table: %v, %v", text(rows), err)
	}
}

// exists fails unless TableExists returns want.
func (h *harness) exists(name string, want bool) {
	h.Helper()
	got, err := h.TableExists(h.ctx, name)
	if err != nil || got != want {
		h.Fatalf("table %q exists: %v, %v, want %v", name, got, err, want)
	}
}

// Get returns rows in the requested order and leaves missing ones out.
func testGet(h *harness) {
	h.apply(h, put("a", "q1", "1"), put("a", "q2", "2"), mutation(store.Put, "a", "name", "n", "3"),
		put("ab", "q", "4"), mutation(store.Put, "c", "id", "i", "5"), put("a\x00", "q", "6"))
	get := func(family string, keys ...string) []store.Row {
		h.Helper()
		var raw [][]byte
		for _, k := range keys {
			raw = append(raw, []byte(k))
		}
		rows, err := h.Get(h.ctx, h.table, family, raw)
		if err != nil {
			h.Fatalf("get %q: %v", keys, err)
		}
		return rows
	}

	a := store.Row{
		Key: []byte("a"),
		Cells: append([]store.Cell{{Family: []byte("name"), Qualifier: []byte("n"), Value: []byte("3")}},
			row("", "q1", "1", "q2", "2").Cells...),
	}
	c := store.Row{
		Key:   []byte("c"),
		Cells: []store.Cell{{Family: []byte("id"), Qualifier: []byte("i"), Value: []byte("5")}},
	}
	same(h, get("", "a"), []store.Row{a})
	same(h, get("", "c", "x", "ab", "", "a", "abc"), []store.Row{c, row("ab", "q", "4"), a})
	same(h, get("t", "c", "a", "a\x00"), []store.Row{row("a", "q1", "1", "q2", "2"), row("a\x00", "q", "6")})
	same(h, get("id", "a", "c"), []store.Row{c})
	same(h, get(""), nil)
	same(h, get("", "b"), nil)
}

// A put replaces.
func testPut(h *harness) {
	h.apply(h, put("r", "q", "first, and longer"), put("r", "p", "stays"))
	h.apply(h, put("r", "q", "second"))
	same(h, h.scan(h, store.Scan{}), []store.Row{row("r", "p", "stays", "q", "second")})
	h.apply(h, put("r", "q", ""))
	same(h, h.scan(h, store.Scan{}), []store.Row{row("r", "p", "stays", "q", "")})
	h.apply(h, put("r", "q", "second")) // again: harmless
	h.apply(h, put("r", "q", "second"))
	same(h, h.scan(h, store.Scan{}), []store.Row{row("r", "p", "stays", "q", "second")})
	h.apply(h) // nothing at all
}

// An append adds to the end, for any cell.
func testAppend(h *harness) {
	add := func(value string) store.Mutation { return mutation(store.Append, "r", "t", "q", value) }
	want := ""
	for i := range 60 {
		part := fmt.Sprintf("%d\x00\xff", i)
		h.apply(h, add(part))
		want += part
	}

	same(h, h.scan(h, store.Scan{}), []store.Row{row("r", "q", want)})

	h.apply(h, put("r", "q", "put"))
	h.apply(h, add("+1"))
	h.apply(h, add("+2"), add("+3"))
	same(h, h.scan(h, store.Scan{}), []store.Row{row("r", "q", "put+1+2+3")})

	tick()
	h.apply(h, mutation(store.DeleteCell, "r", "t", "q", ""))
	tick()
	h.apply(h, add("new"))
	same(h, h.scan(h, store.Scan{}), []store.Row{row("r", "q", "new")})
}

// DeleteCell removes one cell, and is harmless where there is none.
func testDeleteCell(h *harness) {
	h.apply(h, put("r", "q", "v"), put("r", "q\x00", "w"), put("s", "q", "x"))
	tick()
	h.apply(h, mutation(store.DeleteCell, "r", "t", "q", ""))
	same(h, h.scan(h, store.Scan{}), []store.Row{row("r", "q\x00", "w"), row("s", "q", "x")})

	h.apply(h, mutation(store.DeleteCell, "r", "t", "q", ""), mutation(store.DeleteCell, "none", "t", "q", ""))
	tick()
	h.apply(h, put("r", "q", "again"))
	h.apply(h, mutation(store.DeleteCell, "s", "t", "q", ""))
	same(h, h.scan(h, store.Scan{}), []store.Row{row("r", "q", "again", "q\x00", "w")})
}

// DeleteRow removes one family's cells of one row.
func testDeleteRow(h *harness) {
	h.apply(h, put("a", "q", "v"), put("ab", "", "v"), put("ab", "q", "v"), put("ab", "\xff\xff", "v"),
		mutation(store.Append, "ab", "t", "more", "v"), mutation(store.Put, "ab", "name", "n", "kept"),
		put("ab\x00", "q", "v"), put("b", "q", "v"))
	tick()
	h.apply(h, mutation(store.DeleteRow, "ab", "t", "", ""), mutation(store.DeleteRow, "none", "t", "", ""))
	kept := store.Row{
		Key:   []byte("ab"),
		Cells: []store.Cell{{Family: []byte("name"), Qualifier: []byte("n"), Value: []byte("kept")}},
	}
	same(h, h.scan(h, store.Scan{}), []store.Row{row("a", "q", "v"), kept, row("ab\x00", "q", "v"), row("b", "q", "v")})
	tick()
	h.apply(h, put("ab", "q", "new"))
	kept.Cells = append(kept.Cells, row("", "q", "new").Cells...)
	same(h, h.scan(h, store.Scan{}), []store.Row{row("a", "q", "v"), kept, row("ab\x00", "q", "v"), row("b", "q", "v")})
}

// Mutations of one cell in one call take effect in the order of the slice.
func testOrderInOneApply(h *harness) {
	add := func(v string) store.Mutation { return mutation(store.Append, "r", "t", "q", v) }
	set := func(v string) store.Mutation { return put("r", "q", v) }
	drop, dropRow := mutation(store.DeleteCell, "r", "t", "q", ""), mutation(store.DeleteRow, "r", "t", "", "")
	for name, c := range map[string]struct {
		ms   []store.Mutation
		want string // empty: no cell
	}{
		"the last put wins":            {[]store.Mutation{set("1"), set("2"), set("3")}, "3"},
		"appends keep their order":     {[]store.Mutation{add("1"), add("2"), add("3")}, "0123"},
		"an append after a put":        {[]store.Mutation{set("1"), add("2")}, "12"},
		"a put after an append":        {[]store.Mutation{add("1"), set("2")}, "2"},
		"a put between appends":        {[]store.Mutation{add("1"), set("2"), add("3"), add("4")}, "234"},
		"a delete after a put":         {[]store.Mutation{set("1"), drop}, ""},
		"a put after a delete":         {[]store.Mutation{drop, set("1")}, "1"},
		"an append after a delete":     {[]store.Mutation{drop, add("1")}, "1"},
		"a put after deleting the row": {[]store.Mutation{dropRow, set("1")}, "1"},
		"deleting the row after a put": {[]store.Mutation{set("1"), dropRow}, ""},
		"other rows between keep theirs": {[]store.Mutation{set("1"), put("s", "q", "x"), set("2"),
			put("s", "q", "y")}, "2"},
	} {
		h.Run(name, func(t *testing.T) {
			h.apply(t, put("r", "q", "0"), put("s", "q", "y"))
			tick()
			h.apply(t, c.ms...)
			want := []store.Row{row("r", "q", c.want), row("s", "q", "y")}
			if c.want == "" {
				want = want[1:]
			}
			same(t, h.scan(t, store.Scan{}), want)
			tick()
		})
	}
}
