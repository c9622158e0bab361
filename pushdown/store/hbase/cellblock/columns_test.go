package cellblock

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// A column set, which decides by the first byte of a qualifier where it can, drops exactly what is
// not in its ranges.
func TestColumnSet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	draw := func(least, most int) []byte {
		b := make([]byte, least+rnd.IntN(most-least+1))
		for i := range b {
			b[i] = "\x00\x01\x02c\xfe\xff"[rnd.IntN(6)]
		}
		return b
	}
	for range 20_000 {
		r := store.KeyRange{Start: draw(0, 2), Stop: draw(0, 2)}
		if rnd.IntN(2) == 0 && len(r.Start) > 0 {
			r.Stop = encoding.PrefixEnd(r.Start)
		}
		if len(r.Stop) > 0 && bytes.Compare(r.Start, r.Stop) >= 0 {
			continue
		}
		set, q := NewColumnSet([]store.KeyRange{r}), draw(0, 3)
		if set.drops(q, 1) == r.Contains(q) {
			t.Fatalf("range [%x, %x), qualifier %x: dropped %t, want it kept: %t", r.Start, r.Stop, q, set.dropped > 0,
				r.Contains(q))
		}
	}
}

// BenchmarkColumnSet looks the qualifiers of a sum and a count up in a column set, where their
// first byte decides, and, for comparison, in the list of its ranges.
func BenchmarkColumnSet(b *testing.B) {
	var ranges []store.KeyRange
	for _, r := range [][2]string{{"\x00", "\x01"}, {"\x01", "\x02"}, {"count:", "count;"}, {"sum:", "sum;"}} {
		ranges = append(ranges, store.KeyRange{Start: []byte(r[0]), Stop: []byte(r[1])})
	}
	set, qualifiers := NewColumnSet(ranges), [][]byte{{0, 0, 0x10}, {1, 0, 0x10}}

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
