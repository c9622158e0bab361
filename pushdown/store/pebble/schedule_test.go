package pebble

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
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
