package hbasefake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"downpour/pushdown/process/network"
)

// loopback is where servers listen outside of a process's memory.
type loopback struct{ network.System }

// Ports of servers are below the ephemeral ports of the system, so that no connection or other
// listener takes the port of a stopped server.
const (
	firstPort = 10_000
	lastPort  = 14_999
)

// anyPort is the address of a server that does not have a port yet.
const anyPort = "127.0.0.1:0"

// Listen listens on loopback. If a server of another process has taken the port of a stopped one
// nevertheless, it waits until that ends.
func (loopback) Listen(_, addr string) (l net.Listener, err error) {
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

// Dial connects to a server of the cluster; it serves as hbase.Config.Dial.
func (c *Cluster) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return c.net.DialContext(ctx, network, addr)
}
