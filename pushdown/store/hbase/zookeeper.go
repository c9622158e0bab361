package hbase

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/tsuna/gohbase/zk"
)

// zkDirectory is the directory of a cluster whose clients ask ZooKeeper. gohbase's client
// opens a session for every look-up and cannot be interrupted; its connections are closed
// with the store.
type zkDirectory struct {
	st     *Store
	client zk.Client
}

func newZKDirectory(st *Store) *zkDirectory {
	z := &zkDirectory{st: st}
	z.client = zk.NewClient(st.cfg.Quorum, st.cfg.ZooKeeperTimeout, z.dial, st.cfg.Logger)
	return z
}

// dial connects to a ZooKeeper server. The connection is closed with the store.
func (z *zkDirectory) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := z.st.lifetime.Err(); err != nil {
		return nil, err
	}

	// The end of the store also ends the dial.
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(z.st.lifetime, cancel)()
	defer cancel()
	conn, err := z.st.cfg.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &boundConn{Conn: conn, unbind: context.AfterFunc(z.st.lifetime, func() { conn.Close() })}, nil
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
			err = fmt.Errorf("%w %s: %w (after %v)", errZooKeeper, z.st.cfg.Quorum, explainZooKeeper(err),
				time.Since(began).Round(time.Millisecond))
		}
	}()

	return z.client.LocateResource(resources[r].Prepend(z.st.cfg.Root))
}

// notAuthenticated ends the error of a look-up whose session ZooKeeper has closed with the
// code SESSIONCLOSEDREQUIRESASLAUTH. gohbase passes the error on as text, and go-zookeeper
// has no name for the code.
const notAuthenticated = ": unknown error: -124"

// explainZooKeeper says what to do about a fault that no other attempt will mend.
func explainZooKeeper(err error) error {
	if strings.HasSuffix(err.Error(), notAuthenticated) {
		return fmt.Errorf("%w: %w", errZooKeeperSASL, err)
	}
	return err
}
