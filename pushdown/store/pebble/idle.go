package pebble

import (
	"context"
	"sync/atomic"
	"time"
)

// A memtable with fewer appends and fewer bytes is not worth a flush: a scan joins
// that many appends in about a millisecond, and that many bytes may stay in the log,
// where they are uncompressed and read again at the next start.
const (
	idleAppends = 4096
	idleBytes   = 256 << 10
)

// idleFlush calls a function that flushes when writing pauses and the memtable holds
// enough.
type idleFlush struct {
	pause   time.Duration
	appends atomic.Int64 // since the memtable was new
	bytes   atomic.Int64
	timer   *time.Timer
}

// newIdleFlush returns an idleFlush that calls flush once wrote was not called for
// pause; a pause that is not positive means never.
func newIdleFlush(pause time.Duration, flush func()) *idleFlush {
	f := &idleFlush{pause: pause, timer: time.AfterFunc(time.Hour, flush)}
	f.timer.Stop()
	return f
}

// wrote counts a batch, and starts the pause again.
func (f *idleFlush) wrote(appends, bytes int) {
	many := f.appends.Add(int64(appends)) >= idleAppends
	if large := f.bytes.Add(int64(bytes)) >= idleBytes; (many || large) && f.pause > 0 {
		f.timer.Reset(f.pause)
	}
}

// rotated is called when a new memtable begins, with a new log.
func (f *idleFlush) rotated() {
	f.appends.Store(0)
	f.bytes.Store(0)
}

// stop stops the timer. It does not wait for a flush that runs already.
func (f *idleFlush) stop() { f.timer.Stop() }

// flushIdle starts a flush and does not wait for it.
func (s *Store) flushIdle() {
	if s.begin(context.Background()) != nil {
		return
	}
	defer s.life.RUnlock()
	if _, err := s.db.AsyncFlush(); err != nil {
		s.log.Errorf("flush after a pause: %v", err)
	}
}
