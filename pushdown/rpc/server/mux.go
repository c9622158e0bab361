package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"downpour/pushdown/rpc/proof"
)

// protocolMux divides the connections of one listener by their first bytes: HTTP/2, which is gRPC,
// and HTTP/1, for health and metrics. Before either there may be a proof, see package proof.
type protocolMux struct {
	net.Listener
	tls   *tls.Config // nil for plain connections
	prove func(io.ReadWriter) error
	rpc   *listener
	web   *listener
	life  context.Context // of connections that are in their handshake
	end   context.CancelFunc
	work  sync.WaitGroup

	log      *slog.Logger
	logMu    sync.Mutex
	logged   time.Time // when a refusal was last logged
	unlogged int       // refusals since then
}

const (
	// refusalEvery is how often a refused handshake is logged.
	refusalEvery = time.Second
	// handshakeTimeout is how long a connection may take to show what it is.
	handshakeTimeout = 5 * time.Second
	// maxHandshakes is how many connections may be about to.
	maxHandshakes = 256
)

// http2 is how an HTTP/2 connection begins: "PRI * HTTP/2.0". No HTTP/1 method is
// PRI.
var http2 = []byte("PRI")

func newProtocolMux(l net.Listener, cfg *tls.Config, prove func(io.ReadWriter) error, log *slog.Logger) *protocolMux {
	m := &protocolMux{Listener: l, prove: prove, log: log}
	if cfg != nil {
		m.tls = withBothProtocols(cfg)
	}
	m.life, m.end = context.WithCancel(context.Background())
	m.rpc, m.web = newListener(l.Addr()), newListener(l.Addr())
	return m
}

// withBothProtocols returns a TLS configuration that negotiates the protocol. A
// client that would take HTTP/1 is a browser, curl or Prometheus, and gets it. gRPC
// offers HTTP/2 alone.
func withBothProtocols(cfg *tls.Config) *tls.Config {
	rpc, web := cfg.Clone(), cfg.Clone()
	rpc.NextProtos, web.NextProtos = []string{"h2"}, []string{"http/1.1"}
	rpc.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Contains(hello.SupportedProtos, "http/1.1") {
			return web, nil
		}
		return nil, nil // rpc itself: the client offers no HTTP/1
	}
	return rpc
}

// run accepts connections until the listener is closed, and returns why. The rpc
// and web listeners stay open.
func (m *protocolMux) run() error {
	handshakes := make(chan struct{}, maxHandshakes)
	pause := time.Duration(0)
	for {
		c, err := m.Accept()

		// Without free file descriptors accepting fails immediately: wait until some are closed.
		var n net.Error
		if errors.As(err, &n) && n.Timeout() || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			time.Sleep(pause)
			continue
		}
		if err != nil {
			return err
		}

		pause = 0
		// While maxHandshakes connections are in their handshake, no further one is accepted.
		handshakes <- struct{}{}
		m.work.Go(func() {
			defer func() { <-handshakes }()
			m.route(c)
		})
	}
}

// close closes the rpc and web listeners, and connections in their handshake.
func (m *protocolMux) close() {
	m.end()
	m.rpc.Close()
	m.web.Close()
	m.work.Wait()
}

// route reads a connection's first bytes and passes it to the listener of its protocol.
func (m *protocolMux) route(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(handshakeTimeout))
	// The end of the server ends the reads below, which know no context.
	plain := c
	stop := context.AfterFunc(m.life, func() { plain.Close() })
	defer stop()

	// Decrypted here, because what it begins with shows only then.
	certified := false
	if m.tls != nil {
		t := tls.Server(c, m.tls)
		if err := t.HandshakeContext(m.life); err != nil {
			m.refused("a TLS connection", c.RemoteAddr(), err)
			c.Close()
			return
		}
		c, certified = t, len(t.ConnectionState().PeerCertificates) > 0
	}

	head := make([]byte, len(http2)) // 3 bytes: every request of HTTP/1 has more
	_, err := io.ReadFull(c, head)
	if err == nil && m.prove != nil && string(head) == proof.Magic {
		if err = m.prove(c); err != nil {
			m.refused("a proof", c.RemoteAddr(), err)
		} else {
			_, err = io.ReadFull(c, head)
		}
	}
	if err != nil {
		c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{}) // from here on the protocol's own timeouts hold

	to := m.web
	if bytes.Equal(head, http2) {
		to = m.rpc
	}
	to.deliver(&peekedConn{Conn: c, head: head, certified: certified})
}

// refused logs a handshake that has failed, at most one a second: a client's certificate may be of
// another authority, or too old, or its tokens not ours, and the client learns little of that. A connection that closes
// without data, as a balancer's check of the port does, and the end of the server are no refusals.
func (m *protocolMux) refused(what string, peer net.Addr, err error) {
	if m.life.Err() != nil || err == io.EOF {
		return
	}
	m.logMu.Lock()
	defer m.logMu.Unlock()

	now := time.Now()
	if m.logged.Add(refusalEvery).After(now) {
		m.unlogged++
		return
	}
	m.log.Warn("refused "+what, "peer", peer.String(), "err", err, "not logged before", m.unlogged)
	m.logged, m.unlogged = now, 0
}

// peekedConn is a connection whose first bytes have been read.
type peekedConn struct {
	net.Conn
	head      []byte // the bytes not yet returned by Read
	certified bool   // the client has shown a certificate, which Config.TLS has verified
}

// Read returns the bytes that were read by route, and then what follows them.
func (c *peekedConn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// listener is a net.Listener for the connections of one protocol.
type listener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newListener(addr net.Addr) *listener {
	l := &listener{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// deliver passes a connection to Accept. It closes it if the listener is closed.
func (l *listener) deliver(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.closed:
		c.Close()
	}
}

// Accept returns the next connection of this protocol.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. The listener of both protocols stays open.
func (l *listener) Close() error {
	l.close()
	return nil
}

// Addr is that of the listener of both protocols.
func (l *listener) Addr() net.Addr { return l.addr }
