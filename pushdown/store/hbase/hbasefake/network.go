package hbasefake

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// network is where servers listen: loopback, or the process's own memory, which
// a test with simulated time needs.
type network struct {
	mu       sync.Mutex
	inMemory bool
	last     int
	doors    map[string]*door
}

func (n *network) listen(addr string) (net.Listener, error) {
	if !n.inMemory {
		return net.Listen("tcp", addr)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr == anyPort {
		n.last++
		addr = fmt.Sprintf("127.0.0.1:%d", n.last)
	}
	if n.doors == nil {
		n.doors = map[string]*door{}
	}
	d := &door{addr: addr, callers: make(chan net.Conn, backlog), closed: make(chan struct{})}
	n.doors[addr] = d
	return d, nil
}

// anyPort is the address of a server that has none yet.
const anyPort = "127.0.0.1:0"

// backlog is how many connections wait to be accepted, as a kernel lets them.
const backlog = 128

// Dial connects to a server of a cluster in memory, for Config.Dial.
func (c *Cluster) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	c.net.mu.Lock()
	d := c.net.doors[addr]
	c.net.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	if d == nil {
		return nil, refused
	}
	mine, theirs := net.Pipe()
	select {
	case <-d.closed:
		return nil, refused
	default:
	}
	select {
	case d.callers <- theirs:
		select {
		case <-d.closed: // perhaps after the last look at who waits
			theirs.Close()
		default:
		}
		return mine, nil
	case <-d.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// door is a listener in memory.
type door struct {
	addr    string
	callers chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

// Accept waits for a caller.
func (d *door) Accept() (net.Conn, error) {
	select {
	case <-d.closed:
		return nil, net.ErrClosed
	case conn := <-d.callers:
		return conn, nil
	}
}

// Close refuses further callers, those that wait too.
func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	for {
		select {
		case conn := <-d.callers:
			conn.Close()
		default:
			return nil
		}
	}
}

// Addr is where the door is.
func (d *door) Addr() net.Addr { return doorAddr(d.addr) }

type doorAddr string

// Network is no network.
func (doorAddr) Network() string { return "memory" }

// String is host and port.
func (a doorAddr) String() string { return string(a) }
