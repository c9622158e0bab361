package disk

import (
	"bytes"
	"runtime"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// How long a block that was found damaged is not read again, and how long
// pebble's own work pauses that wants it all the same.
const (
	spoiledFor = time.Minute
	spoiledTry = 500 * time.Millisecond
)

// SpoiledError is the error of reading a block that was found damaged a while
// ago. Pebble takes a second of a processor to find out what is wrong with a
// block, each time.
type SpoiledError struct{ Err error }

// Error is what was found.
func (e *SpoiledError) Error() string { return e.Err.Error() }

// Unwrap is what was found.
func (e *SpoiledError) Unwrap() error { return e.Err }

// spoiled are the blocks of tables that were found damaged.
type spoiled struct {
	mu sync.RWMutex
	at map[block]spoil
}

type block struct {
	file   string
	offset int64
}

type spoil struct {
	err   error
	until time.Time
}

// Spoil notes that the block of a table's file is damaged.
func (d *FS) Spoil(file string, offset int64, err error) {
	d.spoiled.mu.Lock()
	defer d.spoiled.mu.Unlock()
	if d.spoiled.at == nil {
		d.spoiled.at = map[block]spoil{}
	}
	d.spoiled.at[block{file, offset}] = spoil{err, time.Now().Add(spoiledFor)}
}

// known is what was found in a block lately, nil for nothing.
func (s *spoiled) known(file string, offset int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.at) == 0 {
		return nil
	}
	found, ok := s.at[block{file, offset}]
	if !ok || time.Now().After(found.until) {
		return nil
	}
	return &SpoiledError{found.err}
}

// reader is a table that is read.
type reader struct {
	vfs.File
	of   *FS
	name string
}

// ReadAt is File.ReadAt.
func (r *reader) ReadAt(p []byte, offset int64) (int, error) {
	if err := r.of.spoiled.known(r.name, offset); err != nil {
		Pause()
		return 0, err
	}
	return r.File.ReadAt(p, offset)
}

// Pause keeps pebble's own work waiting a while: it tries again at once, for
// ever, whatever has failed.
func Pause() {
	if inBackground() {
		time.Sleep(spoiledTry)
	}
}

// inBackground tells whether pebble has started this goroutine: it has no other
// way to say who reads.
func inBackground() bool {
	stack := make([]byte, 64<<10)
	stack = stack[:runtime.Stack(stack, false)]
	_, by, _ := bytes.Cut(stack, []byte("created by "))
	return bytes.HasPrefix(by, []byte("github.com/cockroachdb/pebble/"))
}
