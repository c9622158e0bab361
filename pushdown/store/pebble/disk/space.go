package disk

import (
	"errors"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pauses between attempts. The second is the longest; nothing else shows when there
// is space again.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// IsFull reports whether an error says that the disk is full, or a quota used up.
func IsFull(err error) bool {
	return vfs.IsNoSpaceError(err) || errors.Is(err, syscall.EDQUOT)
}

// space makes writes wait for space on a disk, and reports that there is none.
type space struct {
	onFull        func(error)
	again         func() bool  // whether there is space again
	full          atomic.Bool  // onFull was called, and again has not returned true since
	tableFailures atomic.Int64 // in a row
}

// observe calls onFull or again, by the outcome of an attempt to write.
func (s *space) observe(err error) {
	if IsFull(err) {
		s.full.Store(true)
		s.onFull(err)
	} else if err == nil && s.full.Load() && s.again() {
		// A success alone proves nothing: some files have their space already.
		s.full.Store(false)
	}
}

// wait calls try until the disk is not full, and returns the error of the last call.
func (s *space) wait(try func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := try()
		s.observe(err)
		if !IsFull(err) {
			return err
		}
		time.Sleep(pause)
	}
}

// write writes all of p, waiting for space. A write on a disk that becomes full has
// written a part of p; the next one goes on behind that.
func (s *space) write(w io.Writer, p []byte) (n int, err error) {
	err = s.wait(func() error {
		m, err := w.Write(p[n:])
		n += m
		return err
	})
	return n, err
}

// failed pauses if err is not nil, longer with each failure in a row, and returns
// err: pebble tries again at once whatever has failed.
func (s *space) failed(err error) error {
	if err == nil {
		return nil
	}
	s.observe(err)
	// After 10 doublings the pause is above lastPause; more would overflow in the end.
	time.Sleep(min(firstPause<<min(s.tableFailures.Add(1), 10), lastPause))
	return err
}

// succeeded ends a row of failures.
func (s *space) succeeded() {
	s.tableFailures.Store(0)
	s.observe(nil)
}
