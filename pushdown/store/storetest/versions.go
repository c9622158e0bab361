package storetest

import (
	"context"
	"errors"

	"downpour/pushdown/store"
)

// The range whose version tokens are compared, and a row after it.
const rangeStart, rangeStop, rowAfter = "m", "n", "nn"

// While nothing is written, two version tokens in a row become equal. Every kind of
// change gives a token never seen before.
func testVersion(h *harness) {
	v := h.Features().Versioner
	if v == nil {
		h.Fatalf("%T has no store.Versioner", h.Store)
	}
	r := store.KeyRange{Start: []byte(rangeStart), Stop: []byte(rangeStop)}
	h.apply(h, store.Mutation{Row: []byte("m1"), Family: "t", Qualifier: []byte("q"), Value: []byte("1")})

	last := h.settledVersion(v, r)
	seen := map[string]string{last: "the first put"}
	for name, change := range h.changes() {
		change()
		last = h.settledVersion(v, r)
		if before, ok := seen[last]; ok {
			h.Errorf("the version token after %s is the one after %s: %x", name, before, last)
		}
		seen[last] = name
	}
}

// settledVersion gets version tokens until two in a row are equal: a flush, which may
// change them, may come in between.
func (h *harness) settledVersion(v store.Versioner, r store.KeyRange) string {
	h.Helper()
	last := h.version(v, r)
	for range 10 {
		again := h.version(v, r)
		if again == last {
			return last
		}
		last = again
	}

	h.Fatalf("ten version tokens of [%q, %q) are all different, and nothing is written", r.Start, r.Stop)
	return ""
}

// Version returns a version token that is proven.
func Version(ctx context.Context, v store.Versioner, table, family string, r store.KeyRange) (string, error) {
	token, proof, err := v.Version(ctx, table, family, r)
	if err == nil {
		err = proof()
	}
	if err != nil {
		return "", err
	}
	return token, nil
}

// version returns a version token that is not empty.
func (h *harness) version(v store.Versioner, r store.KeyRange) string {
	h.Helper()
	token, err := Version(h.ctx, v, h.table, "t", r)
	// A store may give the call little time of its own, less than a busy machine needs.
	for errors.Is(err, context.DeadlineExceeded) && h.ctx.Err() == nil {
		token, err = Version(h.ctx, v, h.table, "t", r)
	}
	if err != nil || token == "" {
		h.Fatalf("version token %q, error %v", token, err)
	}
	return token
}

// changes yields all ways to change a cell in the range, by name, in an order in which
// each of them does change one.
func (h *harness) changes() func(yield func(string, func()) bool) {
	cell := func(kind store.MutationKind, row, qualifier, value string) func() {
		return func() {
			h.apply(h, store.Mutation{
				Kind:      kind,
				Row:       []byte(row),
				Family:    "t",
				Qualifier: []byte(qualifier),
				Value:     []byte(value),
			})
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
			ok, err := h.CompareAndPut(h.ctx, h.table,
				store.CellKey{Row: []byte("m2"), Family: "t", Qualifier: []byte("c")}, nil, []byte("v"))
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

// A version token changes with rows at the borders of any range, and a table that does
// not exist has an empty token and an error.
func testVersionRanges(h *harness) {
	v := h.Features().Versioner
	all, from, one := store.KeyRange{}, store.KeyRange{Start: []byte(rangeStop)},
		store.KeyRange{Start: []byte(rowAfter), Stop: []byte(rowAfter + "\x00")}
	before := [...]string{h.version(v, all), h.version(v, from), h.version(v, one)}
	h.apply(h, store.Mutation{Row: []byte(rowAfter), Family: "t", Qualifier: []byte("q"), Value: []byte("1")})
	for i, r := range [...]store.KeyRange{all, from, one} {
		if h.version(v, r) == before[i] {
			h.Errorf("range [%q, %q): the version token did not change", r.Start, r.Stop)
		}
	}

	if token, err := Version(h.ctx, v, "storetest-none", "t", all); token != "" || err == nil {
		h.Errorf("a table that is not there has version token %q, error %v", token, err)
	}
}
