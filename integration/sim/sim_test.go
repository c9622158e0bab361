package sim

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"downpour/encoding/seedtest"
)

var (
	seeds = flag.Int("seeds", 8, "how many worlds live, each with a seed of its own from TEST_SEED on")
	lives = flag.Duration("lives", 4*time.Minute, "how long each lives, in simulated time; the slow ones live 200 times longer")
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

// Whatever fails, nothing acknowledged is lost, nothing comes from nowhere, and no answer is short.
func TestSim(t *testing.T) {
	first := seedtest.Of(t)
	var all Counts
	for seed := first; seed < first+uint64(*seeds); seed++ {
		began := time.Now()
		on, pace := kind(seed)
		var n Counts
		synctest.Test(t, func(t *testing.T) { n = Run(t, seed, on, pace, *lives*pace.slowness) })
		t.Logf("seed %d: %+v in %v", seed, n, time.Since(began).Round(time.Millisecond))
		if t.Failed() {
			return
		}
		all.Points, all.News, all.Queries = all.Points+n.Points, all.News+n.News, all.Queries+n.Queries-n.QueriesRefused
	}
	if least := 20 * *seeds; all.Points < least || all.News < least || all.Queries < least {
		t.Errorf("%d points acknowledged, %d queries answered, %d messages of live queries; want %d of each at least", all.Points, all.Queries, all.News, least)
	}
}
