package disk

import (
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// newLogSize is the size of a log that nothing was written to.
	newLogSize = 64 << 10
	// LogZeros is the least number of zeros that follow the records of a log: the
	// header of a chunk fits into it.
	LogZeros = 64
)

// logFile is a log that is longer than what was written to it, by zeros. A write
// never reaches a size that is not on disk yet, so that zeros follow the records
// after a crash, too.
type logFile struct {
	vfs.File
	fs     *FS
	number uint64
	name   string

	at        int64 // offset of the next write
	size      int64 // with the zeros
	durable   int64 // the size that is on disk; 0 before the first sync of a record
	hasRecord bool  // a record was written
}

func (d *FS) newLog(f vfs.File, number uint64, name string) (vfs.File, error) {
	l := &logFile{File: f, fs: d, number: number, name: name}
	d.newest.Store(number)
	if err := l.extend(newLogSize); err != nil {
		return nil, l.closeAfter(l.fail(err))
	}
	return l, nil
}

// Write writes all of p, waiting for space. At least LogZeros zeros follow it: by them the
// next opening knows that the log was not cut off.
func (l *logFile) Write(p []byte) (int, error) {
	end := l.at + int64(len(p))
	if err := l.reserve(end + LogZeros); err != nil {
		return 0, l.fail(err)
	}
	// An end chunk is no record: for it alone the log need not be there at the next opening,
	// nor be flushed.
	if !isEndOfLog(p) {
		l.hasRecord = true
		l.fs.filled.Store(l.number)
	}

	n, err := l.fs.space.write(l.File, p)
	l.at += int64(n)
	if err == nil && 2*l.at > l.size {
		// Early, so that the next sync makes the size durable before it is needed.
		err = l.extend(2 * l.size)
	}
	return n, l.fail(err)
}

// isEndOfLog reports whether p is the chunk that ends a closed log; see package journal.
func isEndOfLog(p []byte) bool {
	return len(p) == 11 && p[6] == 5 && string(p[:6]) == "\x00\x00\x00\x00\x00\x00"
}

// reserve makes the log long enough for a write that ends at end. Once a record was
// synced, it makes that size durable as well.
func (l *logFile) reserve(end int64) error {
	size := l.size
	for size < end {
		size *= 2
	}
	if size > l.size {
		if err := l.extend(size); err != nil {
			return err
		}
	}

	// Before the first sync nobody relies on the zeros yet.
	if l.durable > 0 && l.durable < end {
		return l.SyncData()
	}
	return nil
}

// extend adds zeros. They take no space on a file system with sparse files.
func (l *logFile) extend(size int64) error {
	err := l.fs.space.wait(func() error {
		_, err := l.File.WriteAt([]byte{0}, size-1)
		return err
	})
	if err == nil {
		l.size = size
	}
	return err
}

// Sync is SyncData: pebble calls either.
func (l *logFile) Sync() error { return l.SyncData() }

// SyncData makes what was written durable. The first time, before anybody can learn
// that a record is durable, it also writes the marker that the log must exist.
func (l *logFile) SyncData() error {
	// Taken before the sync: what is added in the meantime need not be durable.
	size := l.size
	if err := l.File.SyncData(); err != nil {
		return l.fail(err)
	}

	if l.hasRecord && l.durable == 0 {
		if err := l.fs.marker.synced(l.number); err != nil {
			return l.fail(err)
		}
	}
	if l.hasRecord {
		l.durable = size
	}
	return nil
}

// SyncTo starts to write to disk. It returns false, which promises nothing.
func (l *logFile) SyncTo(length int64) (bool, error) {
	_, err := l.File.SyncTo(length)
	return false, l.fail(err)
}

// fail notes that the log cannot go on if err is not nil, and returns err.
func (l *logFile) fail(err error) error {
	if err != nil {
		l.fs.broken.Store(true)
	}
	return err
}

// Close closes the file. Pebble cannot go on after a log that could not be written or
// closed, and would panic.
func (l *logFile) Close() error { return l.closeAfter(nil) }

// closeAfter closes the file and returns err, or the error of closing it if that is
// nil.
func (l *logFile) closeAfter(err error) error {
	if e := l.fail(l.File.Close()); err == nil {
		err = e
	}
	// Pebble would panic, see Close. While it opens or closes, the error is enough.
	if l.fs.Broken() && l.fs.serving.Load() {
		l.fs.cfg.Fatal("log %s could not be written: %v", l.name, err)
	}
	return err
}
