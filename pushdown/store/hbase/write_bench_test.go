package hbase

import (
	"fmt"
	"slices"
	"testing"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// BenchmarkApply writes 2,000 rows of one cell, or 200 rows of ten, to the fake
// on loopback, whose own work is in the figure.
func BenchmarkApply(b *testing.B) {
	for _, shape := range []struct{ rows, cells int }{{2000, 1}, {200, 10}} {
		b.Run(fmt.Sprintf("rows=%d/cells=%d", shape.rows, shape.cells), func(b *testing.B) {
			fake, err := hbasefake.Start(hbasefake.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer fake.Close()
			fake.CreateTable("t", []string{"t"}, []byte("r0001000"))
			st, err := Open(Config{Quorum: fake.Address()})
			if err != nil {
				b.Fatal(err)
			}
			defer st.Close()
			var ms []store.Mutation
			for r := range shape.rows {
				for q := range shape.cells {
					ms = append(ms, store.Mutation{Row: fmt.Appendf(nil, "r%07d", r), Family: "t", Qualifier: []byte{byte(q)}, Value: []byte("12345678")})
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := st.Apply(b.Context(), "t", ms); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(len(ms))/b.Elapsed().Seconds(), "cells/s")
		})
	}
}

// BenchmarkColumnSet looks the qualifiers of a sum and a count up in a column set, where their
// first byte decides, and, for comparison, in the list of its ranges.
func BenchmarkColumnSet(b *testing.B) {
	var ranges []store.KeyRange
	for _, r := range [][2]string{{"\x00", "\x01"}, {"\x01", "\x02"}, {"count:", "count;"}, {"sum:", "sum;"}} {
		ranges = append(ranges, store.KeyRange{Start: []byte(r[0]), Stop: []byte(r[1])})
	}
	set, qualifiers := newColumnSet(ranges), [][]byte{{0, 0, 0x10}, {1, 0, 0x10}}

	b.Run("first byte", func(b *testing.B) {
		for i := range b.N {
			if !set.contains(qualifiers[i%2]) {
				b.Fatal("not found")
			}
		}
	})
	b.Run("ranges", func(b *testing.B) {
		for i := range b.N {
			q := qualifiers[i%2]
			if !slices.ContainsFunc(ranges, func(r store.KeyRange) bool { return r.Contains(q) }) {
				b.Fatal("not found")
			}
		}
	})
}
