package pebble

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"downpour/pushdown/store"
)

func keyRange(start, stop string) store.KeyRange {
	return store.KeyRange{Start: []byte(start), Stop: []byte(stop)}
}

func taken(w store.Watch) (rows []string, lost bool) {
	changes, lost := w.Take()
	for _, c := range changes {
		rows = append(rows, string(c.Row))
	}
	slices.Sort(rows)
	return rows, lost
}

// A watch names every row of its ranges that was written or deleted in any way, each once, and no
// other.
func TestWatch(t *testing.T) {
	s := openWatched(t)
	calls := 0
	ranges := []store.KeyRange{keyRange("b", "d"), keyRange("d", "d5"), keyRange("x", "")}
	w, err := s.Watch("tsdb", ranges, func() { calls++ })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := s.Watch("none", ranges, nil); !errors.Is(err, store.ErrNoTable) {
		t.Errorf("no table: %v", err)
	}
	put := func(kind store.MutationKind, row string) {
		t.Helper()
		m := store.Mutation{Kind: kind, Row: []byte(row), Family: "t", Qualifier: []byte{5, 0, 0}, Value: []byte{1}}
		if err := s.Apply(t.Context(), "tsdb", []store.Mutation{m, m}); err != nil {
			t.Fatal(err)
		}
	}
	put(store.Append, "a\xff")
	put(store.Append, "b")
	put(store.Append, "b")
	put(store.Put, "c\x00\x01")
	put(store.DeleteCell, "c\xff")
	put(store.DeleteRow, "x")
	put(store.Put, "\xff\xff")
	put(store.Put, "d4")
	put(store.Put, "d5")
	another := store.TableSpec{Name: "tsdc", Families: []store.FamilySpec{{Name: "t"}}}
	if err := s.CreateTable(t.Context(), another); err != nil {
		t.Fatal(err)
	}
	other := store.Mutation{Row: []byte("b0"), Family: "t", Qualifier: []byte{5, 0, 0}}
	if err := s.Apply(t.Context(), another.Name, []store.Mutation{other}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Increment(t.Context(), "tsdb",
		store.CellKey{Row: []byte("cc"), Family: "t", Qualifier: []byte("n")}, 1); err != nil {
		t.Fatal(err)
	}
	if calls != 8 {
		t.Errorf("called %d times, want 8", calls)
	}
	rows, lost := taken(w)
	if diff := cmp.Diff([]string{"b", "c\x00\x01", "cc", "c\xff", "d4", "x", "\xff\xff"}, rows); diff != "" || lost {
		t.Errorf("rows, lost %t:\n%s", lost, diff)
	}
	if rows, lost := taken(w); len(rows) > 0 || lost {
		t.Errorf("taken again: %q, lost %t, want nothing", rows, lost)
	}
	w.Close()
	put(store.Put, "b")
	if rows, _ := taken(w); len(rows) > 0 {
		t.Errorf("after Close: %q, want nothing", rows)
	}
}

// A watch has the writes of a row in the order in which one writer made them: what was appended,
// put and deleted. Of a row with more writes than it keeps it says only that.
func TestWatch_writes(t *testing.T) {
	s := openWatched(t)
	var watches [2]store.Watch
	for i := range watches {
		w, err := s.Watch("tsdb", []store.KeyRange{keyRange("r", "s"), keyRange("r", "x")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		watches[i] = w
	}
	m := func(kind store.MutationKind, row, qualifier, value string) store.Mutation {
		m := cell(kind, row, qualifier, value)
		if kind == store.Put {
			m.Timestamp = 1234
		}
		return m
	}
	apply(t, s, m(store.Append, "r", "q", "ab"), m(store.Put, "r", "p", "c"))
	apply(t, s, m(store.Append, "r", "q", "d"), m(store.Put, "q", "p", "c"))
	apply(t, s, m(store.DeleteCell, "r", "p", ""), m(store.DeleteRow, "r2", "", ""))
	var most []store.Mutation
	for i := range maxRowWrites + 2 { // one more is cut, and stays so
		apply(t, s, m(store.Append, "r3", "q", string(rune(i))))
		if i < maxRowWrites {
			apply(t, s, m(store.Append, "r4", "q", string(rune(i))))
			most = append(most, m(store.Append, "", "q", string(rune(i))))
		}
	}
	want := map[string]store.Change{
		"r": {Row: []byte("r"), Writes: []store.Mutation{
			m(store.Append, "", "q", "ab"), m(store.Put, "", "p", "c"), m(store.Append, "", "q", "d"),
			m(store.DeleteCell, "", "p", ""),
		}},
		"r2": {Row: []byte("r2"), Writes: []store.Mutation{m(store.DeleteRow, "", "", "")}},
		"r3": {Row: []byte("r3"), Cut: true},
		"r4": {Row: []byte("r4"), Writes: most},
	}
	for _, w := range watches {
		if diff := cmp.Diff(want, changesOf(w), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	}
	for _, rows := range []int{maxWatchWrites / 2, maxWatchWrites + 1} {
		var all []store.Mutation
		for i := range maxWatchWrites + 1 {
			all = append(all, m(store.Put, fmt.Sprintf("r%d", i%rows), fmt.Sprint(i), "v"))
		}
		apply(t, s, all...)
		cut := 0
		for _, c := range changesOf(watches[0]) {
			if c.Cut {
				cut++
			}
		}
		if cut != 1 {
			t.Errorf("of %d rows %d with a write too many, want 1", rows, cut)
		}
	}
	watches[0].Close()
	changesOf(watches[1])
	if apply(t, s, m(store.Append, "r", "q", "e")); len(changesOf(watches[0])) != 0 || len(changesOf(watches[1])) != 1 {
		t.Error("after one of two watches is closed, want changes of the other alone")
	}
}

// changesOf returns the changes that a watch has collected, by row.
func changesOf(w store.Watch) map[string]store.Change {
	out := map[string]store.Change{}
	changes, _ := w.Take()
	for _, c := range changes {
		out[string(c.Row)] = c
	}
	return out
}

// More rows than a watch keeps are reported as lost, once.
func TestWatch_lost(t *testing.T) {
	s := openWatched(t)
	w, err := s.Watch("tsdb", []store.KeyRange{keyRange("r", "s")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var all []store.Mutation
	for i := range maxWatchRows + 2 {
		all = append(all, store.Mutation{Row: fmt.Appendf(nil, "r%d", i), Family: "t", Qualifier: []byte{0}})
	}
	if err := s.Apply(t.Context(), "tsdb", all); err != nil {
		t.Fatal(err)
	}
	if rows, lost := taken(w); len(rows) > 0 || !lost {
		t.Errorf("%d rows, lost %t; want none and lost", len(rows), lost)
	}
	for _, most := range []int{1, maxWatchRows} {
		apply(t, s, all[:most]...)
		if rows, lost := taken(w); len(rows) != most || lost {
			t.Errorf("after the loss: %d rows, lost %t; want %d", len(rows), lost, most)
		}
	}
}

// A scan that begins after Watch has returned, and the watch, together report every write: none is
// lost between the two.
func TestWatch_noGap(t *testing.T) {
	s := openWatched(t)
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for j := range 200 {
				m := store.Mutation{Row: fmt.Appendf(nil, "r%d-%d", i, j), Family: "t", Qualifier: []byte{0}}
				if err := s.Apply(t.Context(), "tsdb", []store.Mutation{m}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var open []store.Watch
	var seen []map[string]bool
	for range 50 {
		w, err := s.Watch("tsdb", []store.KeyRange{keyRange("r", "s")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		open, seen = append(open, w), append(seen, rowsOf(t, s))
	}
	writers.Wait()
	for i, w := range open {
		rows, _ := taken(w)
		for _, r := range rows {
			seen[i][r] = true
		}
		if len(seen[i]) != 800 {
			t.Errorf("watch %d and the scan after it know %d rows, want 800", i, len(seen[i]))
		}
	}
}

func rowsOf(t *testing.T, s *Store) map[string]bool {
	t.Helper()
	sc, err := s.Scan(t.Context(), store.Scan{Table: "tsdb"})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	out := map[string]bool{}
	for {
		rows, err := sc.Next()
		if err != nil {
			return out
		}
		for _, r := range rows {
			out[string(r.Key)] = true
		}
	}
}

func openWatched(t *testing.T) *Store {
	t.Helper()
	s, err := Open("data", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	create(t, s)
	return s
}
