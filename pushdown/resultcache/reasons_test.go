package resultcache

import (
	"fmt"
	"testing"

	"downpour/pushdown/process/logtest"
)

// Each reason why answers are not cached is logged once, and not more than some, because they may name
// regions.
func TestCache_logOnce(t *testing.T) {
	var log logtest.Log
	c := New(1<<20, log.Logger())
	for i := range 3 * maxLogged {
		for range 3 {
			c.logOnce(fmt.Sprintf("reason %d.", i))
		}
		if n := len(log.Lines(fmt.Sprintf("reason %d.", i))); n > 1 || (n == 1) != (i < maxLogged) {
			t.Errorf("reason %d is logged %d times", i, n)
		}
	}
	if n := len(c.logged); n > maxLogged {
		t.Errorf("%d reasons are remembered, want at most %d", n, maxLogged)
	}
}

// Cells have the time of their data if at least half of them have: a single one may by chance.
func TestTimestampReader_areDataTime(t *testing.T) {
	for _, c := range []struct {
		equal, cells int64
		want         bool
	}{{0, 0, false}, {0, 3, false}, {1, 1, true}, {1, 2, true}, {1, 3, false}, {3, 7, false}, {50, 100, true},
		{49, 100, false}, {100, 100, true}} {
		var r timestampReader
		r.equal.Store(c.equal)
		r.cells.Store(c.cells)
		if got := r.areDataTime(); got != c.want {
			t.Errorf("%d of %d cells: %t, want %t", c.equal, c.cells, got, c.want)
		}
	}
}
