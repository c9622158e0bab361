package pace

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Listen returns a listener whose connections are of type *Conn.
func Listen(l net.Listener, limits Limits) net.Listener {
	return listener{l, limits.withDefaults()}
}

type listener struct {
	net.Listener
	limits Limits
}

// Accept returns the next connection as a *Conn.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return NewConn(c, l.limits), nil
}

// Conn is a connection whose writes take as long as the peer needs, within the
// limits. Deadlines that its user sets hold as well.
type Conn struct {
	net.Conn

	writing sync.Mutex // held by a Write
	meter   Meter

	mu       sync.Mutex
	deadline time.Time // set by the user; zero is none
	look     time.Time // when the current write wakes up to check the peer
}

// NewConn applies limits to the writes of a connection.
func NewConn(c net.Conn, limits Limits) *Conn {
	return &Conn{Conn: c, meter: Meter{Limits: limits.withDefaults()}}
}

const (
	// pieceBytes is how much is written in one call.
	pieceBytes = 64 << 10
	// looks is how often a write is tried again within Limits.Still. The system wakes
	// a writer only when a good part of the socket's buffer is free, up to megabytes,
	// but takes a few bytes from a new write at any time. Without a new write a slow
	// peer would seem to have stopped.
	looks = 4
)

// Write writes all of b. The error is an *Error if the peer was too slow.
func (c *Conn) Write(b []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()

	for {
		k, err := c.writePiece(b[n:min(n+pieceBytes, len(b))])
		n += k
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// writePiece writes all of b, and wakes up now and then to check the peer.
func (c *Conn) writePiece(b []byte) (n int, err error) {
	for {
		from := time.Now()
		look := min(c.meter.Left(from), c.meter.Still/looks)
		if err := c.arm(from.Add(look)); err != nil {
			return n, err
		}

		k, err := c.Conn.Write(b[n:])
		n += k
		now := time.Now()
		tooSlow := c.meter.Waited(from, now, k)
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded): // all is written, however late, or the connection is broken
			return n, err
		case c.expired(now): // the user's deadline
			return n, err
		case tooSlow != nil:
			return n, tooSlow
		}
	}
}

// arm sets the deadline of the next write, unless the user's is earlier.
func (c *Conn) arm(look time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.look = look
	return c.setLocked()
}

// setLocked sets the earlier of the two deadlines. REQUIRES: mu is held.
func (c *Conn) setLocked() error {
	if !c.deadline.IsZero() && c.deadline.Before(c.look) {
		return c.Conn.SetWriteDeadline(c.deadline)
	}
	return c.Conn.SetWriteDeadline(c.look)
}

// expired reports whether the user's deadline has passed.
func (c *Conn) expired(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return !c.deadline.IsZero() && !c.deadline.After(now)
}

// SetWriteDeadline bounds writes, also a current one, in addition to the limits.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.deadline = t
	return c.setLocked()
}

// SetDeadline bounds reads and writes.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.Conn.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// CloseWrite closes the gateway's direction, or returns errors.ErrUnsupported.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// NetConn returns the underlying connection.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// ResetOnClose makes the close of a TCP connection a reset, which no client mistakes for a regular
// end. It finds the TCP connection below TLS and other layers.
func ResetOnClose(c net.Conn) {
	for {
		switch under := c.(type) {
		case *net.TCPConn:
			under.SetLinger(0)
			return
		case interface{ NetConn() net.Conn }:
			c = under.NetConn()
		default:
			return
		}
	}
}
