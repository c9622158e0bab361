package ws

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// together is a connection whose messages can leave in one write: while hold is set,
// written bytes are kept, and precede the first write after that. A write costs the
// processor far more than a short message does, and a tick has one message for each
// panel of a dashboard.
//
//	hold      Write(delta of a)   kept
//	          Write(delta of b)   kept
//	no hold   Write(delta of c)   one write: a, b, c
//
// Writes come one at a time, as gorilla's do: from the writer of the socket, and from its
// reader, which answers pings.
type together struct {
	net.Conn
	hold     atomic.Bool
	kept     *[]byte   // nil while nothing is kept
	deadline time.Time // of writes, as last set
}

const (
	// keptBytes bounds the kept bytes of a connection. A longer message is written immediately.
	keptBytes = 16 << 10
	// control is the bit of a frame's first byte that all control frames have.
	control = 0x08
)

// buffers hold what is kept: most connections keep nothing most of the time.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, keptBytes); return &b }}

// Write keeps b, or writes it after the kept bytes. It keeps no control frame, because
// a close frame may be the last one. The middle of a long message may look like one;
// then it is written a little sooner than need be.
func (c *together) Write(b []byte) (int, error) {
	kept := 0
	if c.kept != nil {
		kept = len(*c.kept)
	}
	fits := kept+len(b) <= keptBytes
	wait := c.hold.Load() && len(b) > 0 && b[0]&control == 0

	switch {
	case fits && wait:
		c.keep(b)
		return len(b), nil
	case kept == 0:
		return c.Conn.Write(b)
	case fits:
		c.keep(b)
		if err := c.writeKept(); err != nil {
			return 0, err
		}
		return len(b), nil
	}

	if err := c.writeKept(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetWriteDeadline sets the deadline of writes, if it is another one: gorilla sets it for each.
func (c *together) SetWriteDeadline(t time.Time) error {
	if t.Equal(c.deadline) {
		return nil
	}
	c.deadline = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets the deadlines of reads and writes.
func (c *together) SetDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetDeadline(t)
}

func (c *together) keep(b []byte) {
	if c.kept == nil {
		c.kept = buffers.Get().(*[]byte)
	}
	*c.kept = append(*c.kept, b...)
}

// writeKept writes the kept bytes. After an error the connection is unusable.
func (c *together) writeKept() error {
	_, err := c.Conn.Write(*c.kept)
	*c.kept = (*c.kept)[:0]
	buffers.Put(c.kept)
	c.kept = nil
	return err
}

// NetConn returns the connection below.
func (c *together) NetConn() net.Conn { return c.Conn }

// hijacker makes the connection that gorilla takes over a *together.
type hijacker struct {
	http.ResponseWriter
	conn *together
}

// Hijack takes over the connection of the request.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	under, ok := h.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, errors.New("stream: cannot take over the connection: want an HTTP/1.1 request")
	}
	conn, buffered, err := under.Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &together{Conn: conn}
	return h.conn, buffered, nil
}
