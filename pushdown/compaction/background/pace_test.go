package background

import (
	"math"
	"testing"

	"downpour/pushdown/compaction"
)

// A page costs its call, 1 for each row that was compacted and a tenth for any other. A page of a low
// rate has few rows, at least one.
func TestCostOf(t *testing.T) {
	for _, c := range []struct {
		counts compaction.Counts
		want   float64
	}{
		{compaction.Counts{}, 1},
		{compaction.Counts{Rows: 64}, 7.4},
		{compaction.Counts{Rows: 64, Compacted: 64}, 65},
		{compaction.Counts{Rows: 20, Compacted: 10}, 12},
	} {
		if got := costOf(c.counts); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d rows, %d compacted, cost %v, want %v", c.counts.Rows, c.counts.Compacted, got, c.want)
		}
	}
	for rate, want := range map[float64]int{0.5: 1, 4: 1, 100: 25, 256: 64, 10_000: 64} {
		if got := pageRows(rate); got != want {
			t.Errorf("%d rows a page at %v a second, want %d", got, rate, want)
		}
	}
}
