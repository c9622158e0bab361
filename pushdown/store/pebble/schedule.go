package pebble

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// compactionPauses is how long compactions wait after a flush for the next one, in units of
	// Options.IdleFlush.
	compactionPauses = 3
	// mostFlushes is how many flushes they wait for at most. Each adds tables to level 0
	// that a scan has to read as well.
	mostFlushes = 4
)

// schedule decides when pebble compacts: soon after a flush, but while one flush follows the
// other only after every few of them. A compaction of level 0 writes all tables again whose
// keys overlap with it, and new rows have keys everywhere, so one for each flush would write
// the same data again and again. It replaces pebble's ConcurrencyLimitScheduler, which grants
// by the same rules but cannot wait.
type schedule struct {
	patience time.Duration // none if it is not positive

	mu       sync.Mutex // pebble may hold locks of its own when it is taken
	db       pebble.DBForCompaction
	running  int
	granting bool
	quiet    sync.Cond // granting has become false
	closed   bool
	flushes  int // since the last compaction of level 0 began
	flushed  time.Time
	timer    *time.Timer // calls grant
}

var _ pebble.CompactionScheduler = (*schedule)(nil)

func newSchedule(patience time.Duration) *schedule {
	s := &schedule{patience: patience}
	s.quiet.L = &s.mu
	s.timer = time.AfterFunc(time.Hour, s.grant)
	s.timer.Stop()
	return s
}

// flushEnded notes the end of a flush.
func (s *schedule) flushEnded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushes++
	s.flushed = time.Now()
}

// compactionBegins notes whether level 0 is being compacted.
func (s *schedule) compactionBegins(c *pebble.CompactionInfo) {
	for _, l := range c.Input {
		if l.Level == 0 {
			s.mu.Lock()
			s.flushes = 0
			s.mu.Unlock()
		}
	}
}

// room reports whether another compaction may run. If it is too early for that, grant is called
// later. The caller holds the lock.
func (s *schedule) room() bool {
	if s.closed || s.running >= s.db.GetAllowedWithoutPermission() {
		return false
	}
	if s.patience <= 0 || s.flushes >= mostFlushes {
		return true
	}

	wait := s.patience - time.Since(s.flushed)
	if wait > 0 {
		s.timer.Reset(wait)
	}
	return wait <= 0
}

// grant lets the compactions run for which there is room.
func (s *schedule) grant() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.granting {
		s.quiet.Wait()
	}

	s.granting = true
	for accepted := true; accepted && s.room(); {
		s.running++
		s.mu.Unlock() // pebble's locks come before this one
		accepted, _ = s.db.GetWaitingCompaction()
		accepted = accepted && s.db.Schedule(s)
		s.mu.Lock()
		if !accepted {
			s.running--
		}
	}
	s.granting = false
	s.quiet.Broadcast()
}

// Register implements pebble.CompactionScheduler.
func (s *schedule) Register(_ int, db pebble.DBForCompaction) { s.db = db }

// Unregister implements pebble.CompactionScheduler: it waits for the calls of the database.
func (s *schedule) Unregister() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.timer.Stop()
	for s.granting {
		s.quiet.Wait()
	}
}

// TrySchedule implements pebble.CompactionScheduler.
func (s *schedule) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.room() {
		return false, nil
	}
	s.running++
	return true, s
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler. It leaves grant to another
// goroutine, because pebble holds locks here that grant needs.
func (s *schedule) UpdateGetAllowedWithoutPermission() { s.timer.Reset(0) }

// Done implements pebble.CompactionGrantHandle: a compaction has ended.
func (s *schedule) Done() {
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	s.grant()
}

// Started implements pebble.CompactionGrantHandle.
func (s *schedule) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (s *schedule) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (s *schedule) CumulativeStats(pebble.CompactionGrantHandleStats) {}
