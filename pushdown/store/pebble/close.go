package pebble

import (
	"errors"
	"fmt"
	"time"
)

// Bounds of the time that Close takes, and of its last flush in that. What is not
// flushed stays in the log.
const (
	closeWithin = 20 * time.Second
	flushWithin = 10 * time.Second
)

// Close waits for the calls in progress, ends every scan, flushes what is in the log
// to a table and closes the files. It gives up after 20 seconds, as on a disk that
// does not answer; nothing that was acknowledged is lost by that. Closing again does
// nothing.
func (s *Store) Close() error {
	if !s.closing.CompareAndSwap(false, true) {
		return nil
	}

	done := make(chan error, 1)
	go func() { done <- s.closeAll() }()
	timeout := time.NewTimer(closeWithin)
	defer timeout.Stop()
	select {
	case err := <-done:
		return err
	case <-timeout.C:
		return fmt.Errorf("data directory %s: not closed after %v; what was acknowledged is in its log",
			s.dir, closeWithin)
	}
}

// closeAll is Close without a bound of its time. The order counts: what writes ends
// before the last flush, and the last flush before the files are closed.
func (s *Store) closeAll() error {
	s.life.Lock()
	defer s.life.Unlock()
	s.closed = true
	s.early.stop()
	s.staging.Wait()

	s.scanners.end()
	s.lastFlush()
	s.disk.SetServing(false)
	return errors.Join(s.db.Close(), s.disk.Close(), s.lock.Close())
}

// lastFlush empties the log, so that damage to it while the store is closed loses
// nothing. On a disk without space the log stays as it is.
func (s *Store) lastFlush() {
	// There is nothing to flush, or a log or disk takes nothing more.
	if !s.disk.Filled() || s.disk.Broken() || s.checkSpace() != nil {
		return
	}

	done, err := s.db.AsyncFlush()
	if err != nil {
		s.log.Errorf("the last flush: %v", err)
		return
	}
	timeout := time.NewTimer(flushWithin)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C:
		s.log.Warnf("the last flush took longer than %v; the log stays as it is", flushWithin)
	}
}
