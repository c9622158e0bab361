package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ending bounds the parts of Close.
type ending struct {
	drain    time.Duration // requests may go on for so long
	grace    time.Duration // the store may finish then what it has begun
	lastWord time.Duration // who waits for it is told then that it has not
}

var usualEnding = ending{drain: 10 * time.Second, grace: 10 * time.Second, lastWord: 2 * time.Second}

// errLeft ends a server although something is left to be done.
var errLeft = errors.New("left unfinished at the end")

// Close ends the server: no new connections, running requests get ten seconds,
// what was accepted is written. A store that has not taken it ten seconds later
// is not waited for: whoever waits for a point that is not stored is told so, and
// the log says what is left.
func (s *Server) Close() error {
	s.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), s.ending.drain)
	defer cancel()
	s.stream.Close(ctx)
	err := s.http.Shutdown(ctx)
	s.door.Close() // in case that the server had not begun
	if left := s.finish(); left != nil {
		return left
	}
	if err != nil {
		s.http.Close()
		return fmt.Errorf("requests were cut off at the end: %w", err)
	}
	return nil
}

// finish ends the parts that work on their own, one after another, of which each
// may wait for the store.
func (s *Server) finish() error {
	parts := []struct {
		name string
		end  func()
	}{
		{"telnet connections", s.door.Wait},
		{"live queries", s.hub.Close},
		{"own metrics", s.work.Wait},
		{"accepted points", s.writer.Close},
		{"records of the meta data", s.stopTracker},
		{"connections to pushdown servers", s.closeClients},
	}
	var at atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i, p := range parts {
			at.Store(int32(i))
			p.end()
		}
	}()
	if within(done, s.ending.grace) {
		return nil
	}
	name := parts[at.Load()].name
	points := s.abandon()
	s.log.Error("the store does not answer at the end and is not waited for; who put these points was told that they may not be stored",
		"points", points, "waited for", name)
	ctx, cancel := context.WithTimeout(context.Background(), s.ending.lastWord)
	defer cancel()
	if s.http.Shutdown(ctx) != nil { // now that those who put have their answers
		s.http.Close()
	}
	if !within(done, s.ending.lastWord) {
		name = parts[at.Load()].name
		s.log.Error("left unfinished at the end", "what", name)
	}
	return fmt.Errorf("%w: %s, %d points", errLeft, name, points)
}

// abandon ends the wait for the store everywhere, and tells how many points it
// has not taken.
func (s *Server) abandon() (points int) {
	points = s.writer.Abandon()
	if s.tracker != nil {
		s.tracker.Abandon()
	}
	return points
}

// within waits for done, but not for longer than d.
func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
