package disk

import (
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// logLeast is how long a log is that nothing was written to.
	logLeast = 64 << 10
	// LogZeros is the least that its records leave: the header of a chunk fits
	// into it.
	LogZeros = 64
)

// logFile is a log that is longer than what was written to it. What is written
// never reaches an end that is not on disk yet, so that a crash leaves zeros
// behind it too.
type logFile struct {
	vfs.File
	of     *FS
	number uint64
	name   string

	at      int64 // where the next write goes
	size    int64 // with the zeros
	durable int64 // the size that is on disk; 0 before the first sync
	holds   bool  // a record was written
}

func (d *FS) newLog(f vfs.File, number uint64, name string) (vfs.File, error) {
	l := &logFile{File: f, of: d, number: number, name: name}
	d.newest.Store(number)
	if err := l.extend(logLeast); err != nil {
		return nil, l.end(err)
	}
	return l, nil
}

// Write writes all of p, waiting for room.
func (l *logFile) Write(p []byte) (int, error) {
	end := l.at + int64(len(p))
	if err := l.reach(end + LogZeros); err != nil {
		return 0, l.fail(err)
	}
	if !isMark(p) {
		l.holds = true
		l.of.filled.Store(l.number)
	}
	n, err := l.of.room.write(l.File, p)
	l.at += int64(n)
	if err == nil && 2*l.at > l.size {
		err = l.extend(2 * l.size) // the next sync makes it durable, before it is needed
	}
	return n, l.fail(err)
}

// isMark tells whether the first write of a log is what closes it.
func isMark(p []byte) bool {
	return len(p) == 11 && p[6] == 5 && string(p[:6]) == "\x00\x00\x00\x00\x00\x00"
}

// reach makes the log long enough for a write, durably once it was synced.
func (l *logFile) reach(end int64) error {
	size := l.size
	for size < end {
		size *= 2
	}
	if size > l.size {
		if err := l.extend(size); err != nil {
			return err
		}
	}
	if l.durable > 0 && l.durable < end {
		return l.SyncData()
	}
	return nil
}

// extend adds zeros; they take no room on a disk that knows holes.
func (l *logFile) extend(size int64) error {
	err := l.of.room.wait(func() error {
		_, err := l.File.WriteAt([]byte{0}, size-1)
		return err
	})
	if err == nil {
		l.size = size
	}
	return err
}

// Sync is SyncData: pebble asks for either.
func (l *logFile) Sync() error { return l.SyncData() }

// SyncData makes what was written durable. The first time it notes that the log
// exists, before anybody can be told of a record.
func (l *logFile) SyncData() error {
	size := l.size
	if err := l.File.SyncData(); err != nil {
		return l.fail(err)
	}
	if l.holds && l.durable == 0 {
		if err := l.of.marks.synced(l.number); err != nil {
			return l.fail(err)
		}
	}
	if l.holds {
		l.durable = size
	}
	return nil
}

// SyncTo begins to write; what it promises beyond that nobody relies on.
func (l *logFile) SyncTo(length int64) (bool, error) {
	_, err := l.File.SyncTo(length)
	return false, l.fail(err)
}

// fail remembers that the log cannot go on.
func (l *logFile) fail(err error) error {
	if err != nil {
		l.of.broken.Store(true)
	}
	return err
}

// Close closes the file. Pebble has no way to go on without a log that could not
// be closed, and would say so by a panic.
func (l *logFile) Close() error { return l.end(nil) }

func (l *logFile) end(err error) error {
	if e := l.fail(l.File.Close()); err == nil {
		err = e
	}
	if l.of.Broken() && l.of.serving.Load() {
		l.of.cfg.Fatal("log %s could not be written: %v", l.name, err)
	}
	return err
}
