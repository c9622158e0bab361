package pebble

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// hourly groups rows as OpenTSDB's tables are grouped.
var hourly = encoding.DefaultSchema().RowHours()

// hourRow is a row key: metric, base time, one tag pair.
func hourRow(metric byte, hour uint32, tags string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0, 0, metric}, 1356998400+3600*hour), tags...)
}

func (s *Store) mustVersion(t *testing.T, r store.KeyRange) string {
	t.Helper()
	token, err := s.Version(t.Context(), "t", "t", r)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func openGrouped(t *testing.T) *Store {
	s := openMem(t, Options{Grouping: hourly})
	err := s.CreateTable(t.Context(), store.TableSpec{Name: "t", Families: []store.FamilySpec{{Name: "t"}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Store) write(t *testing.T, row []byte) {
	t.Helper()
	if err := s.Apply(t.Context(), "t",
		[]store.Mutation{{Row: row, Family: "t", Qualifier: []byte("q"), Value: []byte("v")}}); err != nil {
		t.Fatal(err)
	}
}

// Writes to other hours and metrics leave a version token as it is; those at the
// borders of the range do not.
func TestVersion_byHour(t *testing.T) {
	s := openGrouped(t)
	r := store.KeyRange{Start: hourRow(1, 2, ""), Stop: hourRow(1, 4, "")}
	s.mustVersion(t, r) // counting begins
	f := func(row []byte, want bool) {
		t.Helper()
		before := s.mustVersion(t, r)
		s.write(t, row)
		if changed := s.mustVersion(t, r) != before; changed != want || before == "" {
			t.Errorf("row %x: token %q changed %v, want %v", row, before, changed, want)
		}
	}
	f(hourRow(1, 1, "aaaaaa"), false)
	f(hourRow(1, 2, "aaaaaa"), true)
	f(hourRow(1, 2, ""), true)
	f(hourRow(1, 3, "\xff\xff\xff\xff\xff\xff"), true)
	f(hourRow(1, 4, ""), false)
	f(hourRow(1, 4, "aaaaaa"), false)
	f(hourRow(2, 3, "aaaaaa"), false)
	for n := 4; n < 7; n++ {
		f(hourRow(1, 9, "")[:n], true) // too short for an hour: counts for all
	}
	s2 := openGrouped(t)
	s2.mustVersion(t, r)
	if s2.mustVersion(t, r) == s.mustVersion(t, r) {
		t.Error("two stores have one token")
	}
}

// While a batch becomes visible there is no version token of its hours, and there is
// one of the others.
func TestVersion_inProgress(t *testing.T) {
	s := openGrouped(t)
	here := store.KeyRange{Start: hourRow(1, 0, ""), Stop: hourRow(1, 1, "")}
	there := store.KeyRange{Start: hourRow(1, 1, ""), Stop: hourRow(1, 2, "")}
	before := s.mustVersion(t, here)
	b := s.newBatch(0)
	b.put("t", hourRow(1, 0, "aaaaaa"), "t", []byte("q"), 1, nil)
	end := s.changes.begin(s.changes.groupNames(b.Batch))
	if token := s.mustVersion(t, here); token != "" {
		t.Errorf("token %q while a batch is in progress, want none", token)
	}
	if s.mustVersion(t, there) == "" || s.mustVersion(t, store.KeyRange{}) != "" {
		t.Error("want a token of the other hour, and none of the whole table")
	}
	s.changes.begin(s.changes.groupNames(b.Batch))()
	if token := s.mustVersion(t, here); token != "" {
		t.Errorf("token %q after the second of two batches, want none", token)
	}
	end()
	if after := s.mustVersion(t, here); after == "" || after == before {
		t.Errorf("token %q after the batch, want a token other than %q before", after, before)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// Version tokens of one range are equal only if nothing in it was written between.
func TestVersion_model(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := openGrouped(t)
	r := store.KeyRange{Start: hourRow(1, 10, ""), Stop: hourRow(1, 13, "")}
	s.mustVersion(t, r)
	equal := 0
	for range 200 {
		before, in := s.mustVersion(t, r), false
		var batch []store.Mutation
		for range 1 + rng.IntN(3) {
			hour := uint32(rng.IntN(30))
			in = in || hour >= 10 && hour < 13
			batch = append(batch, store.Mutation{Row: hourRow(1, hour, "aaaaaa"), Family: "t", Qualifier: []byte("q")})
		}
		if err := s.Apply(t.Context(), "t", batch); err != nil {
			t.Fatal(err)
		}
		same := s.mustVersion(t, r) == before
		if same == in {
			t.Fatalf("a change in the range: %v, but the token %q stays: %v", in, before, same)
		}
		if same {
			equal++
		}
	}
	if equal == 0 {
		t.Error("no token stayed: no write left it as it was")
	}
}

// If there are too many groups, some are dropped. Ranges over dropped groups count as changed,
// each time again.
func TestVersion_dropped(t *testing.T) {
	s := openGrouped(t)
	r := store.KeyRange{Start: hourRow(1, 10, ""), Stop: hourRow(1, 13, "")}
	seen := map[string]bool{s.mustVersion(t, r): true}
	for range 3 {
		batch := []store.Mutation{{Row: hourRow(1, 11, "aaaaaa"), Family: "t", Qualifier: []byte("q")}}
		for i := range uint32(maxGroups) {
			batch = append(batch, store.Mutation{Row: hourRow(2, i, ""), Family: "t", Qualifier: []byte("q")})
		}
		if err := s.Apply(t.Context(), "t", batch); err != nil {
			t.Fatal(err)
		}
		if n := len(s.changes.groups); n > maxGroups {
			t.Errorf("%d groups are kept, want at most %d", n, maxGroups)
		}
		token := s.mustVersion(t, r)
		if seen[token] {
			t.Errorf("token %q came back", token)
		}
		seen[token] = true
	}
}

// A store that knows nothing of its keys counts all changes for every range.
func TestVersion_ungrouped(t *testing.T) {
	s := openMem(t, Options{})
	create(t, s)
	r := store.KeyRange{Start: hourRow(1, 2, ""), Stop: hourRow(1, 4, "")}
	version := func() string {
		token, err := s.Version(t.Context(), "tsdb", "t", r)
		if err != nil || token == "" {
			t.Fatalf("token %q, %v", token, err)
		}
		return token
	}

	before := version()
	if again := version(); again != before {
		t.Errorf("tokens %q and %q, and nothing was written", before, again)
	}
	apply(t, s, cell(store.Put, "elsewhere", "q", "v"))
	if after := version(); after == before {
		t.Errorf("token %q after a write, want another than before", after)
	}
}
