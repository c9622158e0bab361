package pebble

import (
	"errors"
	"fmt"
	"time"
)

// Bounds of Close. What is not flushed stays in the log.
const (
	closeWithin = 20 * time.Second
	flushWithin = 10 * time.Second
)

// Close waits for the calls in progress, ends every scan, writes what is in the
// log to a table and closes the files. It gives up after 20 seconds, as on a disk
// that does not answer: nothing that was acknowledged is lost by that. Closing
// again does nothing.
func (s *Store) Close() error {
	if !s.closing.CompareAndSwap(false, true) {
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- s.end() }()
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("data directory %s: not closed after %v; what was acknowledged is in its log", s.dir, closeWithin)
	}
}

// end is Close without its bound.
func (s *Store) end() error {
	s.life.Lock()
	defer s.life.Unlock()
	s.closed = true
	s.idle.stop()
	s.later.Wait()
	err := s.scanners.end()
	s.lastFlush()
	s.disk.Serve(false)
	return errors.Join(err, s.db.Close(), s.disk.Close(), s.lock.Close())
}

// lastFlush empties the log, so that nothing that later befalls it is a loss. On
// a disk without room the log stays what it is.
func (s *Store) lastFlush() {
	if !s.disk.Filled() || s.disk.Broken() || s.room() != nil {
		return
	}
	done, err := s.db.AsyncFlush()
	if err != nil {
		s.log.Errorf("the last flush: %v", err)
		return
	}
	late := time.NewTimer(flushWithin)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		s.log.Warnf("the last flush took longer than %v; the log stays as it is", flushWithin)
	}
}
