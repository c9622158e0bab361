// Package pace distinguishes a slow peer from a dead or malicious one. A client that
// reads a large answer, or sends a large body, may take as long as it needs, but it
// must not hold the memory of its request for ever. So a peer is too slow, for any
// size, when it
//
//	moves no byte for 10 s, or
//	is more than 1 min behind a rate of 16 KiB a second.
//
// A peer falls behind while the gateway waits for it. It catches up by the bytes
// that it moves, and by the time in which the gateway does not wait. 15 MiB may take
// 17 minutes; a byte now and then is too slow after one minute.
//
// Conn applies the bounds to writes, below TLS, so that they hold for every protocol
// of the port. Readers use a Meter.
package pace

import (
	"fmt"
	"os"
	"time"
)

// Limits are the bounds of a peer. Zero values take the defaults.
type Limits struct {
	Still  time.Duration // how long a peer may move no byte; 10 s
	Behind time.Duration // how far a peer may be behind Rate; 1 min
	Rate   int64         // bytes a second; 16 KiB
}

// withDefaults returns l with defaults for what is not set.
func (l Limits) withDefaults() Limits {
	if l.Still <= 0 {
		l.Still = 10 * time.Second
	}
	if l.Behind <= 0 {
		l.Behind = time.Minute
	}
	if l.Rate <= 0 {
		l.Rate = 16 << 10
	}
	return l
}

// Least returns the time that n bytes take at Rate.
func (l Limits) Least(n int64) time.Duration {
	l = l.withDefaults()
	return time.Duration(float64(n) / float64(l.Rate) * float64(time.Second))
}

// Error is returned when a peer was too slow. It is a timeout in the sense of
// package net, and an os.ErrDeadlineExceeded.
type Error struct{ reason string }

// Error returns which bound the peer has broken.
func (e *Error) Error() string { return e.reason }

// Timeout is true.
func (e *Error) Timeout() bool { return true }

// Temporary is false: the transfer is cut in the middle.
func (e *Error) Temporary() bool { return false }

// Is reports that e is an os.ErrDeadlineExceeded.
func (e *Error) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// Meter measures one peer in one direction. The zero value has the
// default limits. It is for one goroutine at a time.
type Meter struct {
	Limits
	behind time.Duration // how far behind Rate, at the end of the last wait
	still  time.Duration // waited since the last byte
	until  time.Time     // end of the last wait
}

// Waited records a wait for the peer, from one time to another, in which it moved n
// bytes. It returns an *Error if the peer is too slow.
func (m *Meter) Waited(from, to time.Time, n int) error {
	l := m.Limits.withDefaults()
	waited := to.Sub(from)
	if !m.until.IsZero() {
		// In that time the gateway did not wait for the peer: it has caught up.
		m.behind -= from.Sub(m.until)
	}
	// Never below 0: a fast peer saves nothing up for being slow later.
	m.behind = max(0, max(0, m.behind)+waited-l.Least(int64(n)))
	m.until = to

	if n > 0 {
		m.still = 0
		// Bytes that came immediately after a long wait are subject only to the rate.
		waited = 0
	}
	m.still += waited
	switch {
	case m.still >= l.Still:
		return &Error{fmt.Sprintf("no byte was moved for %s", l.Still)}
	case m.behind > l.Behind:
		return &Error{fmt.Sprintf("slower than %d bytes a second for more than %s", l.Rate, l.Behind)}
	}
	return nil
}

// Left returns how long the peer may be waited for, from now on, before Waited finds
// it too slow.
func (m *Meter) Left(now time.Time) time.Duration {
	l := m.Limits.withDefaults()
	behind := m.behind
	if !m.until.IsZero() { // the time since the last wait, by which Waited lets it catch up
		behind -= now.Sub(m.until)
	}

	// A nanosecond more, because a peer may be exactly as far behind as allowed.
	return max(0, min(l.Still-m.still, l.Behind-max(0, behind)+time.Nanosecond))
}
