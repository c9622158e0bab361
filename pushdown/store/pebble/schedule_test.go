package pebble

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
)

// compactable is a database in which a compaction always waits.
type compactable struct{ began int }

func (c *compactable) GetAllowedWithoutPermission() int { return 1 }

func (c *compactable) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	return true, pebble.WaitingCompaction{}
}

func (c *compactable) Schedule(pebble.CompactionGrantHandle) bool {
	c.began++
	return true
}

// Compactions wait for the flushes that follow each other, and begin after the last one, or after
// mostFlushes.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &compactable{}
		s := newSchedule(time.Second)
		s.Register(2, db)
		levelZero := &pebble.CompactionInfo{Input: []pebble.LevelInfo{{Level: 0, Tables: make([]pebble.TableInfo, 1)}}}
		expect := func(what string, began int) {
			t.Helper()
			synctest.Wait()
			if db.began != began {
				t.Errorf("%s: %d compactions have begun, want %d", what, db.began, began)
			}
		}
		flush := func() {
			s.flushEnded()
			if ok, _ := s.TrySchedule(); ok { // as pebble does after a flush
				db.began++
			}
		}

		time.Sleep(2 * time.Hour)
		expect("nothing was flushed", 0)
		flush()
		time.Sleep(900 * time.Millisecond)
		flush()
		time.Sleep(900 * time.Millisecond)
		expect("a second has not passed", 0)
		time.Sleep(100 * time.Millisecond)
		expect("a second has passed", 1)
		s.compactionBegins(levelZero)
		expect("only one may run", 1)

		for range mostFlushes {
			flush()
		}
		s.compactionBegins(&pebble.CompactionInfo{Input: []pebble.LevelInfo{{Level: 1}}}) // of none of these flushes
		expect("only one may run", 1)
		s.Done()
		expect("many flushes wait", 2)
		s.compactionBegins(levelZero)
		s.Done()
		expect("none waits", 2)
		time.Sleep(time.Second)
		expect("what pebble finds afterwards", 3)

		s.Unregister()
		s.Done()
		time.Sleep(time.Minute)
		expect("after the end", 3)
	})
}

// Without patience the first compaction need not wait for a flush.
func TestSchedule_noPatience(t *testing.T) {
	s := newSchedule(-3)
	s.Register(2, &compactable{})
	for _, want := range []bool{true, false} {
		if ok, _ := s.TrySchedule(); ok != want {
			t.Errorf("a compaction is granted: %t, want %t: one may run", ok, want)
		}
	}
}

// asked is a database that answers slowly whether a compaction waits: none does.
type asked struct {
	compactable
	calls, inside atomic.Int64
	answer        chan struct{}
}

func (a *asked) GetAllowedWithoutPermission() int { return 2 }

func (a *asked) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	a.calls.Add(1)
	a.inside.Add(1)
	<-a.answer
	a.inside.Add(-1)
	return false, pebble.WaitingCompaction{}
}

// Two ends of compactions ask the database one after the other, and the end waits until none asks: afterwards the
// database is closed.
func TestSchedule_end(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &asked{answer: make(chan struct{})}
		s := newSchedule(-1)
		s.Register(2, db)
		for range 2 {
			go s.grant()
		}
		synctest.Wait()
		if n := db.inside.Load(); n != 1 {
			t.Errorf("%d ask at once, want 1", n)
		}
		go func() {
			s.Unregister()
			if n := db.inside.Load(); n != 0 {
				t.Errorf("at the end %d ask, want none", n)
			}
		}()
		synctest.Wait()
		close(db.answer)
		synctest.Wait()
		if n := db.calls.Load(); n != 1 || db.began != 0 {
			t.Errorf("the database was asked %d times, and %d compactions have begun, want one and none", n, db.began)
		}
	})
}

// A store compacts what was flushed after a while, in which no other flush has followed. Flushes before that compaction
// do not count for the next one.
func TestSchedule_ofStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open("data", Options{FS: vfs.NewMem(), IdleFlush: time.Second, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		create(t, s)
		before := int64(0)
		for range 2 {
			for n := range mostFlushes - 1 {
				apply(t, s, cell(store.Put, "row", "q", fmt.Sprint(n)))
				if err := s.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, more := range []bool{false, true} {
				synctest.Wait()
				n := s.db.Metrics().Compact.Count
				if (n > before) != more {
					t.Errorf("%d compactions after %d, want more: %t", n, before, more)
				}
				before = n
				time.Sleep(compactionPauses * time.Second)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
