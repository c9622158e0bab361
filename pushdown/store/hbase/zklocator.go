package hbase

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/tsuna/gohbase/zk"
)

// errZooKeeper marks a look-up in ZooKeeper that failed.
var errZooKeeper = errors.New("ZooKeeper")

// zkLocator asks ZooKeeper where hbase:meta and the master are. gohbase's client
// opens a session for every question and cannot be interrupted, so questions
// run in goroutines of their own, one for each resource at a time, shared by
// all who ask; their connections are closed with the store.
type zkLocator struct {
	st     *Store
	client zk.Client

	mu     sync.Mutex
	asking map[zk.ResourceName]*lookup
	known  map[zk.ResourceName]string
}

type lookup struct {
	answered chan struct{}
	addr     string
	err      error
}

func newZKLocator(st *Store) *zkLocator {
	k := &zkLocator{st: st, asking: map[zk.ResourceName]*lookup{}, known: map[zk.ResourceName]string{}}
	k.client = zk.NewClient(st.cfg.Quorum, st.cfg.ZooKeeperTimeout, k.dial, st.cfg.Logger)
	return k
}

// dial connects for as long as the store is open.
func (k *zkLocator) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := k.st.life.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(k.st.life, cancel)()
	defer cancel()
	conn, err := k.st.cfg.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &boundConn{Conn: conn, release: context.AfterFunc(k.st.life, func() { conn.Close() })}, nil
}

// boundConn is a connection that is closed with the store.
type boundConn struct {
	net.Conn
	release func() bool
}

// Close closes the connection and forgets it.
func (c *boundConn) Close() error {
	c.release()
	return c.Conn.Close()
}

// address gives the "host:port" of a resource, from memory or from ZooKeeper.
func (k *zkLocator) address(ctx context.Context, resource zk.ResourceName) (string, error) {
	k.mu.Lock()
	if addr := k.known[resource]; addr != "" {
		k.mu.Unlock()
		return addr, nil
	}
	q := k.asking[resource]
	if q == nil {
		q = &lookup{answered: make(chan struct{})}
		k.asking[resource] = q
		k.st.wg.Go(func() { k.run(resource, q) })
	}
	k.mu.Unlock()
	select {
	case <-q.answered:
		return q.addr, q.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// run runs one question to its end.
func (k *zkLocator) run(resource zk.ResourceName, q *lookup) {
	q.addr, q.err = k.locate(resource)
	k.mu.Lock()
	delete(k.asking, resource)
	if q.err == nil {
		k.known[resource] = q.addr
	}
	k.mu.Unlock()
	close(q.answered)
}

// locate asks gohbase, which panics when a znode is empty.
func (k *zkLocator) locate(resource zk.ResourceName) (addr string, err error) {
	began := time.Now()
	defer func() {
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

// forget drops a remembered address that has proved wrong.
func (k *zkLocator) forget(resource zk.ResourceName, addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known[resource] == addr {
		delete(k.known, resource)
	}
}
