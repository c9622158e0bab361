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

// fatalLogger is the logger that pebble gets. It logs errors only.
type fatalLogger struct {
	log  *slog.Logger
	dir  string
	exit func(int)
}

// Infof drops the line: pebble reports every flush and compaction.
func (fatalLogger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l fatalLogger) Errorf(format string, args ...any) {
	l.log.Error("embedded store: "+fmt.Sprintf(format, args...), "dir", l.dir)
}

// Warnf logs what nobody has to act on at once. Pebble does not call it.
func (l fatalLogger) Warnf(format string, args ...any) {
	l.log.Warn("embedded store: "+fmt.Sprintf(format, args...), "dir", l.dir)
}

// Fatalf logs why, and ends the process. After a failed log write nobody knows how
// much of it is on disk: to acknowledge it, or to try again, could lose points. A
// restart reads what is there.
func (l fatalLogger) Fatalf(format string, args ...any) {
	l.log.Error("embedded store cannot write, the process ends: "+fmt.Sprintf(format, args...), "dir", l.dir)
	l.exit(1)
}

// trouble is what pebble has reported. Pebble tries at once, and for ever, what has
// failed: so lines are logged at intervals, and corrupt files are read with pauses.
type trouble struct {
	background, full rate        // of lines about failed background work, and about a full disk
	damaged          rates       // by file
	fullLogged       atomic.Bool // a line says that the disk is full, and none that it is not any more
	// flush and compaction are why the last one failed, nil if it did not.
	flush, compaction atomic.Pointer[error]
}

const (
	// logEvery is the interval between lines of one kind.
	logEvery = time.Minute
	// corruptFree is how often in logEvery pebble may meet damage in one file before
	// its background work is made to pause each time.
	corruptFree = 10
)

// events returns the functions that pebble calls. A corrupt block is an error of
// the call that meets it; it does not end the process.
func (s *Store) events() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: s.backgroundFailed,
		DataCorruption:  s.foundDamage,
		WALCreated:      func(pebble.WALCreateInfo) { s.early.rotated() },
		FlushEnd: func(i pebble.FlushInfo) {
			setOutcome(&s.trouble.flush, i.Err)
			s.compactions.flushEnded()
		},
		CompactionBegin: func(i pebble.CompactionInfo) { s.compactions.compactionBegins(&i) },
		CompactionEnd:   func(i pebble.CompactionInfo) { setOutcome(&s.trouble.compaction, i.Err) },
	}
}

// setOutcome keeps why background work has failed. Work that turned out not to be
// needed has succeeded; work that was cancelled in favour of other work says nothing.
func setOutcome(failure *atomic.Pointer[error], err error) {
	switch {
	case err == nil || err.Error() == "pebble: empty table": // pebble exports no value of it
		failure.Store(nil)
	case !errors.Is(err, pebble.ErrCancelledCompaction):
		failure.Store(&err)
	}
}

// backgroundFailed is called for a flush or a compaction that has failed and will be
// tried again. It must not wait, because pebble may hold locks.
func (s *Store) backgroundFailed(err error) {
	if disk.IsFull(err) {
		return // logNoSpace has logged it
	}
	if n, ok := s.trouble.background.allow(s.opts.Now(), logEvery); ok {
		s.log.Errorf("work in the background failed, %d times since the last line: %v", n, err)
	}
}

// foundDamage is called by whatever has read a corrupt block.
func (s *Store) foundDamage(i pebble.DataCorruptionInfo) {
	n, ok := s.trouble.damaged.of(i.Path).allow(s.opts.Now(), logEvery)
	err := damageError(&i)
	if ok {
		s.log.Errorf("%v", err)
	}

	// Until some time has passed the block is not read again. Only the error's text says
	// which one it is.
	if m := blockText.FindStringSubmatch(i.Details.Error()); m != nil {
		if offset, e := strconv.ParseInt(m[1], 10, 64); e == nil {
			s.disk.AddDamaged(filepath.Base(i.Path), offset, err)
		}
	}
	// Pebble's background work, if it is the caller, would try again at once, and for ever.
	if n > corruptFree {
		disk.PauseBackground()
	}
}

// blockText is how pebble's error says which block of a table has a wrong checksum:
// by offset and length.
var blockText = regexp.MustCompile(`block (\d+)/\d+: `)

// logNoSpace is called when something needs space on the disk and there is none.
func (s *Store) logNoSpace(err error) {
	if _, ok := s.trouble.full.allow(s.opts.Now(), logEvery); ok {
		s.trouble.fullLogged.Store(true)
		s.log.Errorf("writes wait or are refused until there is room: %v", err)
	}
}

// logSpaceAgain reports whether there is space on the disk again, and logs it once.
func (s *Store) logSpaceAgain() bool {
	if s.checkSpace() != nil {
		return false
	}
	if s.trouble.fullLogged.CompareAndSwap(true, false) {
		s.log.Warnf("there is room on the disk again")
	}
	return true
}

// rate limits the lines about one thing.
type rate struct {
	mu   sync.Mutex
	last time.Time // of the last line; long ago if there is none
	n    int       // how often the thing happened since
}

// allow counts the thing once, and reports whether a line about it may be logged. n is
// how often it happened since the last line.
func (r *rate) allow(now time.Time, every time.Duration) (n int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	n = r.n
	if now.Sub(r.last) >= every {
		r.last, r.n = now, 0
		return n, true
	}
	return n, false
}

// rates limits the lines about many things, each by itself.
type rates struct {
	mu sync.Mutex
	by map[string]*rate
}

// of returns the rate of the thing with a name.
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
