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

// Where writing never pauses, a memtable that holds oldBytes is flushed when it is
// oldAge old: scans would join its appends again and again. Only writes that fill
// memtables faster get larger ones.
const (
	oldBytes = 1 << 20
	oldAge   = time.Second
)

// idleFlush calls a function that flushes when writing pauses and the memtable holds
// enough, or when the memtable is old.
type idleFlush struct {
	pause   time.Duration
	now     func() time.Time
	flush   func()
	appends atomic.Int64 // since the memtable was new
	bytes   atomic.Int64
	born    atomic.Int64 // when that was, in ns
	old     atomic.Bool  // whether a flush was asked for since, because of its age
	timer   *time.Timer
}

// newIdleFlush returns an idleFlush that calls flush once wrote was not called for
// pause, or the memtable is old; a pause that is not positive means never.
func newIdleFlush(pause time.Duration, now func() time.Time, flush func()) *idleFlush {
	f := &idleFlush{pause: pause, now: now, flush: flush, timer: time.AfterFunc(time.Hour, flush)}
	f.timer.Stop()
	f.rotated()
	return f
}

// wrote counts a batch, and starts the pause again.
func (f *idleFlush) wrote(appends, bytes int) {
	many := f.appends.Add(int64(appends)) >= idleAppends
	held := f.bytes.Add(int64(bytes))
	if f.pause <= 0 || !many && held < idleBytes {
		return
	}
	f.timer.Reset(f.pause)

	// A clock that is set back delays one flush: memtables are bounded without it.
	age := time.Duration(f.now().UnixNano() - f.born.Load())
	if held >= oldBytes && age >= oldAge && f.old.CompareAndSwap(false, true) {
		go f.flush() // making a new memtable takes as long as making a file
	}
}

// rotated is called when a new memtable begins, with a new log.
func (f *idleFlush) rotated() {
	f.appends.Store(0)
	f.bytes.Store(0)
	f.born.Store(f.now().UnixNano())
	f.old.Store(false)
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
		s.log.Errorf("flush of a memtable at rest, or an old one: %v", err)
	}
}
