package regions

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"downpour/pushdown/store/hbase/calls"

	"github.com/tsuna/gohbase/zk"
)

// zkDirectory is the directory of a cluster whose clients use ZooKeeper. gohbase's client
// opens a session for every look-up and cannot be interrupted; its connections are closed
// with the store.
type zkDirectory struct {
	cfg  *Config
	life *calls.Life

	mu       sync.Mutex
	nameless map[string]bool // servers whose names had no address when they were last looked up
}

func newZKDirectory(cfg *Config, life *calls.Life) *zkDirectory {
	return &zkDirectory{cfg: cfg, life: life, nameless: map[string]bool{}}
}

// namesTimeout bounds the look-up of the servers' names. One that is known takes milliseconds.
const namesTimeout = 3 * time.Second

// servers returns the addresses of ZooKeeper's servers, and the fault of those whose names have
// none. The client resolves names, too, but gives up if a single one has no address; so it gets
// addresses.
func (z *zkDirectory) servers() (addresses []string, err error) {
	ctx, cancel := context.WithTimeout(z.life.Context(), namesTimeout)
	defer cancel()
	servers := strings.Split(z.cfg.Quorum, ",")
	found, errs := make([][]string, len(servers)), make([]error, len(servers))
	var all sync.WaitGroup
	for i, server := range servers {
		all.Go(func() { found[i], errs[i] = z.lookUpServer(ctx, server) })
	}
	all.Wait()
	return slices.Concat(found...), errors.Join(errs...)
}

// lookUpServer returns the addresses of a server.
func (z *zkDirectory) lookUpServer(ctx context.Context, server string) (addresses []string, err error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	addresses, err = z.cfg.LookUpHost(ctx, host)
	for i, address := range addresses {
		addresses[i] = net.JoinHostPort(address, port)
	}
	if err == nil && len(addresses) == 0 {
		err = fmt.Errorf("%s has no address", server)
	}
	if z.changes(server, err != nil) && err != nil && !z.life.Ended() {
		z.cfg.Calls.Logger.Warn("cannot resolve the name of a ZooKeeper server", "server", server, "err", err)
	}
	return addresses, err
}

// changes keeps whether a server has no address, and reports whether that is new.
func (z *zkDirectory) changes(server string, nameless bool) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	before := z.nameless[server]
	z.nameless[server] = nameless
	return before != nameless
}

// dial connects to a ZooKeeper server. The connection is closed with the store.
func (z *zkDirectory) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := z.life.Context().Err(); err != nil {
		return nil, err
	}

	// The end of the store also ends the dial.
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(z.life.Context(), cancel)()
	defer cancel()
	conn, err := z.cfg.Calls.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &boundConn{Conn: conn, unbind: context.AfterFunc(z.life.Context(), func() { conn.Close() })}, nil
}

// boundConn is a connection that is closed with the store.
type boundConn struct {
	net.Conn
	unbind func() bool // releases the store's reference to the connection
}

// Close closes the connection before the store is closed.
func (c *boundConn) Close() error {
	c.unbind()
	return c.Conn.Close()
}

// resources are the znodes of the roles.
var resources = map[role]zk.ResourceName{metaServer: zk.Meta, activeMaster: zk.Master}

// lookUp reads the address of a server from ZooKeeper.
func (z *zkDirectory) lookUp(r role) (addr string, err error) {
	began := time.Now()
	defer func() {
		// gohbase panics if a znode is empty.
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = fmt.Errorf("%w %s: %w (after %v)", errZooKeeper, z.cfg.Quorum, explainZooKeeper(err),
				time.Since(began).Round(time.Millisecond))
		}
	}()

	servers, err := z.servers()
	if len(servers) == 0 {
		return "", err
	}
	client := zk.NewClient(strings.Join(servers, ","), z.cfg.ZooKeeperTimeout, z.dial, z.cfg.Calls.Logger)
	return client.LocateResource(resources[r].Prepend(z.cfg.Root))
}

// notAuthenticated ends the error of a look-up whose session ZooKeeper has closed with the
// code SESSIONCLOSEDREQUIRESASLAUTH. gohbase passes the error on as text, and go-zookeeper
// has no name for the code.
const notAuthenticated = ": unknown error: -124"

// explainZooKeeper adds what to do about a fault that no other attempt will fix.
func explainZooKeeper(err error) error {
	if strings.HasSuffix(err.Error(), notAuthenticated) {
		return fmt.Errorf("%w: %w", errZooKeeperSASL, err)
	}
	return err
}
