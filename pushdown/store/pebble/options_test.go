package pebble

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"downpour/pushdown/store"
)

// Options that are not set have the defaults that are documented, and others stay.
func TestOptions_defaults(t *testing.T) {
	o := Options{}.withDefaults()
	if o.CacheBytes != 128<<20 || o.MemTableBytes != 4<<20 || o.IdleFlush != 300*time.Millisecond || o.Now().IsZero() {
		t.Errorf("got a cache of %d bytes, memtables of %d, a pause of %v, now %v", o.CacheBytes, o.MemTableBytes,
			o.IdleFlush, o.Now())
	}
	then := time.Unix(1_500_000_000, 0)
	o = Options{CacheBytes: 1, MemTableBytes: 2, IdleFlush: 3, Now: func() time.Time { return then }}.withDefaults()
	if o.CacheBytes != 1 || o.MemTableBytes != 2 || o.IdleFlush != 3 || !o.Now().Equal(then) {
		t.Errorf("got a cache of %d bytes, memtables of %d, a pause of %v, now %v, want what was set", o.CacheBytes,
			o.MemTableBytes, o.IdleFlush, o.Now())
	}
}

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
