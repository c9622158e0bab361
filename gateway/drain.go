package gateway

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

// draining is how a server announces that it is about to end, to the balancers and clients that
// can go elsewhere before it does.
type draining struct {
	begun atomic.Bool
	// pause waits for a time: it is time.Sleep, but in tests. Only a second signal, which ends the
	// process, cuts it off.
	pause func(time.Duration)
}

// errStopping is what Ready returns once the end has begun.
var errStopping = errors.New("the gateway is stopping")

// drain says at /readyz that the server stops, and goes on to serve for the configured time:
// as long as balancers may take to notice.
func (s *Server) drain() {
	s.draining.begun.Store(true)
	wait := s.cfg.Drain
	// With a fault each answer more may be a wrong one.
	if wait <= 0 || s.fault.get() != nil {
		return
	}

	s.log.Info("the gateway stops: /readyz says so, and clients are served until the time is over",
		"DOWNPOUR_DRAIN", wait)
	s.draining.pause(wait)
}

// lastAnswers closes connections behind their answers once the end has begun, so that a
// client sends its next request elsewhere. Without this a connection that is kept open could
// be closed just when a request is on its way, and a client that puts cannot know then
// whether its points were stored.
func (s *Server) lastAnswers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.begun.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}
