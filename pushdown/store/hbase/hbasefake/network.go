package hbasefake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"
)

// network is where servers listen: on loopback, or in the process's own memory,
// which a test with simulated time needs.
type network struct {
	mu        sync.Mutex
	inMemory  bool
	lastPort  int
	listeners map[string]*memoryListener // by address
}

func (n *network) listen(addr string) (net.Listener, error) {
	if !n.inMemory {
		return onLoopback(addr)
	}
	n.mu.Lock()
	defer n.mu.Unlock()

	if addr == anyPort {
		n.lastPort++
		addr = fmt.Sprintf("127.0.0.1:%d", n.lastPort)
	}
	if n.listeners == nil {
		n.listeners = map[string]*memoryListener{}
	}

	l := &memoryListener{addr: addr, waiting: make(chan net.Conn, backlog), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// Ports of servers are below those that a system gives to outgoing connections, and to
// whoever asks for any port: none of these takes the port of a server that is stopped.
const (
	firstPort = 10_000
	lastPort  = 14_999
)

// onLoopback listens on loopback. If a server of another process has taken the port of a
// stopped one after all, it waits until that is gone.
func onLoopback(addr string) (l net.Listener, err error) {
	for end := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		at := addr
		if addr == anyPort {
			at = fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort+1))
		}
		l, err = net.Listen("tcp", at)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return l, err
		}
	}
}

// anyPort is the address of a server that does not have a port yet.
const anyPort = "127.0.0.1:0"

// backlog bounds the connections that wait to be accepted, as a kernel does.
const backlog = 128

// Dial connects to a server of a cluster in memory; it serves as hbase.Config.Dial.
func (c *Cluster) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	c.net.mu.Lock()
	l := c.net.listeners[addr]
	c.net.mu.Unlock()

	refused := &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	if l == nil {
		return nil, refused
	}

	mine, theirs := net.Pipe()
	// Without this, the select below might choose the backlog of a closed listener.
	select {
	case <-l.closed:
		return nil, refused
	default:
	}

	select {
	case l.waiting <- theirs:
		// If the listener was closed meanwhile, its Close may have missed the
		// connection.
		select {
		case <-l.closed:
			theirs.Close()
		default:
		}
		return mine, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// memoryListener is a listener in memory.
type memoryListener struct {
	addr    string
	waiting chan net.Conn // connections to be accepted
	once    sync.Once
	closed  chan struct{}
}

// Accept waits for a connection.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
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
func (l *memoryListener) Addr() net.Addr { return memoryAddr(l.addr) }

type memoryAddr string

// Network is a name for no network.
func (memoryAddr) Network() string { return "memory" }

// String is host and port.
func (a memoryAddr) String() string { return string(a) }
