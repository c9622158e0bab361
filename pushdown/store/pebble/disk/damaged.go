package disk

import (
	"bytes"
	"runtime"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// damagedFor is how long a block that was found damaged is not read again.
	damagedFor = time.Minute
	// backgroundPause is how long pebble's background work pauses each time it
	// reads such a block all the same.
	backgroundPause = 500 * time.Millisecond
)

// DamagedError is the error of reading a block that was found damaged a short while
// ago. Without it, pebble would spend a second of processor time each time to find
// out what is wrong with the block.
type DamagedError struct{ Err error }

// Error returns the text of the error that was found first.
func (e *DamagedError) Error() string { return e.Err.Error() }

// Unwrap returns the error that was found first.
func (e *DamagedError) Unwrap() error { return e.Err }

// damagedBlocks are the blocks of tables that were found damaged.
type damagedBlocks struct {
	mu sync.RWMutex
	at map[blockAt]damage
}

type blockAt struct {
	file   string
	offset int64
}

type damage struct {
	err   error
	until time.Time // when the block may be read again
}

// AddDamaged notes that a block of a table's file is damaged.
func (d *FS) AddDamaged(file string, offset int64, err error) {
	d.damaged.mu.Lock()
	defer d.damaged.mu.Unlock()
	if d.damaged.at == nil {
		d.damaged.at = map[blockAt]damage{}
	}
	d.damaged.at[blockAt{file, offset}] = damage{err, time.Now().Add(damagedFor)}
}

// check returns a *DamagedError if a block was found damaged a short while ago.
func (b *damagedBlocks) check(file string, offset int64) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.at) == 0 { // nearly always: no clock is read
		return nil
	}
	found := b.at[blockAt{file, offset}] // until a time long ago if there is none
	if time.Now().After(found.until) {
		return nil
	}
	return &DamagedError{found.err}
}

// tableReader is a table that is being read.
type tableReader struct {
	vfs.File
	fs   *FS
	name string
}

// ReadAt is File.ReadAt. Pebble's background work would ask again at once after an error. A read of a caller does not
// pause.
func (r *tableReader) ReadAt(p []byte, offset int64) (n int, err error) {
	if err = r.fs.damaged.check(r.name, offset); err == nil {
		n, err = r.File.ReadAt(p, offset)
	}
	if err != nil {
		PauseBackground()
	}
	return n, err
}

// PauseBackground pauses if it is called by pebble's background work, which tries
// again at once, and for ever, whatever has failed.
func PauseBackground() {
	if inBackground() {
		time.Sleep(backgroundPause)
	}
}

// inBackground reports whether pebble has started this goroutine. The stack is the only
// thing that says who reads.
func inBackground() bool {
	stack := make([]byte, 64<<10)
	stack = stack[:runtime.Stack(stack, false)]
	_, by, _ := bytes.Cut(stack, []byte("created by "))
	return bytes.HasPrefix(by, []byte("github.com/cockroachdb/pebble/"))
}
