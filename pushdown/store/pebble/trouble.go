package pebble

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store/pebble/disk"
)

// fatalLogger passes pebble's errors on and drops its chatter.
type fatalLogger struct {
	log  *slog.Logger
	dir  string
	exit func(int)
}

// Infof drops: pebble tells of every flush and compaction.
func (fatalLogger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l fatalLogger) Errorf(format string, args ...any) {
	l.log.Error("embedded store: "+fmt.Sprintf(format, args...), "dir", l.dir)
}

// Warnf is for what needs no hurry.
func (l fatalLogger) Warnf(format string, args ...any) {
	l.log.Warn("embedded store: "+fmt.Sprintf(format, args...), "dir", l.dir)
}

// Fatalf says why and ends the process. After a failed log write nobody knows
// what of it is on disk: acknowledging or trying again could lose points, a
// restart reads what is there.
func (l fatalLogger) Fatalf(format string, args ...any) {
	l.log.Error("embedded store cannot write, the process ends: "+fmt.Sprintf(format, args...), "dir", l.dir)
	l.exit(1)
}

// trouble is what pebble has told of: it repeats what fails at once, and for
// ever, so that lines are counted and corrupt files are read with pauses.
type trouble struct {
	background, full rate
	damaged          rates       // by file
	lacking          atomic.Bool // that the disk is full was told
	// flush and compaction are why the last one failed, nil if it did not.
	flush, compaction atomic.Pointer[error]
}

// Lines of one kind are logged so often; pebble meets a corrupt file so often in
// that time before it has to wait.
const (
	logEvery    = time.Minute
	corruptFree = 10
)

// events listens to pebble. A corrupt block is an error of the call that meets
// it, not the end of the process.
func (s *Store) events() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: s.backgroundFailed,
		DataCorruption:  s.metDamage,
		WALCreated:      func(pebble.WALCreateInfo) { s.idle.rotated() },
		FlushEnd:        func(i pebble.FlushInfo) { ended(&s.trouble.flush, i.Err) },
		CompactionEnd:   func(i pebble.CompactionInfo) { ended(&s.trouble.compaction, i.Err) },
	}
}

// ended keeps why work in the background has failed. Work that was not needed, or
// was given up for other work, has not.
func ended(why *atomic.Pointer[error], err error) {
	switch {
	case err == nil || err.Error() == "pebble: empty table":
		why.Store(nil)
	case !errors.Is(err, pebble.ErrCancelledCompaction):
		why.Store(&err)
	}
}

// backgroundFailed is told of flushes and compactions that have failed and will
// be tried again. Pebble may hold locks: nothing waits here.
func (s *Store) backgroundFailed(err error) {
	if disk.IsFull(err) {
		return // told already, and once
	}
	if n, ok := s.trouble.background.allow(s.opts.Now(), logEvery); ok {
		s.log.Errorf("work in the background failed, %d times since the last line: %v", n, err)
	}
}

// metDamage is told by whoever has read a corrupt block.
func (s *Store) metDamage(i pebble.DataCorruptionInfo) {
	n, ok := s.trouble.damaged.of(i.Path).allow(s.opts.Now(), logEvery)
	err := damage(&i)
	if ok {
		s.log.Errorf("%v", err)
	}
	if m := ofBlock.FindStringSubmatch(i.Details.Error()); m != nil {
		if offset, e := strconv.ParseInt(m[1], 10, 64); e == nil {
			s.disk.Spoil(filepath.Base(i.Path), offset, err)
		}
	}
	if n > corruptFree {
		disk.Pause()
	}
}

// ofBlock is how pebble tells which block of a table has a wrong checksum.
var ofBlock = regexp.MustCompile(`block (\d+)/\d+: `)

// noRoom is told that something needs room on the disk.
func (s *Store) noRoom(err error) {
	if _, ok := s.trouble.full.allow(s.opts.Now(), logEvery); ok {
		s.trouble.lacking.Store(true)
		s.log.Errorf("writes wait or are refused until there is room: %v", err)
	}
}

// roomAgain tells whether there is room again.
func (s *Store) roomAgain() bool {
	if s.room() != nil {
		return false
	}
	if s.trouble.lacking.CompareAndSwap(true, false) {
		s.log.Warnf("there is room on the disk again")
	}
	return true
}

// rate lets something be told so often.
type rate struct {
	mu   sync.Mutex
	last time.Time // when it was told
	n    int       // how often it came since
}

// allow counts one, and tells whether it may be told, with how many came since
// the last one that was.
func (r *rate) allow(now time.Time, every time.Duration) (n int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	n = r.n
	if r.last.IsZero() || now.Sub(r.last) >= every {
		r.last, r.n = now, 0
		return n, true
	}
	return n, false
}

// rates are those of many things.
type rates struct {
	mu sync.Mutex
	by map[string]*rate
}

func (r *rates) of(name string) *rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]*rate{}
	}
	one := r.by[name]
	if one == nil {
		one = &rate{}
		r.by[name] = one
	}
	return one
}
