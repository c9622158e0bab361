package gateway

import "time"

// DrainUntil makes Close go on to serve, at its beginning, until a channel is closed,
// whatever the configured time.
func (s *Server) DrainUntil(over <-chan struct{}) {
	s.draining.pause = func(time.Duration) { <-over }
}

// EndWithin sets the timeout of each part of Close.
func (s *Server) EndWithin(d time.Duration) { s.closing = closeTimeouts{d, d, d} }

// RequestsTimeout is how long running requests may take at the end.
func RequestsTimeout(c *Config) time.Duration { return c.requestsTimeout() }
