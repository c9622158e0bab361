package pebble

import (
	"context"
	"sync/atomic"
	"time"
)

// What is not worth a flush: appends that a scan joins unnoticed (in about a
// millisecond), and bytes that lie in the log, uncompressed and read again at the
// next start.
const (
	idleAppends = 4096
	idleBytes   = 256 << 10
)

// idleFlush calls flush when writing has paused and much lies in the memtable.
type idleFlush struct {
	pause   time.Duration
	appends atomic.Int64 // since the memtable was new
	bytes   atomic.Int64
	timer   *time.Timer
}

// newIdleFlush makes a flush that waits for wrote.
func newIdleFlush(pause time.Duration, flush func()) *idleFlush {
	f := &idleFlush{pause: pause, timer: time.AfterFunc(time.Hour, flush)}
	f.timer.Stop()
	return f
}

// wrote counts a batch and begins the pause anew.
func (f *idleFlush) wrote(appends, bytes int) {
	many := f.appends.Add(int64(appends)) >= idleAppends
	if large := f.bytes.Add(int64(bytes)) >= idleBytes; (many || large) && f.pause > 0 {
		f.timer.Reset(f.pause)
	}
}

// rotated tells that a new memtable has begun.
func (f *idleFlush) rotated() {
	f.appends.Store(0)
	f.bytes.Store(0)
}

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
