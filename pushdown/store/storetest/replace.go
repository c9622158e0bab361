package storetest

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"downpour/pushdown/store"
)

// read returns a copy of a row's cells of family t.
func (h *harness) read(key string) store.Row {
	h.Helper()
	rows, err := h.Get(h.ctx, h.table, "t", [][]byte{[]byte(key)})
	if err != nil {
		h.Fatalf("get: %v", err)
	}
	if len(rows) == 0 {
		return store.Row{Key: []byte(key)}
	}
	return cloneRows(rows)[0]
}

// Replace changes rows that are as they were read, and no others.
func testReplace(h *harness) {
	cell := func(key, column, value string) store.Mutation { return mutation(store.Put, key, "t", column, value) }
	h.apply(h, cell("r1", "a", "1"), cell("r1", "b", "2"), cell("r2", "a", "1"), cell("r2", "b", "2"),
		cell("r3", "a", "1"), mutation(store.Put, "r1", "id", "a", "other"))

	merge := func(key string) store.Replacement {
		r := h.read(key)
		c := store.Replacement{
			Read:   r,
			Delete: r.Cells,
			Put:    []store.Cell{{Qualifier: []byte("ab"), Value: []byte("12")}},
		}
		for _, x := range r.Cells {
			c.Put[0].Timestamp = max(c.Put[0].Timestamp, x.Timestamp)
		}
		return c
	}

	// r1 is merged, r2 gets a cell before, and r3 is changed in its place.
	changes := []store.Replacement{merge("r1"), merge("r2"), {Read: h.read("r3")}}
	changes[2].Put = []store.Cell{{
		Qualifier: []byte("a"),
		Value:     []byte("3"),
		Timestamp: changes[2].Read.Cells[0].Timestamp,
	}}
	h.apply(h, cell("r2", "c", "3"))

	outcomes, err := h.Replace(h.ctx, h.table, "t", changes)
	if want := []store.Outcome{store.Replaced, store.Changed, store.Replaced}; err != nil ||
		fmt.Sprint(outcomes) != fmt.Sprint(want) {
		h.Fatalf("replace: %v, %v, want %v", outcomes, err, want)
	}

	row := func(key string, cells ...string) store.Row {
		r := store.Row{Key: []byte(key)}
		for _, c := range cells {
			name, value, _ := strings.Cut(c, "=")
			family, column, _ := strings.Cut(name, ":")
			r.Cells = append(r.Cells,
				store.Cell{Family: []byte(family), Qualifier: []byte(column), Value: []byte(value)})
		}
		return r
	}
	same(h, h.scan(h, store.Scan{}),
		[]store.Row{row("r1", "id:a=other", "t:ab=12"), row("r2", "t:a=1", "t:b=2", "t:c=3"), row("r3", "t:a=3")})

	// A deleted cell can be written again, and a row without cells does not exist.
	h.apply(h, cell("r1", "a", "again"))
	c := store.Replacement{Read: h.read("r3")}
	c.Delete = c.Read.Cells
	if outcomes, err := h.Replace(h.ctx, h.table, "t", []store.Replacement{c}); err != nil ||
		outcomes[0] != store.Replaced {
		h.Fatalf("replace: %v, %v", outcomes, err)
	}
	same(h, h.scan(h, store.Scan{Family: "t"}),
		[]store.Row{row("r1", "t:a=again", "t:ab=12"), row("r2", "t:a=1", "t:b=2", "t:c=3")})
}

// Replace rewrites a cell and merges others while writers append to it and add cells. No
// byte that a writer has written is lost.
func testReplaceConcurrently(h *harness) {
	const writers, each = 4, 30
	g, ctx := errgroup.WithContext(h.ctx)
	writing, done := errgroup.WithContext(ctx)
	for w := range writers {
		writing.Go(func() error {
			for i := range each {
				ms := []store.Mutation{mutation(store.Append, "r", "t", "appended", fmt.Sprintf("<%d.%d>", w, i))}
				ms = append(ms,
					mutation(store.Put, "r", "t", fmt.Sprintf("c%d.%d", w, i), fmt.Sprintf("[%d.%d]", w, i)))
				if err := h.Apply(ctx, h.table, ms); err != nil {
					return err
				}
			}
			return nil
		})
	}

	g.Go(writing.Wait)
	g.Go(func() error {
		// done ends when the writers have: Wait ends the context of its group.
		for done.Err() == nil {
			if err := h.mergeRow(ctx); err != nil {
				return err
			}
		}
		return nil
	})

	if err := g.Wait(); err != nil {
		h.Fatalf("%v", err)
	}

	var all strings.Builder
	for _, c := range h.read("r").Cells {
		all.Write(c.Value)
	}
	for w := range writers {
		for i := range each {
			for _, form := range []string{"<%d.%d>", "[%d.%d]"} {
				if want := fmt.Sprintf(form, w, i); !strings.Contains(all.String(), want) {
					h.Errorf("%s is lost", want)
				}
			}
		}
	}
}

// mergeRow makes one cell of the row's single ones, and rewrites the appended cell with a mark at
// its end.
func (h *harness) mergeRow(ctx context.Context) error {
	rows, err := h.Get(ctx, h.table, "t", [][]byte{[]byte("r")})
	if err != nil || len(rows) == 0 {
		return err
	}

	c := store.Replacement{Read: cloneRows(rows)[0]}
	var merged store.Cell
	for _, x := range c.Read.Cells {
		if string(x.Qualifier) == "appended" {
			c.Put = append(c.Put,
				store.Cell{
					Qualifier: x.Qualifier,
					Value:     append(x.Value[:len(x.Value):len(x.Value)], '|'),
					Timestamp: x.Timestamp,
				})
			continue
		}
		merged.Qualifier = append(merged.Qualifier, x.Qualifier...)
		merged.Value = append(merged.Value, x.Value...)
		merged.Timestamp = max(merged.Timestamp, x.Timestamp)
		c.Delete = append(c.Delete, x)
	}

	// A single cell has nothing to be merged with.
	if len(c.Delete) > 1 {
		c.Put = append(c.Put, merged)
	} else {
		c.Delete = nil
	}
	_, err = h.Replace(ctx, h.table, "t", []store.Replacement{c})
	return err
}
