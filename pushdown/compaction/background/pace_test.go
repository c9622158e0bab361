package background

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"downpour/pushdown/compaction"
	"downpour/pushdown/process/pacer"
	"downpour/pushdown/store"
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

// slow is a store that takes a time for each call, and returns a row of so many versions.
type slow struct {
	store.Versioned
	takes    time.Duration
	versions int
	err      error
}

func (s *slow) Versions(context.Context, string, string, store.KeyRange, int) ([]store.VersionRow, []byte, error) {
	time.Sleep(s.takes)
	return []store.VersionRow{{Versions: make([]store.Version, s.versions)}}, nil, s.err
}

func (s *slow) ChangeIf(context.Context, string, string, []store.ConditionalChange) ([]bool, error) {
	time.Sleep(s.takes)
	return nil, s.err
}

// Work slows down when calls take longer than before for each version, or change, and not when they have more of them.
// Errors are passed on.
func TestTimed(t *testing.T) {
	for name, tc := range map[string]struct {
		write bool
		takes time.Duration
		units int
		slows bool
	}{
		"as before":          {false, 2 * time.Millisecond, 64, false},
		"many versions":      {false, 20 * time.Millisecond, 19 * 64, false},
		"slow reads":         {false, 20 * time.Millisecond, 64, true},
		"changes as before":  {true, 2 * time.Millisecond, 1, false},
		"many changes":       {true, 20 * time.Millisecond, 19, false},
		"slow changes":       {true, 20 * time.Millisecond, 1, true},
		"a change as before": {true, time.Millisecond, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &slow{err: store.ErrUnavailable}
			timed := timed{s, pacer.New(100, nil)}
			call := func(takes time.Duration, units int) {
				s.takes, s.versions = takes, units
				var err error
				if tc.write {
					_, err = timed.ChangeIf(t.Context(), "t", "t", make([]store.ConditionalChange, units))
				} else {
					_, _, err = timed.Versions(t.Context(), "t", "t", store.KeyRange{}, 1)
				}
				if !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%s: got %v", name, err)
				}
			}
			if tc.write {
				call(2*time.Millisecond, 1)
			} else {
				call(2*time.Millisecond, 64)
			}
			for range 10 {
				call(tc.takes, tc.units)
			}
			timed.pace.Done(1)
			if rate, _ := timed.pace.State(); (rate < 100) != tc.slows {
				t.Errorf("%s: the rate is %v of 100, want it lower: %t", name, rate, tc.slows)
			}
		})
	}
}
