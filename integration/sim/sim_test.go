package sim

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding/seedtest"
)

var (
	seeds = flag.Int("seeds", 48, "how many worlds live, each with a seed of its own from TEST_SEED on")
	lasts = flag.Duration("for", 0, "begin no other world after this time, 0 for no limit")
	lives = flag.Duration("lives", 3*time.Minute+30*time.Second,
		"how long each lives, in simulated time; the slow ones live 200 times longer")
)

// kind returns what a seed's world stores points in, and how it passes its time.
func kind(seed uint64) (on func(*World) ground, pace tempo) {
	switch seed % 16 {
	case 8:
		return onDisk, minutes
	case 4, 6:
		return onDisk, hours
	case 0:
		return onCluster, hours
	}
	return onCluster, minutes
}

// slowestFirst returns n seeds from the first on, of each 48 the slowest first: half a day of a
// cluster takes ten times as long as other worlds, and would run alone at the end.
func slowestFirst(first uint64, n int) (all []uint64) {
	isFast := func(seed uint64) int { return min(1, int(seed%16)) }
	for seed := first; seed < first+uint64(n); seed++ {
		all = append(all, seed)
	}
	for some := range slices.Chunk(all, 48) {
		slices.SortStableFunc(some, func(a, b uint64) int { return cmp.Compare(isFast(a), isFast(b)) })
	}
	return all
}

// Whatever fails, nothing acknowledged is lost, nothing comes from nowhere, and no answer is short.
func TestSim(t *testing.T) {
	first := seedtest.Of(t)
	start := time.Now()
	var mu sync.Mutex
	var all Counts
	worlds, outer := 0, t
	t.Run("worlds", func(t *testing.T) {
		for _, seed := range slowestFirst(first, *seeds) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				if *lasts > 0 && time.Since(start) > *lasts || failFast() && outer.Failed() {
					return
				}
				began := time.Now()
				on, pace := kind(seed)
				var n Counts
				synctest.Test(t, func(t *testing.T) { n = Run(t, seed, on, pace, *lives*pace.slowness) })
				t.Logf("seed %d: %+v in %v", seed, n, time.Since(began).Round(time.Millisecond))
				mu.Lock()
				defer mu.Unlock()
				all.add(n)
				worlds++
			})
		}
	})
	t.Logf("%d worlds: %+v", worlds, all)
	t.Logf("counted: worlds=%d operations=%d faults=%d checks=%d busy-hours=%.1f sealed=%d",
		worlds, all.operations(), sum(all.Faults), sum(all.Checks), all.Busy.Hours(), all.Sealed)
	for _, kind := range mustRun() {
		if worlds >= 48 && all.Faults[kind] == 0 {
			t.Errorf("no world of %d had the fault %q", worlds, kind)
		}
	}
	least := 20 * worlds
	if worlds == 0 || all.Points < least || all.News < least || all.Queries-all.QueriesRefused < least {
		t.Errorf("%+v; want %d points, answers and messages of live queries at least", all, least)
	}
}

// failFast reports whether the first failure ends the test, by Go's flag -failfast, which does not end tests that wait
// to run in parallel.
func failFast() bool { return flag.Lookup("test.failfast").Value.String() == "true" }
