package pebble

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"downpour/pushdown/store"
)

// hour is a row key: metric, base time, one tag pair.
func hourRow(metric byte, hour uint32, tags string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0, 0, metric}, 1356998400+3600*hour), tags...)
}

func (s *Store) mustMark(t *testing.T, r store.KeyRange) string {
	t.Helper()
	mark, err := s.Version(t.Context(), "t", "t", r)
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

func openMarked(t *testing.T) *Store {
	s := openMem(t, Options{})
	if err := s.CreateTable(t.Context(), store.TableSpec{Name: "t", Families: []store.FamilySpec{{Name: "t"}}}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Store) write(t *testing.T, row []byte) {
	t.Helper()
	if err := s.Apply(t.Context(), "t", []store.Mutation{{Row: row, Family: "t", Qualifier: []byte("q"), Value: []byte("v")}}); err != nil {
		t.Fatal(err)
	}
}

// Writes to other hours and metrics leave a mark as it is; those at the borders
// of the range do not.
func TestMark_byHour(t *testing.T) {
	s := openMarked(t)
	r := store.KeyRange{Start: hourRow(1, 2, ""), Stop: hourRow(1, 4, "")}
	s.mustMark(t, r) // counting begins
	f := func(row []byte, want bool) {
		t.Helper()
		before := s.mustMark(t, r)
		s.write(t, row)
		if changed := s.mustMark(t, r) != before; changed != want || before == "" {
			t.Errorf("row %x: mark %q changed %v, want %v", row, before, changed, want)
		}
	}
	f(hourRow(1, 1, "aaaaaa"), false)
	f(hourRow(1, 2, "aaaaaa"), true)
	f(hourRow(1, 2, ""), true)
	f(hourRow(1, 3, "\xff\xff\xff\xff\xff\xff"), true)
	f(hourRow(1, 4, ""), false)
	f(hourRow(1, 4, "aaaaaa"), false)
	f(hourRow(2, 3, "aaaaaa"), false)
	f([]byte{0, 0, 1, 0x50}, true) // too short for an hour: counts for all
	s2 := openMarked(t)
	s2.mustMark(t, r)
	if s2.mustMark(t, r) == s.mustMark(t, r) {
		t.Error("two stores have one mark")
	}
}

// While a batch becomes visible there is no mark of its hours, and there is one
// of the others.
func TestMark_underWay(t *testing.T) {
	s := openMarked(t)
	here := store.KeyRange{Start: hourRow(1, 0, ""), Stop: hourRow(1, 1, "")}
	there := store.KeyRange{Start: hourRow(1, 1, ""), Stop: hourRow(1, 2, "")}
	before := s.mustMark(t, here)
	b := s.newBatch(0)
	b.put("t", hourRow(1, 0, "aaaaaa"), "t", []byte("q"), 1, nil)
	end := s.changes.begin(b.Batch)
	if mark := s.mustMark(t, here); mark != "" {
		t.Errorf("mark %q while a batch is under way", mark)
	}
	if s.mustMark(t, there) == "" || s.mustMark(t, store.KeyRange{}) != "" {
		t.Error("the wrong ranges have no mark")
	}
	end()
	if after := s.mustMark(t, here); after == "" || after == before {
		t.Errorf("mark %q after the batch, %q before", after, before)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// Marks of one range are equal only if nothing in it was written between.
func TestMark_model(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := openMarked(t)
	r := store.KeyRange{Start: hourRow(1, 10, ""), Stop: hourRow(1, 13, "")}
	s.mustMark(t, r)
	equal := 0
	for range 200 {
		before, in := s.mustMark(t, r), false
		var batch []store.Mutation
		for range 1 + rng.IntN(3) {
			hour := uint32(rng.IntN(30))
			in = in || hour >= 10 && hour < 13
			batch = append(batch, store.Mutation{Row: hourRow(1, hour, "aaaaaa"), Family: "t", Qualifier: []byte("q")})
		}
		if err := s.Apply(t.Context(), "t", batch); err != nil {
			t.Fatal(err)
		}
		same := s.mustMark(t, r) == before
		if same == in {
			t.Fatalf("a change in the range %v, and the mark %q stays %v", in, before, same)
		}
		if same {
			equal++
		}
	}
	if equal == 0 {
		t.Error("no mark stayed: nothing was tried")
	}
}

// What is forgotten counts as changed, each time anew.
func TestMark_forgets(t *testing.T) {
	s := openMarked(t)
	r := store.KeyRange{Start: hourRow(1, 10, ""), Stop: hourRow(1, 13, "")}
	seen := map[string]bool{s.mustMark(t, r): true}
	for range 3 {
		batch := []store.Mutation{{Row: hourRow(1, 11, "aaaaaa"), Family: "t", Qualifier: []byte("q")}}
		for i := range uint32(mostGroups) {
			batch = append(batch, store.Mutation{Row: hourRow(2, i, ""), Family: "t", Qualifier: []byte("q")})
		}
		if err := s.Apply(t.Context(), "t", batch); err != nil {
			t.Fatal(err)
		}
		if n := len(s.changes.groups); n > mostGroups {
			t.Errorf("%d groups are remembered, want at most %d", n, mostGroups)
		}
		mark := s.mustMark(t, r)
		if seen[mark] {
			t.Errorf("mark %q came back", mark)
		}
		seen[mark] = true
	}
}
