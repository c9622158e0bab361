package pebble

import (
	"context"
	"sync/atomic"
	"time"
)

// idleAppends is how many unjoined appends a scan passes unnoticed (about a
// millisecond): fewer are not worth a flush.
const idleAppends = 4096

// idleFlush calls flush when writing has paused and many appends lie unjoined
// in the memtable.
type idleFlush struct {
	pause   time.Duration
	pending atomic.Int64 // appends since the memtable was new
	timer   *time.Timer
}

// newIdleFlush makes a flush that waits for wrote.
func newIdleFlush(pause time.Duration, flush func()) *idleFlush {
	f := &idleFlush{pause: pause, timer: time.AfterFunc(time.Hour, flush)}
	f.timer.Stop()
	return f
}

// wrote counts appends and begins the pause anew.
func (f *idleFlush) wrote(appended int) {
	if n := f.pending.Add(int64(appended)); n >= idleAppends && f.pause > 0 {
		f.timer.Reset(f.pause)
	}
}

// rotated tells that a new memtable has begun.
func (f *idleFlush) rotated() { f.pending.Store(0) }

// stop ends the waiting; a flush that runs already is not waited for.
func (f *idleFlush) stop() { f.timer.Stop() }

// flushIdle begins a flush and does not wait for its end.
func (s *Store) flushIdle() {
	if s.begin(context.Background()) != nil {
		return
	}
	defer s.life.RUnlock()
	if _, err := s.db.AsyncFlush(); err != nil {
		s.log.Errorf("flush after a pause: %v", err)
	}
}
