package pebble

import (
	"bytes"
	"fmt"
	"testing"

	"downpour/pushdown/store"
)

// No file reaches from one table into another, neither those of a flush nor those of a compaction.
func TestOptions_tablesApart(t *testing.T) {
	s := openMem(t, Options{})
	names := []string{"a", "a-b", "ab", "b"}
	for _, name := range names {
		if err := s.CreateTable(t.Context(), store.TableSpec{
			Name: name, Families: []store.FamilySpec{{Name: "t"}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	apart := func(when string) {
		t.Helper()
		levels, err := s.db.SSTables()
		if err != nil {
			t.Fatal(err)
		}
		files := 0
		for _, level := range levels {
			for _, file := range level {
				first, _, _ := bytes.Cut(file.Smallest.UserKey, []byte{0})
				last, _, _ := bytes.Cut(file.Largest.UserKey, []byte{0})
				if files++; !bytes.Equal(first, last) {
					t.Errorf("%s: a file reaches from table %q into %q", when, first, last)
				}
			}
		}
		if files < len(names) {
			t.Errorf("%s: %d files of %d tables", when, files, len(names))
		}
	}
	for round := range 2 {
		for _, name := range names {
			var rows []store.Mutation
			for i := range 100 {
				rows = append(rows, cell(store.Put, fmt.Sprint("row", i), "q", fmt.Sprint("value", round)))
			}
			if err := s.Apply(t.Context(), name, rows); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	apart("after two flushes")
	if err := s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, false); err != nil {
		t.Fatal(err)
	}
	apart("after a compaction")
}
