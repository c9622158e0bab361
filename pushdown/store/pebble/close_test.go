package pebble

import (
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
)

// Close flushes what is in the log. If that has no record, it makes no file. It logs nothing.
func TestClose_lastFlush(t *testing.T) {
	var made atomic.Int64
	files := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate {
			made.Add(1)
		}
		return nil
	}))
	log := new(logtest.Log)
	for _, written := range []bool{true, false} {
		s, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: log.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		if written {
			create(t, s)
		}
		made.Store(0)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if n := made.Load(); (n > 0) != written {
			t.Errorf("written to %t: Close has made %d files", written, n)
		}
	}
	if text := log.String(); text != "" {
		t.Errorf("got %s, want no line", text)
	}
}

// Close returns why the log could not be ended: the next start may find damage in it.
func TestClose_error(t *testing.T) {
	var failing atomic.Bool
	s, err := Open("data", Options{
		FS: errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if failing.Load() && op.Kind == errorfs.OpFileSyncData && strings.HasSuffix(op.Path, ".log") {
				return syscall.EIO
			}
			return nil
		})),
		IdleFlush: -1,
		Logger:    quiet(),
		Exit:      func(int) { t.Error("the process would end") },
	})
	if err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	if err := s.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v, want %v", err, syscall.EIO)
	}
}

// A call that found the store open, and then had to wait for Close, is refused, and holds nothing up.
func TestClose_callBefore(t *testing.T) {
	s := openMem(t, Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.flushEarly()         // finds it closed
	s.closing.Store(false) // as such a call has seen it
	defer s.closing.Store(true)
	if err := s.begin(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v, want %v", err, store.ErrClosed)
	}
	if !s.life.TryLock() {
		t.Fatal("the refused call still counts as one that runs")
	}
	s.life.Unlock()
}
