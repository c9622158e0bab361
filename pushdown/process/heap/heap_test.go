package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

func TestPercent(t *testing.T) {
	for _, c := range []struct{ found, least, want int64 }{
		{8 << 20, 64 << 20, 800}, {64 << 20, 64 << 20, 100}, {1 << 30, 64 << 20, 100}, {0, 64 << 20, 1600},
		{1 << 20, 64 << 20, 1600},
	} {
		if got := percent(c.found, c.least); got != c.want {
			t.Errorf("%d bytes found: got %d percent, want %d", c.found, got, c.want)
		}
	}
}

// sink keeps the compiler from dropping allocations.
var sink []byte

// cycles returns the number of collections while so many MiB of garbage are allocated.
func cycles(mib int) uint64 {
	runtime.GC()
	count := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}}
	metrics.Read(count)
	before := count[0].Value.Uint64()
	for range mib {
		sink = make([]byte, 1<<20)
	}
	metrics.Read(count)
	return count[0].Value.Uint64() - before
}

// Pace makes Go collect a small heap once in 64 MiB of garbage instead of every few, until stop
// is called.
func TestPace(t *testing.T) {
	debug.SetGCPercent(defaultPercent)
	const mib = 512
	before := cycles(mib)
	stop := Pace(64<<20, "")
	paced := cycles(mib)
	stop()
	stop()
	after := cycles(mib)
	t.Logf("collections: %d as usual, %d paced, %d after", before, paced, after)
	const want = mib / 64
	if paced == 0 || paced > 3*want || before < 3*paced || after < 3*paced {
		t.Errorf(
			"collections: %d as usual, %d paced, %d after, want at most some %d paced and several times as many else",
			before, paced, after, want)
	}
}

// If GOGC is set, Pace leaves its percentage as it is.
func TestPace_notAgainstGOGC(t *testing.T) {
	old := debug.SetGCPercent(50)
	defer debug.SetGCPercent(old)
	Pace(64<<20, "50")()
	if got := debug.SetGCPercent(50); got != 50 {
		t.Errorf("percentage is %d, want 50 as it was", got)
	}
}

// The percentage follows the live data that a collection finds: if they are more than the pace,
// it is Go's default again.
func TestPace_followsLiveData(t *testing.T) {
	debug.SetGCPercent(defaultPercent)
	stop := Pace(16<<20, "")
	defer stop()
	held := make([]byte, 64<<20)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); { // until the cleanup has run
		runtime.GC()
		runtime.Gosched()
		if got := debug.SetGCPercent(defaultPercent); got == defaultPercent {
			runtime.KeepAlive(held)
			return
		} else {
			debug.SetGCPercent(got)
		}
	}
	t.Error("the percentage does not come down")
}

// A server gives garbage back once it is quiet, and only if there is enough of it: not while it is
// busy, not twice for the same garbage, not for little.
func TestPacer_givesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, freed := &pacer{least: 64 << 20, ended: make(chan struct{})}, 0
		go p.giveBack(func() { freed++ })
		synctest.Wait()
		allocate := func(mib int) {
			for range mib {
				sink = make([]byte, 1<<20)
			}
		}
		after := func(ticks, want int, what string) {
			t.Helper()
			time.Sleep(time.Duration(ticks) * quiet)
			synctest.Wait()
			if freed != want {
				t.Errorf("%s: freed %d times, want %d", what, freed, want)
			}
		}
		for range 10 {
			allocate(8)
			after(1, 0, "busy")
		}
		after(1, 1, "quiet after 80 MiB")
		after(10, 1, "nothing since")
		allocate(10)
		after(10, 1, "quiet after 10 MiB")
		allocate(10)
		after(2, 2, "quiet after 20 MiB")
		allocate(80)
		close(p.ended)
		after(10, 2, "ended")
	})
}
