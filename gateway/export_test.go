package gateway

import "time"

// EndWithin sets the timeout of each part of Close.
func (s *Server) EndWithin(d time.Duration) { s.closing = closeTimeouts{d, d, d} }
