// Package listener serves two protocols on one port, as OpenTSDB does: a connection whose
// first byte is an upper-case letter speaks HTTP, and every other one the telnet line
// protocol. Source: PipelineFactory.DetectHttpOrRpc. A client that speaks TLS to a port
// without it, or plain to a port with TLS, gets an answer that explains it.
package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"downpour/gateway/api/pace"
)

// Config is how connections are served.
type Config struct {
	// Telnet serves a telnet connection until it ends or ctx does.
	Telnet func(ctx context.Context, c net.Conn)
	// MaxPerAddress bounds the connections of one IP address; 0 is no bound.
	MaxPerAddress int
	// Handshake is how long a client may take to begin TLS. Default 10 s.
	Handshake time.Duration
	// FirstByte is how long a new connection may stay silent. Default 5 min, because
	// telnet writers may connect long before their first point.
	FirstByte time.Duration
	Log       *slog.Logger
}

// Listener accepts connections and detects their protocols. It serves those of telnet itself, and
// is the net.Listener of the HTTP server for the others.
type Listener struct {
	net.Listener
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc
	http   chan net.Conn  // for Accept
	wg     sync.WaitGroup // of accept and of connections until HTTP has them
	logged atomic.Int64   // when a client with the wrong protocol was last logged, in Unix nanoseconds

	mu    sync.Mutex
	conns map[netip.Addr]int // open connections by address
}

// New begins to accept connections.
func New(l net.Listener, cfg Config) *Listener {
	if cfg.Handshake == 0 {
		cfg.Handshake = 10 * time.Second
	}
	if cfg.FirstByte == 0 {
		cfg.FirstByte = 5 * time.Minute
	}

	d := &Listener{Listener: l, cfg: cfg, http: make(chan net.Conn), conns: make(map[netip.Addr]int)}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.wg.Add(1)
	go d.accept()
	return d
}

// Accept returns the next HTTP connection.
func (d *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-d.http:
		return c, nil
	case <-d.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close stops accepting, and makes each telnet connection end after the lines that it
// has already read. It does not wait for them, because the HTTP server, which closes
// its own connections, calls Close first when it shuts down, with a lock held.
func (d *Listener) Close() error {
	d.cancel()
	return d.Listener.Close()
}

// Wait returns once the telnet connections have ended, after Close.
func (d *Listener) Wait() { d.wg.Wait() }

// accept accepts connections until Close.
func (d *Listener) accept() {
	defer d.wg.Done()
	for {
		c, err := d.Listener.Accept()
		if err == nil {
			d.admit(c)
			continue
		}
		if d.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return
		}

		// Most likely the process is out of file descriptors, and some must be closed
		// first.
		d.cfg.Log.Warn("cannot accept a connection", "err", err)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-d.ctx.Done():
			return
		}
	}
}

// admit serves a connection, or closes it if its address has too many.
func (d *Listener) admit(c net.Conn) {
	addr := address(c)
	d.mu.Lock()
	over := d.cfg.MaxPerAddress > 0 && d.conns[addr] >= d.cfg.MaxPerAddress
	if !over {
		d.conns[addr]++
	}
	d.mu.Unlock()

	if over {
		d.cfg.Log.Warn("too many connections from one address", "address", addr, "limit", d.cfg.MaxPerAddress)
		c.Close()
		return
	}

	d.wg.Add(1)
	// A connection may be closed more than once, and counts once.
	go d.serve(&conn{Conn: c, release: sync.OnceFunc(func() { d.release(addr) })})
}

// address returns the client's IP address without its port.
func address(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap() // ::ffff:192.0.2.1 is 192.0.2.1
	}
	return netip.Addr{}
}

// release counts a connection of an address as closed.
func (d *Listener) release(a netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns[a]--; d.conns[a] == 0 {
		delete(d.conns, a)
	}
}

// serve reads the first byte and passes the connection to its protocol's server.
func (d *Listener) serve(c *conn) {
	defer d.wg.Done()
	if err := d.handshake(c); err != nil {
		d.answerPlain(err)
		c.Close()
		return
	}

	// Close of the listener ends the wait for the first byte.
	stop := context.AfterFunc(d.ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) })
	c.SetReadDeadline(time.Now().Add(d.cfg.FirstByte))
	// Only one byte is read. Unread bytes then stay in the socket, and its close shows the client
	// that they were not read.
	_, err := io.ReadFull(c.Conn, c.first[:])
	// Once Close has begun to set that deadline it cannot be stopped, and would cut off the
	// reads of the protocol's server too.
	if !stop() || err != nil {
		c.Close()
		return
	}
	c.SetReadDeadline(time.Time{})

	_, secured := c.Conn.(*tls.Conn)
	switch {
	case c.first[0] == recordHandshake && !secured: // no command of telnet begins so
		d.answerTLS(c)
		c.Close()
		return
	case !isVerb(c.first[0]):
		d.cfg.Telnet(d.ctx, c)
		c.Close()
		return
	}

	select {
	case d.http <- c:
	case <-d.ctx.Done():
		c.Close()
	}
}

// handshake begins TLS if the connection has it. In TLS the client speaks first, so
// its time is short: a silent client cannot be a telnet writer without points yet.
func (d *Listener) handshake(c *conn) error {
	secured, ok := c.Conn.(interface{ HandshakeContext(context.Context) error })
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.cfg.Handshake)
	defer cancel()
	return secured.HandshakeContext(ctx) //fault:silent-before-tls TestDoor_silent
}

// conn is a connection whose first byte was already read; Read returns it again.
type conn struct {
	net.Conn
	first    [1]byte
	returned bool // whether Read has returned first
	release  func()
}

// Read returns the first byte, then what follows.
func (c *conn) Read(b []byte) (int, error) {
	if c.returned || len(b) == 0 {
		return c.Conn.Read(b)
	}
	c.returned = true
	b[0] = c.first[0]
	return 1, nil
}

// Close closes the connection, which no longer counts for its address.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}

// CloseWrite closes the gateway's direction, so that an answer arrives although the
// client still sends. It returns errors.ErrUnsupported if the connection cannot.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Abort closes the connection with a reset, which no client mistakes for a regular end.
func (c *conn) Abort() error {
	pace.ResetOnClose(c.Conn)
	return c.Close()
}
