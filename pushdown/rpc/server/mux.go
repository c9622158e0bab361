package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// port divides the connections of one listener by what they begin with: HTTP/2,
// which is gRPC, and HTTP/1, which asks for health and metrics.
type port struct {
	net.Listener
	tls  *tls.Config
	rpc  *door
	web  *door
	life context.Context // of connections that are being looked at
	end  context.CancelFunc
	work sync.WaitGroup
}

// greeting is how long a connection may take to show what it is, and how many
// may be about to.
const (
	greeting = 5 * time.Second
	greeted  = 256
)

// http2 is how an HTTP/2 connection begins: "PRI * HTTP/2.0". No HTTP/1 method
// is PRI.
var http2 = []byte("PRI")

func newPort(l net.Listener, cfg *tls.Config) *port {
	p := &port{Listener: l}
	if cfg != nil {
		p.tls = forBoth(cfg)
	}
	p.life, p.end = context.WithCancel(context.Background())
	p.rpc, p.web = newDoor(l.Addr()), newDoor(l.Addr())
	return p
}

// forBoth adds the choice of the protocol. A client that would take HTTP/1 is a
// browser, curl or Prometheus and gets it; gRPC offers HTTP/2 alone.
func forBoth(cfg *tls.Config) *tls.Config {
	rpc, web := cfg.Clone(), cfg.Clone()
	rpc.NextProtos, web.NextProtos = []string{"h2"}, []string{"http/1.1"}
	rpc.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Contains(hello.SupportedProtos, "http/1.1") {
			return web, nil
		}
		return nil, nil
	}
	return rpc
}

// run accepts until the listener is closed, and returns why. The doors stay
// open.
func (p *port) run() error {
	deciding := make(chan struct{}, greeted)
	pause := time.Duration(0)
	for {
		c, err := p.Accept()
		var n net.Error
		if errors.As(err, &n) && n.Timeout() || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			time.Sleep(pause) // until somebody gives files back
			continue
		}
		if err != nil {
			return err
		}
		pause = 0
		deciding <- struct{}{}
		p.work.Go(func() {
			defer func() { <-deciding }()
			p.admit(c)
		})
	}
}

// close ends both doors, and connections that are being looked at.
func (p *port) close() {
	p.end()
	p.rpc.Close()
	p.web.Close()
	p.work.Wait()
}

// admit looks at a connection's first bytes and hands it on.
func (p *port) admit(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(greeting))
	stop := context.AfterFunc(p.life, func() { c.Close() })
	defer stop()
	if p.tls != nil {
		t := tls.Server(c, p.tls)
		if t.HandshakeContext(p.life) != nil {
			c.Close()
			return
		}
		c = t
	}
	head := make([]byte, len(http2))
	for n := 0; n < len(head); {
		k, err := c.Read(head[n:])
		if n += k; err != nil {
			c.Close()
			return
		}
	}
	_ = c.SetDeadline(time.Time{})
	to := p.web
	if bytes.Equal(head, http2) {
		to = p.rpc
	}
	to.hand(&begun{Conn: c, head: head})
}

// begun is a connection of which some bytes have been read.
type begun struct {
	net.Conn
	head []byte
}

// Read gives those bytes first.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.head) > 0 {
		n := copy(p, b.head)
		b.head = b.head[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}

// door is a listener for the connections of one kind.
type door struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newDoor(addr net.Addr) *door {
	d := &door{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
	d.close = sync.OnceFunc(func() { close(d.closed) })
	return d
}

func (d *door) hand(c net.Conn) {
	select {
	case d.conns <- c:
	case <-d.closed:
		c.Close()
	}
}

// Accept returns the next connection of this kind.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. The listener that both kinds come from stays open.
func (d *door) Close() error {
	d.close()
	return nil
}

// Addr is that of the listener.
func (d *door) Addr() net.Addr { return d.addr }
