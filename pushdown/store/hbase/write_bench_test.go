package hbase

import (
	"fmt"
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
					ms = append(ms,
						store.Mutation{
							Row:       fmt.Appendf(nil, "r%07d", r),
							Family:    "t",
							Qualifier: []byte{byte(q)},
							Value:     []byte("12345678"),
						})
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
