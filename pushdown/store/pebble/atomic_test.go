package pebble

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// Many cells at once are read and written as they are one by one, wherever the store has them:
// those that exist, were removed, or lie before, between and behind all others.
func TestAtomic_many(t *testing.T) {
	seed := seedtest.Of(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	s := openMem(t, Options{MemTableBytes: 64 << 10, IdleFlush: -1})
	create(t, s)
	apply(t, s, cell(store.Append, "zz", "q", "v")) // behind all counters

	counters := map[string]int64{}
	for round := range 400 {
		var cells []store.CellKey
		var deltas []int64
		for _, n := range rnd.Perm(300)[:rnd.IntN(40)] {
			// Rows of several lengths, two qualifiers in a row.
			row := fmt.Sprintf("%0*d", 1+n%4, n/2)
			cells = append(cells, store.CellKey{Row: []byte(row), Family: "t", Qualifier: []byte{byte('a' + n%2)}})
			deltas = append(deltas, rnd.Int64N(100)-50)
		}
		name := func(i int) string { return fmt.Sprintf("%s/%s", cells[i].Row, cells[i].Qualifier) }
		switch round % 5 {
		case 0, 1:
			sums, err := s.IncrementAll(t.Context(), "tsdb", cells, deltas)
			if err != nil {
				t.Fatal(err)
			}
			for i := range cells {
				if counters[name(i)] += deltas[i]; sums[i] != counters[name(i)] {
					t.Fatalf("round %d: %s is %d, want %d", round, name(i), sums[i], counters[name(i)])
				}
			}
		case 2, 3:
			values := slices.Repeat([][]byte{{0, 0, 0, 0, 0, 0, 0, 7}}, len(cells))
			wrote, err := s.PutAbsent(t.Context(), "tsdb", cells, values)
			if err != nil {
				t.Fatal(err)
			}
			for i := range cells {
				if _, there := counters[name(i)]; there == wrote[i] {
					t.Fatalf("round %d: %s was there: %t, and written: %t", round, name(i), there, wrote[i])
				} else if !there {
					counters[name(i)] = 7
				}
			}
		default:
			for i, c := range cells {
				apply(t, s,
					store.Mutation{Kind: store.DeleteCell, Row: c.Row, Family: c.Family, Qualifier: c.Qualifier})
				delete(counters, name(i))
			}
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A counter that is none is named, wherever it is among others, and none of them is counted.
func TestAtomic_noCounter(t *testing.T) {
	s := openMem(t, Options{})
	create(t, s)
	const n = 3 * maxAlone
	var cells []store.CellKey
	var between []store.Mutation
	for i := range n {
		row := fmt.Sprintf("%02d", i)
		cells = append(cells, store.CellKey{Row: []byte(row), Family: "t", Qualifier: []byte("q")})
		between = append(between, cell(store.Put, row+"b", "q", "v")) // so that all lie apart
	}
	apply(t, s, between...)
	for i := range n {
		row := string(cells[i].Row)
		apply(t, s, cell(store.Put, row, "q", "seven b"))
		for _, some := range [][]store.CellKey{cells, cells[i : i+1]} {
			_, err := s.IncrementAll(t.Context(), "tsdb", some, slices.Repeat([]int64{1}, len(some)))
			if want := fmt.Sprintf("row %x, t:71: counter has 7 bytes", row); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%d of %d: %v, want %s", i, len(some), err, want)
			}
		}
		apply(t, s, cell(store.DeleteCell, row, "q", ""))
	}
	if got := keysOf(t, s, "tsdb"); len(got) != n {
		t.Errorf("rows %q, want only those between", got)
	}
}

// New cells come in batches, of rows that lie apart or follow each other.
func BenchmarkPutAbsent(b *testing.B) {
	const at = 256
	for _, apart := range []bool{false, true} {
		b.Run(fmt.Sprintf("apart=%t", apart), func(b *testing.B) {
			s := openMem(b, Options{IdleFlush: -1})
			create(b, s)
			staged := s.Staged()
			n := uint32(0)
			b.ReportAllocs()
			for b.Loop() {
				cells, values := make([]store.CellKey, at), make([][]byte, at)
				for i := range cells {
					n++
					row := n
					if apart {
						row *= 2654435769 // any odd number makes each row once
					}
					cells[i] = store.CellKey{
						Row:       []byte{1, byte(row >> 24), byte(row >> 16), byte(row >> 8), byte(row)},
						Family:    "t",
						Qualifier: []byte("q"),
					}
					values[i] = []byte("value")
				}
				if _, err := staged.PutAbsent(b.Context(), "tsdb", cells, values); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/at, "ns/cell")
		})
	}
}

// Rows that do not exist, far apart among many that do, are answered by the bloom filters of the last
// level: no block is uncompressed for them.
func TestAtomic_absentByFilter(t *testing.T) {
	const rows, absent = 20_000, 200
	s := openMem(t, Options{})
	create(t, s)
	var all []store.Mutation
	for i := range rows {
		all = append(all, cell(store.Put, fmt.Sprintf("r%06d", 2*i), "q", "v"))
	}
	apply(t, s, all...)
	if err := s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, false); err != nil {
		t.Fatal(err)
	}

	var cells []store.CellKey
	var keys, values [][]byte
	for i := range absent {
		row := fmt.Appendf(nil, "r%06d", 2*i*(rows/absent)+1)
		cells = append(cells, store.CellKey{Row: row, Family: "t", Qualifier: []byte("q")})
		keys, values = append(keys, row), append(values, []byte("new"))
	}
	// One of 100 passes a filter by chance, and a few are sought without one, see maxAlone.
	const want = absent * 9 / 10
	filtered := func(what string, read func()) {
		t.Helper()
		before := s.db.Metrics().Filter.Hits
		read()
		if got := s.db.Metrics().Filter.Hits - before; got < want {
			t.Errorf("%s: filters answered for %d of %d rows, want %d", what, got, absent, want)
		}
	}
	filtered("get", func() {
		if got, err := s.Get(t.Context(), "tsdb", "t", keys); err != nil || len(got) != 0 {
			t.Fatalf("%d rows, error %v", len(got), err)
		}
	})
	filtered("put absent", func() {
		wrote, err := s.PutAbsent(t.Context(), "tsdb", cells, values)
		if err != nil || slices.Contains(wrote, false) {
			t.Fatalf("wrote %v, error %v", wrote, err)
		}
	})
}
