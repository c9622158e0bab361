// Package listenertest has a listener for tests of slow clients: its connections are in
// memory, so that in testing/synctest minutes of their deadlines take no time.
package listenertest

import "net"

// Pipes is a net.Listener of connections in memory.
type Pipes struct {
	next chan net.Conn
	done chan struct{}
}

// NewPipes returns a listener. In testing/synctest call it inside the bubble.
func NewPipes() *Pipes { return &Pipes{next: make(chan net.Conn), done: make(chan struct{})} }

// Accept waits for Dial or Hand; after Close it returns net.ErrClosed.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.next:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. It is called once.
func (p *Pipes) Close() error { close(p.done); return nil }

// Addr is empty: there is no network.
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Dial returns the client's end of a new connection, once the other one is accepted.
func (p *Pipes) Dial() net.Conn {
	client, server := net.Pipe()
	p.Hand(server)
	return client
}

// Hand has Accept return c.
func (p *Pipes) Hand(c net.Conn) { p.next <- c }
