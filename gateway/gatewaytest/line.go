package gatewaytest

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
)

// halfCloser is a connection of TCP or TLS.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// Line is a telnet connection.
type Line struct {
	halfCloser
	t  *testing.T
	In *bufio.Reader
}

// Address is where the gateway listens.
func (b *Bench) Address() string { return Address(b.Gateway) }

// Address is where a gateway listens.
func Address(g *gateway.Server) string {
	_, rest, _ := strings.Cut(g.URL(), "://")
	return strings.TrimSuffix(rest, "/")
}

// Dial opens a connection.
func (b *Bench) Dial() *Line {
	b.Helper()
	var c net.Conn
	var err error
	if b.TLS != nil {
		c, err = tls.Dial("tcp", b.Address(), b.TLS)
	} else {
		c, err = net.Dial("tcp", b.Address())
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(Patience))
	return &Line{c.(halfCloser), b.T, bufio.NewReader(c)}
}

// Rest half-closes and returns everything until the server closes.
func (l *Line) Rest() string {
	l.t.Helper()
	l.CloseWrite()
	text, err := io.ReadAll(l.In)
	if err != nil {
		l.t.Fatalf("after %q: %v", text, err)
	}
	return string(text)
}

// Next returns the next line of the server.
func (l *Line) Next() string {
	l.t.Helper()
	text, err := l.In.ReadString('\n')
	if err != nil {
		l.t.Fatalf("after %q: %v", text, err)
	}
	return strings.TrimSuffix(text, "\n")
}
