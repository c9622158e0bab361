//go:build !race

// The race detector empties pools at random and switches pebble's own checks on,
// which allocate; make test runs this file once without it.

package pebble

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"downpour/pushdown/store"
)

// A scan allocates for each block and not for each row. It joins appends without an allocation for
// each.
func TestScanAllocations(t *testing.T) {
	for _, c := range []struct {
		kind  store.MutationKind
		most  float64
		cells int
	}{{store.Put, 100, 1000}, {store.Append, 2000, 10_000}} {
		s := openMem(t, Options{IdleFlush: -1})
		create(t, s)
		var ms []store.Mutation
		for i := range c.cells {
			ms = append(ms, cell(c.kind, fmt.Sprintf("row%05d", i%1000), "q", strings.Repeat("v", 300)))
		}
		apply(t, s, ms...)
		n := testing.AllocsPerRun(5, func() {
			sc, err := s.Scan(context.Background(), store.Scan{Table: "tsdb", BlockBytes: 64 << 10})
			if err != nil {
				t.Fatal(err)
			}
			defer sc.Close()
			for err == nil {
				_, err = sc.Next()
			}
		})
		if n > c.most {
			t.Errorf("kind %d: %v allocations for 1,000 rows of %d cells written, want at most %v",
				c.kind, n, c.cells, c.most)
		}
	}
}
