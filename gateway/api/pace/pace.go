// Package pace tells a slow peer from one that is gone or means harm. A client
// that reads a large answer, or sends a large body, may take as long as it
// needs; what it may not do is hold the memory of its request for ever. So two
// bounds stand, whatever the size:
//
//	10 s    without any byte
//	1 min   behind 16 KiB a second
//
// A peer falls behind while somebody waits for it, and catches up by the bytes
// that it moves and by the time in which nobody waits. 15 MiB may take 17
// minutes; a byte now and then is over after one.
//
// Conn judges what is written, beneath TLS, so that every protocol of the port
// has the same bounds. Meter is for whoever reads.
package pace

import (
	"fmt"
	"os"
	"time"
)

// Limits are the bounds of a peer. Zero values take the defaults.
type Limits struct {
	Still  time.Duration // without a byte; 10 s
	Behind time.Duration // that a peer may be behind Rate; 1 min
	Rate   int64         // bytes a second; 16 KiB
}

// withDefaults fills in what is not set.
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

// Least is the time that n bytes take at the least rate.
func (l Limits) Least(n int64) time.Duration {
	l = l.withDefaults()
	return time.Duration(float64(n) / float64(l.Rate) * float64(time.Second))
}

// Error says that a peer was too slow. It is a timeout in the sense of package
// net, and an os.ErrDeadlineExceeded.
type Error struct{ reason string }

// Error says in which way.
func (e *Error) Error() string { return e.reason }

// Timeout is true.
func (e *Error) Timeout() bool { return true }

// Temporary is false: what was under way is cut in the middle.
func (e *Error) Temporary() bool { return false }

// Is makes it an os.ErrDeadlineExceeded.
func (e *Error) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// Meter keeps account of one peer in one direction. The zero value has the
// default limits. It is for one goroutine at a time.
type Meter struct {
	Limits
	behind time.Duration
	still  time.Duration // that was waited since the last byte
	until  time.Time     // end of the last wait
}

// Waited takes in that the peer was waited for, from one time to another, and
// moved n bytes meanwhile. The error, an *Error, says that it is too slow.
func (m *Meter) Waited(from, to time.Time, n int) error {
	l := m.Limits.withDefaults()
	waited := to.Sub(from)
	if !m.until.IsZero() {
		m.behind -= from.Sub(m.until)
	}
	m.behind = max(0, max(0, m.behind)+waited-l.Least(int64(n)))
	m.until = to

	if n > 0 {
		m.still = 0
		// What came in one piece after a long wait is judged by the rate alone.
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

// Left is how long the peer may be waited for from now on before Waited refuses
// it.
func (m *Meter) Left(now time.Time) time.Duration {
	l := m.Limits.withDefaults()
	behind := m.behind
	if !m.until.IsZero() {
		behind -= now.Sub(m.until)
	}
	// A nanosecond more: exactly as far behind as allowed is allowed.
	return max(0, min(l.Still-m.still, l.Behind-max(0, behind)+time.Nanosecond))
}
