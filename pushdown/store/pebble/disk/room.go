package disk

import (
	"errors"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pauses between attempts, where nothing tells when there is room again.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// IsFull tells whether an error says that the disk is full, or a quota used.
func IsFull(err error) bool {
	return err != nil && (vfs.IsNoSpaceError(err) || errors.Is(err, syscall.EDQUOT))
}

// room waits for room on a disk.
type room struct {
	full func(error)
	room func() bool
	lack atomic.Bool  // something has failed for want of room since something succeeded
	in   atomic.Int64 // failures of tables in a row
}

// told passes on what an attempt's end says of the room.
func (r *room) told(err error) {
	if IsFull(err) {
		r.lack.Store(true)
		r.full(err)
	} else if err == nil && r.lack.Load() && r.room() {
		r.lack.Store(false)
	}
}

// wait tries until there is room; other errors end it.
func (r *room) wait(try func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := try()
		r.told(err)
		if !IsFull(err) {
			return err
		}
		time.Sleep(pause)
	}
}

// write writes all of p, waiting for room. What w takes goes on in w: a write
// that meets the end of the disk has written a part.
func (r *room) write(w io.Writer, p []byte) (n int, err error) {
	err = r.wait(func() error {
		m, err := w.Write(p[n:])
		n += m
		return err
	})
	return n, err
}

// failed pauses if err is one, longer each time in a row: pebble tries again at
// once whatever has failed.
func (r *room) failed(err error) error {
	if err == nil {
		return nil
	}
	r.told(err)
	time.Sleep(min(firstPause<<min(r.in.Add(1), 10), lastPause))
	return err
}

// succeeded ends a row of failures.
func (r *room) succeeded() {
	r.in.Store(0)
	r.told(nil)
}
