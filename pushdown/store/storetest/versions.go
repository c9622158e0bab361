package storetest

import (
	"context"
	"errors"

	"downpour/pushdown/store"
)

// The marked range, and a row behind it.
const markFrom, markTo, markBehind = "m", "n", "nn"

// testMark demands that marks come to rest while nothing is written, and that no
// kind of change leaves them equal.
func testMark(h *harness) {
	m, ok := h.Store.(store.Versioner)
	if !ok {
		h.Fatalf("%T has no store.Marker", h.Store)
	}
	r := store.KeyRange{Start: []byte(markFrom), Stop: []byte(markTo)}
	h.apply(h, store.Mutation{Row: []byte("m1"), Family: "t", Qualifier: []byte("q"), Value: []byte("1")})
	last := h.rest(m, r)
	seen := map[string]string{last: "the first put"}
	for name, change := range h.changes() {
		change()
		last = h.rest(m, r)
		if before, ok := seen[last]; ok {
			h.Errorf("%s leaves the mark of %s, %x", name, before, last)
		}
		seen[last] = name
	}
}

// rest takes marks until two are equal: a flush may come between.
func (h *harness) rest(m store.Versioner, r store.KeyRange) string {
	h.Helper()
	last := h.mark(m, r)
	for range 10 {
		again := h.mark(m, r)
		if again == last {
			return last
		}
		last = again
	}
	h.Fatalf("ten marks of [%q, %q) are all different, and nothing is written", r.Start, r.Stop)
	return ""
}

// mark takes a mark that says something.
func (h *harness) mark(m store.Versioner, r store.KeyRange) string {
	h.Helper()
	mark, err := m.Version(h.ctx, h.table, "t", r)
	for errors.Is(err, context.DeadlineExceeded) && h.ctx.Err() == nil { // it has little time, and a busy machine takes longer
		mark, err = m.Version(h.ctx, h.table, "t", r)
	}
	if err != nil || mark == "" {
		h.Fatalf("mark %q, error %v", mark, err)
	}
	return mark
}

// changes are all ways to change a cell in the range, in an order in which each
// of them changes one.
func (h *harness) changes() func(yield func(string, func()) bool) {
	cell := func(kind store.MutationKind, row, qualifier, value string) func() {
		return func() {
			h.apply(h, store.Mutation{Kind: kind, Row: []byte(row), Family: "t", Qualifier: []byte(qualifier), Value: []byte(value)})
		}
	}
	key := store.CellKey{Row: []byte("m2"), Family: "t", Qualifier: []byte("n")}
	list := []struct {
		name   string
		change func()
	}{
		{"a put", cell(store.Put, "m5", "q", "1")},
		{"the same put", cell(store.Put, "m5", "q", "1")},
		{"an overwrite of the same length", cell(store.Put, "m5", "q", "2")},
		{"a put into the first row", cell(store.Put, "m", "q", "2")},
		{"an append", cell(store.Append, "m1", "q", "2")},
		{"an append to nothing", cell(store.Append, "m7", "a", "2")},
		{"a delete", cell(store.DeleteCell, "m5", "q", "")},
		{"a delete of a row", cell(store.DeleteRow, "m1", "", "")},
		{"an increment", func() { _, err := h.Increment(h.ctx, h.table, key, 2); must(h, err) }},
		{"a compare and put", func() {
			ok, err := h.CompareAndPut(h.ctx, h.table, store.CellKey{Row: []byte("m2"), Family: "t", Qualifier: []byte("c")}, nil, []byte("v"))
			must(h, err)
			if !ok {
				h.Errorf("compare and put of a new cell did nothing")
			}
		}},
	}
	return func(yield func(string, func()) bool) {
		for _, c := range list {
			if !yield(c.name, c.change) {
				return
			}
		}
	}
}

func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// testMarkRanges demands that a mark sees changes at the borders of any range,
// and that an empty mark or an error is all that a table that is not there gets.
func testMarkRanges(h *harness) {
	m := h.Store.(store.Versioner)
	whole, from, one := store.KeyRange{}, store.KeyRange{Start: []byte(markTo)}, store.KeyRange{Start: []byte(markBehind), Stop: []byte(markBehind + "\x00")}
	before := [...]string{h.mark(m, whole), h.mark(m, from), h.mark(m, one)}
	h.apply(h, store.Mutation{Row: []byte(markBehind), Family: "t", Qualifier: []byte("q"), Value: []byte("1")})
	for i, r := range [...]store.KeyRange{whole, from, one} {
		if h.mark(m, r) == before[i] {
			h.Errorf("range [%q, %q): the mark did not change", r.Start, r.Stop)
		}
	}
	if mark, err := m.Version(h.ctx, "storetest-none", "t", whole); mark != "" || err == nil {
		h.Errorf("a table that is not there has mark %q, error %v", mark, err)
	}
}
