package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// closeTimeouts are the times that the phases of Close may take, one after another.
type closeTimeouts struct {
	drain  time.Duration // for running requests; 0 is as long as a query may take
	store  time.Duration // for the store to take what was accepted
	answer time.Duration // to report to clients which points the store has not taken
}

var defaultCloseTimeouts = closeTimeouts{store: 10 * time.Second, answer: 2 * time.Second}

// StoreCloseTimeout is how long a store may take to close, behind its server.
const StoreCloseTimeout = 20 * time.Second

// spareAtEnd is for what else is done at the end of a process.
const spareAtEnd = 20 * time.Second

// requestsTimeout is how long running requests may take at the end: a query that was just
// begun ends, and its answer has some time to be sent.
func (c *Config) requestsTimeout() time.Duration {
	return max(10*time.Second, c.QueryTimeout+5*time.Second)
}

// EndWithin is how long a process may go on after the order to end: what Close may take,
// and closing the store.
func (c *Config) EndWithin() time.Duration {
	d := defaultCloseTimeouts
	return c.Drain + c.requestsTimeout() + d.store + 2*d.answer + StoreCloseTimeout + spareAtEnd
}

// errUnfinished is returned by Close if the store has not taken all accepted points.
var errUnfinished = errors.New("unfinished at shutdown")

// Close ends the server. /readyz says so first, for the time that balancers may take to
// notice, see drain. Then it accepts no new connections, gives running requests the time
// that a query may take, and writes what was accepted. If the store does not take that
// within ten more seconds, Close gives up: clients that wait for a point learn that it
// may not be stored, and the log says what is left.
func (s *Server) Close() error {
	s.standby.Close()
	if !s.serving {
		return s.closeUnstarted()
	}
	s.drain()
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(s.closing.drain, s.cfg.requestsTimeout()))
	defer cancel()

	// Shutdown below waits for HTTP requests, but knows nothing of WebSockets.
	s.live.sockets.Close(ctx)
	err := s.http.Shutdown(ctx)
	s.listener.Close() // Shutdown leaves it open if Serve was not called yet

	// A point that may be lost weighs more than a request that was cut off.
	if left := s.finish(); left != nil {
		return left
	}
	if err != nil {
		s.http.Close()
		return fmt.Errorf("requests were cut off at the end: %w", err)
	}
	return nil
}

// closeUnstarted ends a server whose store has not answered: nothing was accepted.
func (s *Server) closeUnstarted() error {
	err := s.http.Close()
	s.listener.Close() // http leaves it open if Serve was not called yet
	s.listener.Wait()
	s.background.Wait()
	if s.end != nil {
		s.end()
	}
	// A part that could not be made leaves those before it.
	if s.writes != nil {
		s.writes.points.Close()
		s.writes.rollups.Close()
	}
	if s.names != nil {
		s.names.stopTracker()
	}
	if s.queries != nil {
		s.queries.close()
	}
	return err
}

// finish ends the components that have goroutines of their own, one after another: each
// may feed those after it, and each may wait for the store. If the store does not answer
// in time, finish abandons the points that are left, lets their clients know, and
// returns errUnfinished.
func (s *Server) finish() error {
	components := []struct {
		name string
		end  func()
	}{
		{"telnet connections", s.listener.Wait},
		{"live queries", s.live.hub.Close},
		// The background also runs names.Watch, retention, rollups, compaction and the disk. http.Serve
		// has returned by now, though requests may still wait for the store.
		{"own metrics", s.background.Wait},
		{"accepted points", s.writes.points.Close},
		{"accepted rollups", s.writes.rollups.Close},
		{"records of the meta data", s.names.stopTracker},
		{"connections to pushdown servers", s.queries.close},
		{"lines of refused points", s.writes.refusals.Close},
	}

	var at atomic.Int32 // index of the component that is ending
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i, c := range components {
			at.Store(int32(i))
			c.end()
		}
	}()

	if waitFor(done, s.closing.store) {
		return nil
	}

	name := components[at.Load()].name
	points := s.writes.abandon()
	s.names.abandon()
	s.log.Error("the store does not answer at shutdown; clients that put these points were notified that they "+
		"may not be stored",
		"points", points, "waited for", name)

	// Clients that put these points have their answers now; the server waits until
	// they are sent.
	ctx, cancel := context.WithTimeout(context.Background(), s.closing.answer)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}

	if !waitFor(done, s.closing.answer) {
		name = components[at.Load()].name
		s.log.Error("unfinished at shutdown", "what", name)
	}

	return fmt.Errorf("%w: %s, %d points", errUnfinished, name, points)
}

// waitFor waits for done, but not longer than d. It reports whether done is closed.
func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
