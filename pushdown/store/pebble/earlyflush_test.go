package pebble

import (
	"testing"
	"testing/synctest"
	"time"
)

// A memtable that holds enough is flushed when writing has paused; with many repeated appends at once, and only once.
// What the one before it held does not count.
func TestEarlyFlush(t *testing.T) {
	f := func(what string, pause time.Duration, do func(f *earlyFlush), want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			flushes := 0
			f := newEarlyFlush(pause, func() { flushes++ })
			do(f)
			time.Sleep(2 * time.Hour) // simulated by synctest
			synctest.Wait()
			if flushes != want {
				t.Errorf("%s: got %d flushes, want %d", what, flushes, want)
			}
		})
	}
	wrote := func(batches ...batch) func(*earlyFlush) {
		return func(f *earlyFlush) {
			for _, b := range batches {
				f.wrote(&b)
			}
		}
	}
	f("nothing", time.Second, wrote(), 0)
	f("appends that are not many", time.Second, wrote(batch{appended: idleAppends - 1}), 0)
	f("many appends", time.Second, wrote(batch{appended: idleAppends - 1}, batch{appended: 1}), 1)
	f("bytes that are not many", time.Second, wrote(batch{bytes: idleBytes - 1}), 0)
	f("many bytes", time.Second, wrote(batch{bytes: idleBytes - 1}, batch{bytes: 1}), 1)
	f("many of both, without a pause", -1, wrote(batch{appended: idleAppends, bytes: idleBytes}), 0)
	f("many of both, then the end", time.Second, func(f *earlyFlush) {
		wrote(batch{appended: idleAppends, bytes: idleBytes})(f)
		f.stop()
	}, 0)
	almost := batch{appended: idleAppends - 1, bytes: idleBytes - 1, repeats: mostRepeats - 1}
	f("almost many of all, in each of two memtables", time.Second, func(f *earlyFlush) {
		wrote(almost)(f)
		f.rotated()
		wrote(almost)(f)
	}, 0)
	f("writing goes on", time.Second, func(f *earlyFlush) {
		for range 10 {
			wrote(batch{bytes: idleBytes})(f)
			time.Sleep(900 * time.Millisecond)
		}
	}, 1)
	f("many repeats, without a pause", -1, func(f *earlyFlush) {
		wrote(batch{repeats: mostRepeats - 1}, batch{repeats: 1})(f)
		synctest.Wait()
		wrote(batch{repeats: 1, appended: idleAppends, bytes: idleBytes})(f)
	}, 1)
	f("many repeats, long before the pause", 3*time.Hour, wrote(batch{repeats: mostRepeats}), 1)
}

// A row is new until it has been added, and again after a new memtable.
func TestRowSketch(t *testing.T) {
	f := newEarlyFlush(-1, func() {})
	for range 2 {
		for _, known := range []bool{false, true} {
			if got := f.rows.add([]byte("row")); got != known {
				t.Errorf("known: got %t, want %t", got, known)
			}
		}
		f.rotated()
	}
}
