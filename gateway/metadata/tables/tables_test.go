package tables

import (
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

var names = Names{Data: "tsdb", UID: "tsdb-uid", Meta: "tsdb-meta", Tree: "tsdb-tree"}

func TestCreate(t *testing.T) {
	s := opentest.Embedded(t)
	if err := Check(t.Context(), s, names); err == nil || !strings.Contains(err.Error(), "tsdb") {
		t.Errorf("without tables: %v, want it to name one", err)
	}
	specs := Specs(names, encoding.DefaultSchema(), "NONE")
	for range 2 { // the second time nothing is missing
		if err := Create(t.Context(), s, specs); err != nil {
			t.Fatal(err)
		}
	}
	if err := Check(t.Context(), s, names); err != nil {
		t.Error(err)
	}
}

func TestSpecs_splits(t *testing.T) {
	schema := encoding.DefaultSchema()
	if got := Specs(names, schema, "NONE")[1].Splits; len(got) != 0 {
		t.Errorf("unsalted: %d splits, want none", len(got))
	}
	schema.SaltWidth, schema.SaltBuckets = 1, 4
	got := Specs(names, schema, "NONE")[1].Splits
	if len(got) != 3 || got[0][0] != 1 || got[2][0] != 3 {
		t.Errorf("4 buckets: splits %x, want 01 02 03", got)
	}
}

// CheckLayout accepts rows under the layout that they were written in, and no other.
func TestCheckLayout(t *testing.T) {
	wide := encoding.Schema{SaltWidth: 1, SaltBuckets: 4, MetricWidth: 4, TagKWidth: 2, TagVWidth: 4, MaxTags: 8}
	salted := encoding.DefaultSchema()
	salted.SaltWidth = 1
	buckets := salted
	buckets.SaltBuckets = 7
	schemas := []encoding.Schema{encoding.DefaultSchema(), salted, buckets, wide}
	for i, written := range schemas {
		s := opentest.Embedded(t)
		if err := Create(t.Context(), s, Specs(names, written, "NONE")); err != nil {
			t.Fatal(err)
		}
		if err := CheckLayout(t.Context(), s, "tsdb", written); err != nil {
			t.Errorf("empty table: got %v, want no error", err)
		}
		var rows []store.Mutation
		for n := range uint64(30) {
			m, _ := encoding.AppendUID(nil, 1, written.MetricWidth)
			k, _ := encoding.AppendUID(nil, 1, written.TagKWidth)
			v, _ := encoding.AppendUID(nil, n+1, written.TagVWidth)
			tags := written.AppendTags(nil, []encoding.TagPair{{K: k, V: v}})
			rows = append(rows, store.Mutation{
				Row:       written.AppendRowKey(nil, m, 1356998400, tags),
				Family:    "t",
				Qualifier: []byte{0, 0},
				Value:     []byte{1},
			})
		}
		if err := s.Apply(t.Context(), "tsdb", rows); err != nil {
			t.Fatal(err)
		}
		for j, read := range schemas {
			if err := CheckLayout(t.Context(), s, "tsdb", read); (err == nil) != (i == j) {
				t.Errorf("written in layout %d, read in %d: %v, want an error unless they are equal", i, j, err)
			}
		}
	}
}

// Rows under another salt than their series' are accepted, as they are left after the number of
// salt buckets was raised, unless they are most of the rows or lie in a bucket that the schema
// does not have.
func TestCheckLayout_foreignSalts(t *testing.T) {
	schema := encoding.DefaultSchema()
	schema.SaltWidth, schema.SaltBuckets = 1, 4
	f := func(foreign int, salt func(own byte) byte, ok bool) {
		t.Helper()
		s := opentest.Embedded(t)
		if err := Create(t.Context(), s, Specs(names, schema, "NONE")); err != nil {
			t.Fatal(err)
		}
		var rows []store.Mutation
		for n := range 10 {
			tags := []encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, byte(n + 1)}}}
			key := schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, 1356998400, schema.AppendTags(nil, tags))
			if n < foreign {
				key[0] = salt(key[0])
			}
			rows = append(rows, store.Mutation{Row: key, Family: "t", Qualifier: []byte{0, 0}, Value: []byte{1}})
		}
		if err := s.Apply(t.Context(), "tsdb", rows); err != nil {
			t.Fatal(err)
		}
		if err := CheckLayout(t.Context(), s, "tsdb", schema); (err == nil) != ok {
			t.Errorf("%d of 10 rows under another salt: error %v, want them taken: %t", foreign, err, ok)
		}
	}
	next := func(own byte) byte { return (own + 1) % 4 }
	f(1, next, true)
	f(5, next, true)
	f(6, next, false)
	f(1, func(byte) byte { return 4 }, false)
}
