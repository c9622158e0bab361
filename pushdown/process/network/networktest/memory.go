// Package networktest is a network in memory, for tests in simulated time.
package networktest

import (
	"context"
	"downpour/pushdown/process/network"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// Memory is a network in the process's own memory. Nothing on it waits for a kernel, so that time can be simulated:
// in a bubble of package testing/synctest, time passes while goroutines wait for each other, and not while one waits
// for a socket. The zero value is ready. Names are not looked up: an address is IP:port, "127.0.0.1:4242".
type Memory struct {
	mu        sync.Mutex
	lastPort  uint16
	listeners map[string]*memoryListener // by address
}

// backlog bounds the connections that wait to be accepted, as a kernel does.
const backlog = 128

// Listen listens at an address. Port 0 is the next one that was not given out before.
func (m *Memory) Listen(network, address string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, opError("listen", nil, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	if at.Port() == 0 {
		m.lastPort++
		at = netip.AddrPortFrom(at.Addr(), m.lastPort)
	}
	if l := m.listeners[at.String()]; l != nil && !l.isClosed() {
		return nil, opError("listen", net.TCPAddrFromAddrPort(at), syscall.EADDRINUSE)
	}
	if m.listeners == nil {
		m.listeners = map[string]*memoryListener{}
	}
	l := &memoryListener{
		at:      net.TCPAddrFromAddrPort(at),
		waiting: make(chan net.Conn, backlog),
		closed:  make(chan struct{}),
	}
	m.listeners[at.String()] = l
	return l, nil
}

// DialContext connects to the listener at an address. The connection has no buffer: a Write ends when all is read.
func (m *Memory) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	m.mu.Lock()
	l := m.listeners[address]
	m.lastPort++
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(m.lastPort)}
	m.mu.Unlock()
	if l == nil || l.isClosed() {
		return nil, opError("dial", nil, fmt.Errorf("%s: %w", address, syscall.ECONNREFUSED))
	}

	a, b := net.Pipe()
	mine, theirs := addressed{a, from, l.at}, addressed{b, l.at, from}
	select {
	case l.waiting <- theirs:
		// A Close of the listener at the same time may have missed the connection.
		if l.isClosed() {
			theirs.Close()
		}
		return mine, nil
	case <-l.closed:
		return nil, opError("dial", l.at, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, opError("dial", l.at, ctx.Err())
	}
}

func opError(op string, at net.Addr, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: at, Err: err}
}

// addressed is a connection with the addresses of its ends.
type addressed struct {
	net.Conn
	local, remote net.Addr
}

func (c addressed) LocalAddr() net.Addr  { return c.local }
func (c addressed) RemoteAddr() net.Addr { return c.remote }

// memoryListener is a listener in memory.
type memoryListener struct {
	at      *net.TCPAddr
	waiting chan net.Conn // connections to be accepted
	once    sync.Once
	closed  chan struct{}
}

func (l *memoryListener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// Accept waits for a connection.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, opError("accept", l.at, net.ErrClosed)
	case conn := <-l.waiting:
		return conn, nil
	}
}

// Close refuses further connections and closes those that wait.
func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	for {
		select {
		case conn := <-l.waiting:
			conn.Close()
		default:
			return nil
		}
	}
}

// Addr is the address that the listener was made with.
func (l *memoryListener) Addr() net.Addr { return l.at }

// Host is a machine on a network: its listeners and connections, until it is cut off.
type Host struct {
	on network.Network

	mu    sync.Mutex
	cut   bool
	runs  chan struct{} // closed unless the host is stalled
	open  map[*hostConn]bool
	ports map[*hostListener]bool
}

// NewHost returns a machine on a network.
func NewHost(on network.Network) *Host {
	h := &Host{on: on, runs: make(chan struct{}), open: map[*hostConn]bool{}, ports: map[*hostListener]bool{}}
	close(h.runs)
	return h
}

// Stall lets nothing in or out of the host until Resume is called or the host is cut off, and ends
// no connection: others see a machine that hangs.
func (h *Host) Stall() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.cut && h.isRunning() {
		h.runs = make(chan struct{})
	}
}

// Resume ends Stall.
func (h *Host) Resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.isRunning() {
		close(h.runs)
	}
}

func (h *Host) isRunning() bool {
	select {
	case <-h.runs:
		return true
	default:
		return false
	}
}

// await waits while the host is stalled.
func (h *Host) await() {
	h.mu.Lock()
	runs := h.runs
	h.mu.Unlock()
	<-runs
}

// errCut is the error of a host that was cut off.
var errCut = errors.New("the host is cut off")

// Cut ends all connections and listeners of the host, and lets it make no others: all others see it
// as dead.
func (h *Host) Cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cut = true
	if !h.isRunning() {
		close(h.runs)
	}
	for l := range h.ports {
		l.Listener.Close()
	}
	for c := range h.open {
		c.Conn.Close()
	}
}

// Listen implements network.Network.
func (h *Host) Listen(network, address string) (net.Listener, error) {
	l, err := h.on.Listen(network, address)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cut {
		l.Close()
		return nil, opError("listen", nil, errCut)
	}
	out := &hostListener{l, h}
	h.ports[out] = true
	return out, nil
}

// DialContext implements network.Network.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	h.await()
	c, err := h.on.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return h.keep(c)
}

// keep returns a connection as one of the host's.
func (h *Host) keep(c net.Conn) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cut {
		c.Close()
		return nil, opError("dial", nil, errCut)
	}
	out := &hostConn{c, h}
	h.open[out] = true
	return out, nil
}

type hostListener struct {
	net.Listener
	host *Host
}

func (l *hostListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.host.await()
	return l.host.keep(c)
}

func (l *hostListener) Close() error {
	l.host.mu.Lock()
	delete(l.host.ports, l)
	l.host.mu.Unlock()
	return l.Listener.Close()
}

type hostConn struct {
	net.Conn
	host *Host
}

// Read reads. What arrives while the host is stalled waits.
func (c *hostConn) Read(b []byte) (int, error) {
	c.host.await()
	n, err := c.Conn.Read(b)
	c.host.await()
	return n, err
}

// Write writes.
func (c *hostConn) Write(b []byte) (int, error) {
	c.host.await()
	return c.Conn.Write(b)
}

func (c *hostConn) Close() error {
	c.host.mu.Lock()
	delete(c.host.open, c)
	c.host.mu.Unlock()
	return c.Conn.Close()
}
