// Package listener serves two protocols on one port, as OpenTSDB does: a connection
// whose first byte is an upper-case letter speaks HTTP, any other the telnet
// line protocol. Source: PipelineFactory.DetectHttpOrRpc.
package listener

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"downpour/gateway/api/pace"
)

// Config says who serves what.
type Config struct {
	Telnet func(ctx context.Context, c net.Conn)
	// MaxPerAddress bounds the connections of one address; 0 is no bound.
	MaxPerAddress int
	// Handshake is how long a client may take to begin TLS. Default 10 s.
	Handshake time.Duration
	// FirstByte is how long a new connection may stay silent. Default 5 min,
	// as telnet writers may connect long before their first point.
	FirstByte time.Duration
	Log       *slog.Logger
}

// Listener splits a listener's connections. It is itself the net.Listener of the
// HTTP server.
type Listener struct {
	net.Listener
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc
	http   chan net.Conn
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[netip.Addr]int
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

// Close stops accepting and lets the telnet connections end, each after the
// lines it has already read. The HTTP server closes its own. It does not wait for
// them: the HTTP server calls it first when it shuts down, and holds a lock.
func (d *Listener) Close() error {
	d.cancel()
	return d.Listener.Close()
}

// Wait returns once the telnet connections have ended, after Close.
func (d *Listener) Wait() { d.wg.Wait() }

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
		// Out of file descriptors, most likely: others must end first.
		d.cfg.Log.Warn("cannot accept a connection", "err", err)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-d.ctx.Done():
			return
		}
	}
}

func (d *Listener) admit(c net.Conn) {
	addr := address(c)
	d.mu.Lock()
	over := d.cfg.MaxPerAddress > 0 && d.conns[addr] >= d.cfg.MaxPerAddress
	if !over {
		d.conns[addr]++
	}
	d.mu.Unlock()
	if over {
		d.cfg.Log.Warn("too many connections of one address", "address", addr, "limit", d.cfg.MaxPerAddress)
		c.Close()
		return
	}
	d.wg.Add(1)
	go d.serve(&conn{Conn: c, release: sync.OnceFunc(func() { d.release(addr) })})
}

func address(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

func (d *Listener) release(a netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns[a]--; d.conns[a] == 0 {
		delete(d.conns, a)
	}
}

// serve looks at the first byte and hands the connection over.
func (d *Listener) serve(c *conn) {
	defer d.wg.Done()
	if err := d.handshake(c); err != nil {
		c.Close()
		return
	}
	stop := context.AfterFunc(d.ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) })
	c.SetReadDeadline(time.Now().Add(d.cfg.FirstByte))
	// One byte and no more: what is not read stays with the socket, which lets
	// the client see that it was not read.
	_, err := io.ReadFull(c.Conn, c.first[:])
	if !stop() || err != nil {
		c.Close()
		return
	}
	c.SetReadDeadline(time.Time{})
	if c.first[0] < 'A' || c.first[0] > 'Z' {
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

// handshake begins TLS where the connection has it. There the client speaks
// first, so one that is silent is no telnet writer whose points are still to come.
func (d *Listener) handshake(c *conn) error {
	secured, ok := c.Conn.(interface{ HandshakeContext(context.Context) error })
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.cfg.Handshake)
	defer cancel()
	return secured.HandshakeContext(ctx)
}

// conn gives back the byte that was looked at.
type conn struct {
	net.Conn
	first   [1]byte
	given   bool
	release func()
}

// Read returns the first byte and what follows.
func (c *conn) Read(b []byte) (int, error) {
	if c.given || len(b) == 0 {
		return c.Conn.Read(b)
	}
	c.given = true
	b[0] = c.first[0]
	return 1, nil
}

// Close makes room for another connection of the address.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}

// CloseWrite ends one direction, so that an answer arrives although the client
// still sends; errors.ErrUnsupported where the connection cannot.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Abort closes with a reset, which no client takes for an end in good order.
func (c *conn) Abort() error {
	pace.ResetOnClose(c.Conn)
	return c.Close()
}
