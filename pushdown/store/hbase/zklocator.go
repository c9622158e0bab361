package hbase

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/tsuna/gohbase/zk"
)

// zkLocator finds the servers of hbase:meta and the master in ZooKeeper, and
// caches their addresses. gohbase's client opens a session for every look-up and
// cannot be interrupted. So a look-up runs in a goroutine of its own, one at a time
// for each resource, and is shared by all callers; its connections are closed with
// the store.
type zkLocator struct {
	st     *Store
	client zk.Client

	mu      sync.Mutex
	lookUps map[zk.ResourceName]*zkLookUp // under way
	cached  map[zk.ResourceName]string    // host:port
}

// zkLookUp is a look-up under way. Its result may be read once done is closed.
type zkLookUp struct {
	done chan struct{}
	addr string
	err  error
}

func newZKLocator(st *Store) *zkLocator {
	k := &zkLocator{st: st, lookUps: map[zk.ResourceName]*zkLookUp{}, cached: map[zk.ResourceName]string{}}
	k.client = zk.NewClient(st.cfg.Quorum, st.cfg.ZooKeeperTimeout, k.dial, st.cfg.Logger)
	return k
}

// dial connects to a ZooKeeper server. The connection is closed with the store.
func (k *zkLocator) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := k.st.lifetime.Err(); err != nil {
		return nil, err
	}

	// The end of the store also ends the dial.
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(k.st.lifetime, cancel)()
	defer cancel()
	conn, err := k.st.cfg.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &boundConn{Conn: conn, unbind: context.AfterFunc(k.st.lifetime, func() { conn.Close() })}, nil
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

// address returns the "host:port" of a resource, from the cache or from ZooKeeper.
func (k *zkLocator) address(ctx context.Context, resource zk.ResourceName) (string, error) {
	k.mu.Lock()
	if addr := k.cached[resource]; addr != "" {
		k.mu.Unlock()
		return addr, nil
	}
	l := k.lookUps[resource]
	// Whoever comes while a look-up is under way shares it.
	if l == nil {
		l = &zkLookUp{done: make(chan struct{})}
		k.lookUps[resource] = l
		k.st.wg.Go(func() { k.run(resource, l) })
	}
	k.mu.Unlock()

	select {
	case <-l.done:
		return l.addr, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// run makes a look-up and publishes its result.
func (k *zkLocator) run(resource zk.ResourceName, l *zkLookUp) {
	l.addr, l.err = k.query(resource)

	k.mu.Lock()
	delete(k.lookUps, resource)
	if l.err == nil {
		k.cached[resource] = l.addr
	}
	k.mu.Unlock()

	close(l.done)
}

// query reads the address of a resource from ZooKeeper.
func (k *zkLocator) query(resource zk.ResourceName) (addr string, err error) {
	began := time.Now()
	defer func() {
		// gohbase panics if a znode is empty.
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = fmt.Errorf("%w %s: %w (after %v)", errZooKeeper, k.st.cfg.Quorum, err,
				time.Since(began).Round(time.Millisecond))
		}
	}()

	return k.client.LocateResource(resource.Prepend(k.st.cfg.Root))
}

// forget drops an address that has proved wrong, unless the cache has another one
// by now.
func (k *zkLocator) forget(resource zk.ResourceName, addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.cached[resource] == addr {
		delete(k.cached, resource)
	}
}
