package uiduse_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/extra/tools/uiduse"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/metadata/wholetable"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A set has the numbers that were added and no others, of any width, and counts its memory.
func TestSet(t *testing.T) {
	r := seedtest.Rand(t)
	for width := 1; width <= 8; width++ {
		draw := func() []byte {
			n := r.Uint64()
			if r.IntN(2) == 0 { // near others
				n %= 3000
			}
			return binary.BigEndian.AppendUint64(nil, n)[8-width:]
		}
		set, want := uiduse.Set{Budget: &wholetable.Budget{Most: 1 << 20}}, map[string]bool{}
		for range 2000 {
			u := draw()
			if err := set.Add(u); err != nil {
				t.Fatal(err)
			}
			want[string(u)] = true
		}
		for u := range want {
			if !set.Has([]byte(u)) {
				t.Errorf("width %d: %x is missing", width, u)
			}
		}
		for range 2000 {
			if u := draw(); set.Has(u) != want[string(u)] {
				t.Errorf("width %d: has %x: %t", width, u, !want[string(u)])
			}
		}
	}

	dense := uiduse.Set{Budget: &wholetable.Budget{Most: 5 << 20}}
	for n := range uint32(1 << 24) {
		if err := dense.Add(binary.BigEndian.AppendUint32(nil, n)[1:]); err != nil {
			t.Fatalf("number %d: %v, want 16 million in 5 MiB", n, err)
		}
	}
	sparse := uiduse.Set{Budget: &wholetable.Budget{Most: 1 << 10}}
	var err error
	for n := uint64(0); n < 10_000_000 && err == nil; n += 100_000 {
		err = sparse.Add(binary.BigEndian.AppendUint64(nil, n))
	}
	if !errors.Is(err, wholetable.ErrMuch) {
		t.Errorf("a hundred pages in 1 KiB: got %v, want that it is too much", err)
	}
}

// Find returns a row of each wanted UID that rows have, by whichever way it looks for them, and Each all UIDs of rows:
// on both stores, salted, with keys that are of no series, and in tables of rollups, one of them missing. Such
// a key is an error of Each.
//
//fault:uid-reclaim-passes-over-keys err != nil => false
func TestTables(t *testing.T) {
	schema := encoding.DefaultSchema()
	schema.SaltWidth, schema.SaltBuckets = 1, 3
	specs := append(tablestest.Specs(schema), opentest.Table("r1h", "t"))
	opentest.Both(t, specs, func(t *testing.T, st store.Store) {
		u := func(n int) encoding.UID { return encoding.UID{0, byte(n >> 8), byte(n)} }
		series := func(n int) []byte { // metric n, tag n+1000=n+2000
			tags := schema.AppendTags(nil, []encoding.TagPair{{K: u(n + 1000), V: u(n + 2000)}})
			return schema.AppendRowKey(nil, u(n), 1356998400, tags)
		}
		put := func(table string, key []byte) {
			m := store.Mutation{Row: key, Family: "t", Qualifier: []byte{0, 0}, Value: []byte{1}}
			if err := st.Apply(t.Context(), table, []store.Mutation{m}); err != nil {
				t.Fatal(err)
			}
		}
		rows := map[int]uiduse.Row{}
		for n := range 200 {
			table := []string{"tsdb", "r1h"}[n%2]
			if n%3 == 0 {
				rows[n] = uiduse.Row{Table: table, Key: series(n)}
				put(table, rows[n].Key)
			}
		}
		odd := append(series(6)[:5:5], 0) // of no series, before the rows of a metric
		put("tsdb", odd)

		tables := uiduse.Tables{Store: st, Schema: schema, Names: []string{"tsdb", "none", "r1h"}}
		for _, step := range []int{1, 7, 50} { // 200 metrics, a few, and fewer
			for name, kinds := range map[string][]int{"metrics": {0}, "tag keys": {1}, "all": {0, 1, 2}} {
				wanted, want := map[uiduse.Key]bool{}, map[uiduse.Key]uiduse.Row{}
				for n := 3; n < 200; n += step {
					for _, kind := range kinds {
						k := uiduse.Key{Kind: encoding.UIDKind(kind), UID: string(u(n + kind*1000))}
						wanted[k] = true
						if row, ok := rows[n]; ok {
							want[k] = row
						}
					}
				}
				got, err := tables.Find(t.Context(), wanted)
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("%s, each %dth: %v, -want +got:\n%s", name, step, err, diff)
				}
			}
		}
		one := uiduse.Key{Kind: encoding.UIDTagK, UID: string(u(1006))}
		if got, err := tables.Find(t.Context(), map[uiduse.Key]bool{one: true}); err != nil ||
			cmp.Diff(map[uiduse.Key]uiduse.Row{one: rows[6]}, got) != "" {
			t.Errorf("one tag key: %v, %v", got, err)
		}

		if err := tables.Each(t.Context(), func(encoding.UIDKind, []byte) error { return nil }); err == nil {
			t.Error("a key of no series: got no error")
		}
		m := store.Mutation{Kind: store.DeleteRow, Row: odd, Family: "t"}
		if err := st.Apply(t.Context(), "tsdb", []store.Mutation{m}); err != nil {
			t.Fatal(err)
		}
		want, got := map[string]bool{}, map[string]bool{}
		for n := range rows {
			for kind := range 3 {
				want[fmt.Sprint(kind, u(n+kind*1000))] = true
			}
		}
		err := tables.Each(t.Context(), func(kind encoding.UIDKind, u []byte) error {
			got[fmt.Sprint(int(kind), encoding.UID(u))] = true
			return nil
		})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}
		tables.Names[0] = "none"
		if _, err := tables.Find(t.Context(), map[uiduse.Key]bool{one: true}); !errors.Is(err, store.ErrNoTable) {
			t.Errorf("without the data table: got %v, want that there is no such table", err)
		}
	})
}
