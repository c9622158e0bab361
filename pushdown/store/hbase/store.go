package hbase

import (
	"context"
	"sync"
	"time"

	"downpour/pushdown/process/list"
	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/region"
)

// Store is one HBase cluster. It implements store.Store.
type Store struct {
	cfg      Config
	lifetime context.Context // ends when the store is closed
	cancel   context.CancelFunc
	wg       sync.WaitGroup // operations and their goroutines
	closing  sync.RWMutex   // held for writing while lifetime is ended

	servers *pool // region servers
	masters *pool
	locator *locator
	nodes   *bootstrapNodes // nil if ZooKeeper is asked
	regions *regionCache
	nonces  nonces
	pacer   pacer

	// For version tokens.
	history      regionHistory
	openings     openingCache
	catalogReads catalogReads

	// For version tokens with ProofTimestamps.
	serverAdmins *pool // AdminService of region servers
	marks        markTable
	dearMarks    dearSpans
	health       clusterHealth
	opened       time.Time
	now          func() int64 // a test's clock instead of clock's own; else nil
}

// Open prepares a store. It does not connect: a cluster that is down now may
// be up for the first call.
func Open(cfg Config) (*Store, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	list.Warn(cfg.Logger, "DOWNPOUR_STORE", cfg.Unusable)

	st := &Store{cfg: cfg, opened: time.Now(), regions: newRegionCache(), nonces: newNonces(), health: newClusterHealth()}
	st.lifetime, st.cancel = context.WithCancel(context.Background())
	st.servers = newPool(st, region.RegionClient, st.regionMoved)
	st.masters = newPool(st, region.MasterClient, st.masterMoved)
	st.masters.ofMasters = true
	st.serverAdmins = newPool(st, "AdminService", st.regionMoved)
	if len(cfg.Nodes) > 0 {
		st.nodes = newBootstrapNodes(st)
		st.locator = newLocator(st, st.nodes)
	} else {
		st.locator = newLocator(st, newZKDirectory(st))
	}
	if cfg.Security != nil {
		st.wg.Go(func() { cfg.Security.Client.Keep(st.lifetime) })
	}
	return st, nil
}

// Close ends every operation with store.ErrClosed, closes the connections and
// waits for the store's goroutines.
func (st *Store) Close() error {
	// With the lock, no operation can begin between its check of the lifetime and
	// its st.wg.Add.
	st.closing.Lock()
	st.cancel()
	st.closing.Unlock()

	st.closeConnections()
	st.wg.Wait()

	// The last operations may have opened connections meanwhile.
	st.closeConnections()
	return nil
}

// closeConnections closes the connections to all servers.
func (st *Store) closeConnections() {
	st.servers.closeAll()
	st.masters.closeAll()
	st.serverAdmins.closeAll()
	if st.nodes != nil {
		st.nodes.closeAll()
	}
}

// beginOperation registers an operation, or returns store.ErrClosed. The caller
// ends the operation with st.wg.Done.
func (st *Store) beginOperation() error {
	st.closing.RLock()
	defer st.closing.RUnlock()

	if st.lifetime.Err() != nil {
		return store.ErrClosed
	}
	st.wg.Add(1)
	return nil
}

// call sends a call to the server of loc and waits for the reply. It makes one
// attempt. After a failure it drops what has proved wrong (see invalidate), so
// that the next attempt starts afresh.
func (st *Store) call(ctx context.Context, loc *location, call *rpc) error {
	_, err := st.callConn(ctx, loc, call)
	return err
}

// callConn is like call and also returns the connection that the call was sent
// on, nil if it was not sent.
func (st *Store) callConn(ctx context.Context, loc *location, call *rpc) (*conn, error) {
	c, err := st.servers.get(ctx, loc.addr)
	if err != nil {
		st.invalidate(loc, c, err)
		return c, err
	}
	return c, st.callOn(ctx, c, loc, call)
}

// callOn makes one attempt at a call to a region, on a connection to its server.
func (st *Store) callOn(ctx context.Context, c *conn, loc *location, call *rpc) error {
	call.loc = loc
	st.servers.send(c, call)
	err := st.servers.wait(ctx, c, call)
	st.invalidate(loc, c, err)
	return err
}

// invalidate drops the cached locations and the connection that the outcome of
// an attempt shows to be wrong. c may be nil; a nil err drops nothing.
func (st *Store) invalidate(loc *location, c *conn, err error) {
	if err == nil {
		return
	}

	// Whatever the failure, hbase:meta may have moved: the locator is cheap to ask.
	if loc.table == metaTable {
		st.locator.forget(metaServer, loc.addr)
	}

	switch classify(err) {
	case classRelocate, classReopen, classUnknown:
		st.regions.forget(loc)
	case classReconnect:
		st.regions.forgetServer(loc.addr)
		// The connection stays if only this call is lost: others on it may still
		// be answered.
		if lost, ok := err.(*lostError); c != nil && (!ok || !lost.callOnly) {
			st.servers.drop(c)
		}
	}
}

// resendPolicy says whether a call may be sent again if it was sent and its
// outcome is unknown.
type resendPolicy bool

const (
	resendLost resendPolicy = true  // sent again: the server recognizes a repetition
	sendOnce   resendPolicy = false // errUnknownOutcome instead
)

// callRow sends a call to the region of key, attempt after attempt, until it
// succeeds or ctx ends. prepare makes the call of one attempt. It returns the call
// with its reply.
func (st *Store) callRow(ctx context.Context, table string, key []byte, policy resendPolicy,
	prepare func(ctx context.Context, loc *location) *rpc) (*rpc, error) {
	if err := st.beginOperation(); err != nil {
		return nil, err
	}
	defer st.wg.Done()

	retry := st.newRetrier(ctx, table)
	for {
		loc, err := st.locate(ctx, table, key)
		if err == nil {
			call := prepare(ctx, loc)
			if err = st.call(ctx, loc, call); err == nil {
				return call, nil
			}
			if lost, ok := err.(*lostError); ok && policy == sendOnce {
				return nil, retry.unknownOutcome(lost)
			}
		}

		if err := retry.afterFailure(err); err != nil {
			return nil, err
		}
	}
}
