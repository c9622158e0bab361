package gateway

import (
	"context"
	"sync"
)

// fault is why a running server must not go on: what would have kept it from starting, had it been known then.
type fault struct {
	once     sync.Once
	happened chan struct{}
	err      error // set before happened is closed
}

// get returns the fault, nil while there is none.
func (f *fault) get() error {
	select {
	case <-f.happened:
		return f.err
	default:
		return nil
	}
}

// fail says at /readyz and to who waits in Wait that the server must not go on. Only the first call counts.
func (s *Server) fail(err error) {
	s.fault.once.Do(func() {
		s.log.Error("the gateway ends", "err", err)
		s.fault.err = err
		close(s.fault.happened)
	})
}

// Wait waits until ctx ends, or until the server must not go on, and returns why. The caller closes it then.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-s.fault.happened:
	}
	return s.fault.get()
}
