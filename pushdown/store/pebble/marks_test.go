package pebble

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding/seedtest"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
)

// marked are the hours 10 to 12 of metric 1.
var marked = store.KeyRange{Start: hourRow(1, 10, ""), Stop: hourRow(1, 13, "")}

func (s *Store) mustMark(t *testing.T, r store.KeyRange) string {
	t.Helper()
	m, err := s.Mark(t.Context(), "t", "t", r)
	if err != nil || m.Resting {
		t.Fatal(m, err)
	}
	return m.Text
}

func (s *Store) wantUnchanged(t *testing.T, what string, r store.KeyRange, mark string, want bool) {
	t.Helper()
	err := s.Unchanged(t.Context(), "t", "t", r, mark)
	if want && err != nil || !want && !errors.Is(err, store.ErrRowsChanged) {
		t.Errorf("%s: got %v, want unchanged %v", what, err, want)
	}
}

// changesKept returns how many groups have the number of their last change in the table of marks.
func (s *Store) changesKept(t *testing.T) (n int) {
	t.Helper()
	prefix := appendPrefix(nil, marksTable, []byte(rowChange))
	err := s.eachMark(prefix[:len(prefix)-1], appendTableEnd(nil, marksTable), func(row, _ []byte) error {
		if row[0] == rowChange[0] {
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A mark holds until something in its hours changes, and for the other hours longer. Nothing is kept of other changes.
func TestMark_changes(t *testing.T) {
	row := hourRow(1, 11, "aaaaaa")
	for _, c := range []struct {
		what    string
		m       store.Mutation
		changes bool
	}{
		{"a put", store.Mutation{Row: row, Family: "t", Qualifier: []byte("q"), Value: []byte("v")}, true},
		{
			"a put of an old time",
			store.Mutation{Row: row, Family: "t", Qualifier: []byte("q"), Value: []byte("v"), Timestamp: 1},
			true,
		},
		{
			"an append",
			store.Mutation{Kind: store.Append, Row: row, Family: "t", Qualifier: []byte("q"), Value: []byte("v")},
			true,
		},
		{"a deleted cell", store.Mutation{Kind: store.DeleteCell, Row: row, Family: "t", Qualifier: []byte("q")}, true},
		{"a deleted row", store.Mutation{Kind: store.DeleteRow, Row: row, Family: "t"}, true},
		{"a row without an hour", store.Mutation{Row: []byte{1}, Family: "t", Qualifier: []byte("q")}, true},
		{"the hour before", store.Mutation{Row: hourRow(1, 9, "aaaaaa"), Family: "t", Qualifier: []byte("q")}, false},
		{"the hour behind", store.Mutation{Row: hourRow(1, 13, ""), Family: "t", Qualifier: []byte("q")}, false},
		{"the first hour of all", store.Mutation{Row: make([]byte, 7), Family: "t", Qualifier: []byte("q")}, false},
		{"another metric", store.Mutation{Row: hourRow(2, 11, "aaaaaa"), Family: "t", Qualifier: []byte("q")}, false},
	} {
		s := openGrouped(t)
		other := store.TableSpec{Name: "other", Families: []store.FamilySpec{{Name: "t"}}}
		if err := s.CreateTable(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		s.write(t, row)
		mark := s.mustMark(t, marked)
		s.wantUnchanged(t, "nothing", marked, mark, true)
		for _, table := range []string{"t", other.Name} {
			if err := s.Apply(t.Context(), table, []store.Mutation{c.m}); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.changesKept(t); n > 1 || c.changes != (n == 1) {
			t.Errorf("%s: changes of %d groups are kept, want those of marked rows alone", c.what, n)
		}
		s.wantUnchanged(t, c.what, marked, mark, !c.changes)
		if len(c.m.Row) > 1 {
			s.wantUnchanged(t, c.what+", another hour",
				store.KeyRange{Start: hourRow(1, 12, ""), Stop: hourRow(1, 13, "")}, mark, true)
		}
		s.wantUnchanged(t, c.what+", a new mark", marked, s.mustMark(t, marked), true)
	}
}

// A range of rows that is deleted changes its hours and no others.
func TestMark_deletedRange(t *testing.T) {
	last := store.KeyRange{Start: hourRow(1, 12, ""), Stop: hourRow(1, 13, "")}
	for what, c := range map[string]struct {
		r                 store.KeyRange
		first, all, other bool // what stays unchanged
	}{
		"hours before":   {store.KeyRange{Start: hourRow(1, 1, ""), Stop: hourRow(1, 10, "")}, true, true, true},
		"the first hour": {store.KeyRange{Start: hourRow(1, 1, ""), Stop: hourRow(1, 11, "")}, false, true, true},
		"all hours":      {store.KeyRange{Start: hourRow(1, 1, ""), Stop: hourRow(1, 20, "")}, false, false, true},
		"another metric": {store.KeyRange{Start: hourRow(2, 1, ""), Stop: hourRow(2, 20, "")}, true, true, false},
		"two metrics":    {store.KeyRange{Start: hourRow(1, 12, ""), Stop: hourRow(2, 11, "")}, false, false, false},
	} {
		s := openGrouped(t)
		mark, other := s.mustMark(t, marked), store.KeyRange{Start: hourRow(2, 10, ""), Stop: hourRow(2, 13, "")}
		otherMark := s.mustMark(t, other)
		if err := s.DeleteRows(t.Context(), "t", []store.KeyRange{c.r}); err != nil {
			t.Fatal(err)
		}
		s.wantUnchanged(t, what, marked, mark, c.first)
		s.wantUnchanged(t, what+", the last hour", last, mark, c.all)
		s.wantUnchanged(t, what+", of metric 2", other, otherMark, c.other)
	}
}

// A mark of other hours leaves the changes of those that were marked before known.
func TestMark_ranges(t *testing.T) {
	s := openGrouped(t)
	first := s.mustMark(t, marked)
	for _, hour := range []uint32{20, 5} {
		other := store.KeyRange{Start: hourRow(1, hour, ""), Stop: hourRow(1, hour+1, "")}
		mark := s.mustMark(t, other)
		s.wantUnchanged(t, "other hours", other, mark, true)
		s.wantUnchanged(t, "the first hours", marked, first, true)
	}
	s.write(t, hourRow(1, 11, "aaaaaa"))
	s.mustMark(t, marked)
	s.wantUnchanged(t, "written to while others were marked", marked, first, false)
}

// Marks hold in later openings of the store, and changes are seen whichever opening they were
// made in.
func TestMark_reopened(t *testing.T) {
	files := vfs.NewMem()
	open := func(salvage bool) *Store {
		t.Helper()
		s, err := Open("db", Options{FS: files, Grouping: hourly, Salvage: salvage})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	reopen := func(s *Store, salvage bool) *Store {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return open(salvage)
	}

	s := open(false)
	spec := store.TableSpec{Name: "t", Families: []store.FamilySpec{{Name: "t"}}}
	if err := s.CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	s.write(t, hourRow(1, 11, "aaaaaa"))
	first := s.mustMark(t, marked)
	s = reopen(s, false)
	s.wantUnchanged(t, "opened again", marked, first, true)
	s.write(t, hourRow(1, 11, "aaaaaa"))
	s.wantUnchanged(t, "written to", marked, first, false)
	for range 2 {
		s.write(t, hourRow(1, 11, "aaaaaa")) // later marks have higher numbers
	}
	s = reopen(s, false)
	s.wantUnchanged(t, "written to in an earlier opening", marked, first, false)
	second := s.mustMark(t, marked)
	s.wantUnchanged(t, "marked again", marked, second, true)
	s.wantUnchanged(t, "the first mark", marked, first, false)

	// A store that has lost data may have lost changes.
	s = reopen(s, true)
	if err := s.Unchanged(t.Context(), "t", "t", marked, second); err == nil {
		t.Error("a mark holds in a store that has lost data")
	}
	s = reopen(s, false)
	if third := s.mustMark(t, marked); s.Unchanged(t.Context(), "t", "t", marked, third) != nil {
		t.Error("a new mark does not hold")
	}
	if err := s.Unchanged(t.Context(), "t", "t", marked, second); err == nil {
		t.Error("an old mark holds beside a new one")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Where the table of marks has a row that is none, no mark holds any more: changes may be missing.
func TestMark_unreadable(t *testing.T) {
	for kind, bytes := range map[string]int{rowWatched: 8, rowChange: 16, "y": 8, "z": 16} {
		files := vfs.NewMem()
		log := new(logtest.Log)
		opts := Options{FS: files, Grouping: hourly, Logger: log.Logger()}
		s, err := Open("db", opts)
		if err != nil {
			t.Fatal(err)
		}
		err = s.CreateTable(t.Context(), store.TableSpec{Name: "t", Families: []store.FamilySpec{{Name: "t"}}})
		if err != nil {
			t.Fatal(err)
		}
		mark := s.mustMark(t, marked)
		s.write(t, hourRow(1, 11, "aaaaaa"))
		b := s.newBatch(0)
		b.putMark(kind, "zzzz", make([]byte, bytes))
		if err := errors.Join(s.commit(b), s.Close()); err != nil {
			t.Fatal(err)
		}

		if s, err = Open("db", opts); err != nil {
			t.Fatal(err)
		}
		if err := s.Unchanged(t.Context(), "t", "t", marked, mark); err == nil || errors.Is(err, store.ErrRowsChanged) {
			t.Errorf("row %s of %d bytes: %v, want that the mark does not hold", kind, bytes, err)
		}
		if !strings.Contains(log.String(), "marks of rows cannot be read") {
			t.Errorf("row %s of %d bytes: it is not logged that marks are given up: %s", kind, bytes, log)
		}
		s.wantUnchanged(t, "a new mark", marked, s.mustMark(t, marked), true)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing is proven of hours that were not marked, by marks of other stores, or by texts that
// are none.
func TestMark_refused(t *testing.T) {
	s, other := openGrouped(t), openGrouped(t)
	mark := s.mustMark(t, marked)
	other.mustMark(t, marked)
	if err := other.Unchanged(t.Context(), "t", "t", marked, mark); err == nil ||
		!strings.Contains(err.Error(), "of another store") {
		t.Errorf("another store: got %v, want an error that says so", err)
	}
	hours := func(metric byte, first, last uint32) store.KeyRange {
		return store.KeyRange{Start: hourRow(metric, first, ""), Stop: hourRow(metric, last+1, "")}
	}
	name, _, _ := strings.Cut(mark, ":")
	for _, c := range []struct {
		r          store.KeyRange
		mark, want string
	}{
		{hours(1, 10, 13), mark, "were not all marked"},
		{hours(1, 9, 12), mark, "were not all marked"},
		{hours(2, 10, 10), mark, "were not all marked"},
		{
			// The first hour of all.
			store.KeyRange{Start: []byte{0, 0, 2, 0, 0, 0, 0}, Stop: []byte{0, 0, 2, 0, 0, 0, 1}},
			mark, "were not all marked",
		},
		{marked, "17", "want ID:NUMBER"},
		{marked, name + ":x", "want ID:NUMBER"},
		{store.KeyRange{}, mark, "want ascending keys"},
	} {
		err := s.Unchanged(t.Context(), "t", "t", c.r, c.mark)
		if err == nil || errors.Is(err, store.ErrRowsChanged) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%x to %x: got %v, want %q", c.r.Start, c.r.Stop, err, c.want)
		}
	}
	if _, err := s.Mark(t.Context(), "t", "t", store.KeyRange{}); err == nil {
		t.Error("all keys were marked")
	}
}

// A deletion of many rows at once changes the marked rows among them.
func TestMark_rangeDelete(t *testing.T) {
	s := openGrouped(t)
	mark := s.mustMark(t, marked)
	b := s.newBatch(0)
	if err := b.DeleteRange(appendPrefix(nil, "t", hourRow(1, 3, "")),
		appendPrefix(nil, "t", hourRow(1, 12, "")), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.commit(b); err != nil {
		t.Fatal(err)
	}
	s.wantUnchanged(t, "rows deleted at once", marked, mark, false)
}

// While others write, no change that was made after a mark is missed.
func TestMark_concurrent(t *testing.T) {
	s := openGrouped(t)
	seed := seedtest.Of(t)
	done := make(chan error, 2)
	for w := range uint64(2) {
		go func() {
			rng := rand.New(rand.NewPCG(seed, w))
			for range 300 {
				m := store.Mutation{
					Row:       hourRow(1, uint32(20+rng.IntN(2)), "aaaaaa"),
					Family:    "t",
					Qualifier: []byte("q"),
				}
				if err := s.Apply(t.Context(), "t", []store.Mutation{m}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	r := store.KeyRange{Start: hourRow(1, 20, ""), Stop: hourRow(1, 23, "")}
	for range 100 {
		mark := s.mustMark(t, r)
		s.write(t, hourRow(1, 22, "aaaaaa"))
		s.wantUnchanged(t, "a write beside others",
			store.KeyRange{Start: hourRow(1, 22, ""), Stop: hourRow(1, 23, "")}, mark, false)
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
