package regions

import (
	"context"
	"sync"

	"downpour/pushdown/store/hbase/calls"
)

// role is the role by which a server is looked up.
type role string

const (
	metaServer   role = "server of hbase:meta"
	activeMaster role = "active master"
)

// directory knows which server has a role: ZooKeeper, or bootstrap nodes.
type directory interface {
	// lookUp returns the "host:port" of the server with a role. It ends with the store.
	lookUp(role) (addr string, err error)
}

// locator finds the servers of hbase:meta and the master in a directory, and caches their
// addresses. A look-up in ZooKeeper cannot be interrupted. So each runs in a goroutine of
// its own, one at a time for each role, and is shared by all callers.
type locator struct {
	life      *calls.Life
	directory directory

	mu      sync.Mutex
	lookUps map[role]*roleLookUp // under way
	cached  map[role]string      // host:port
}

// roleLookUp is a look-up under way. Its result may be read once done is closed.
type roleLookUp struct {
	done chan struct{}
	addr string
	err  error
}

func newLocator(life *calls.Life, d directory) *locator {
	return &locator{life: life, directory: d, lookUps: map[role]*roleLookUp{}, cached: map[role]string{}}
}

// address returns the "host:port" of the server with a role, from the cache or from the
// directory.
func (k *locator) address(ctx context.Context, r role) (string, error) {
	k.mu.Lock()
	if addr := k.cached[r]; addr != "" {
		k.mu.Unlock()
		return addr, nil
	}
	l := k.lookUps[r]
	// Callers that come during a look-up share it.
	if l == nil {
		l = &roleLookUp{done: make(chan struct{})}
		k.lookUps[r] = l
		k.life.Run(func() { k.run(r, l) })
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
func (k *locator) run(r role, l *roleLookUp) {
	l.addr, l.err = k.directory.lookUp(r)

	k.mu.Lock()
	delete(k.lookUps, r)
	if l.err == nil {
		k.cached[r] = l.addr
	}
	k.mu.Unlock()

	close(l.done)
}

// forget drops an address that has proved wrong, unless the cache has another one
// by now.
func (k *locator) forget(r role, addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.cached[r] == addr {
		delete(k.cached, r)
	}
}
