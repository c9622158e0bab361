package hbase

import (
	"context"
	"time"

	"downpour/pushdown/process/list"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
)

// Store is one HBase cluster. It implements store.Store and store.Admin.
type Store struct {
	cfg  Config
	life *calls.Life

	servers *calls.Pool // region servers
	masters *calls.Pool
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
	serverAdmins *calls.Pool // AdminService of region servers
	marks        markTable
	dearMarks    dearSpans
	health       clusterHealth
	opened       time.Time
	now          func() int64 // a test's clock instead of clock's own; else nil
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Admin = (*Store)(nil)
)

// Open prepares a store. It does not connect: a cluster that is down now may
// be up for the first call.
func Open(cfg Config) (*Store, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	list.Warn(cfg.Logger, "DOWNPOUR_STORE", cfg.Unusable)

	st := &Store{cfg: cfg, life: calls.NewLife(), opened: time.Now(), regions: newRegionCache(), nonces: newNonces(), health: newClusterHealth()}
	calling := cfg.calls()
	st.servers = calls.NewPool(calling, st.life, calls.RegionService)
	st.masters = calls.NewPool(calling, st.life, calls.MasterService)
	st.masters.OfMasters = true
	st.serverAdmins = calls.NewPool(calling, st.life, calls.AdminService)
	if len(cfg.Nodes) > 0 {
		st.nodes = newBootstrapNodes(st)
		st.locator = newLocator(st, st.nodes)
	} else {
		st.locator = newLocator(st, newZKDirectory(st))
	}
	if cfg.Security != nil {
		st.life.Run(func() { cfg.Security.Client.Keep(st.life.Context()) })
	}
	return st, nil
}

// Close ends every operation with store.ErrClosed, closes the connections and
// waits for the store's goroutines.
func (st *Store) Close() error {
	st.life.End()
	st.closeConnections()
	st.life.Wait()

	// The last operations may have opened connections meanwhile.
	st.closeConnections()
	return nil
}

// closeConnections closes the connections to all servers.
func (st *Store) closeConnections() {
	st.servers.CloseAll()
	st.masters.CloseAll()
	st.serverAdmins.CloseAll()
	if st.nodes != nil {
		st.nodes.closeAll()
	}
}

// call sends a call to the server of loc and waits for the reply. It makes one
// attempt. After a failure it drops what has proved wrong (see invalidate), so
// that the next attempt starts afresh.
func (st *Store) call(ctx context.Context, loc *location, call *calls.Call) error {
	_, err := st.callConn(ctx, loc, call)
	return err
}

// callConn is like call and also returns the connection that the call was sent
// on, nil if it was not sent.
func (st *Store) callConn(ctx context.Context, loc *location, call *calls.Call) (*calls.Conn, error) {
	c, err := st.servers.Get(ctx, loc.addr)
	if err != nil {
		st.invalidate(loc, c, err)
		return c, err
	}
	return c, st.callOn(ctx, c, loc, call)
}

// callOn makes one attempt at a call to a region, on a connection to its server.
func (st *Store) callOn(ctx context.Context, c *calls.Conn, loc *location, call *calls.Call) error {
	st.send(c, loc, call)
	err := c.Wait(ctx, call)
	st.invalidate(loc, c, err)
	return err
}

// send sends a call to a region, on a connection to its server.
func (st *Store) send(c *calls.Conn, loc *location, call *calls.Call) {
	call.Moved = func(ctx context.Context) bool { return st.regionMoved(ctx, loc) }
	c.Send(call)
}

// invalidate drops the cached locations and the connection that the outcome of
// an attempt shows to be wrong. c may be nil; a nil err drops nothing.
func (st *Store) invalidate(loc *location, c *calls.Conn, err error) {
	if err == nil {
		return
	}

	// Whatever the failure, hbase:meta may have moved: the locator is cheap to ask.
	if loc.table == metaTable {
		st.locator.forget(metaServer, loc.addr)
	}

	switch calls.Classify(err) {
	case calls.ClassRelocate, calls.ClassReopen, calls.ClassUnknown:
		st.regions.forget(loc)
	case calls.ClassReconnect:
		st.regions.forgetServer(loc.addr)
		// The connection stays if only this call is lost: others on it may still
		// be answered.
		if lost, ok := err.(*calls.LostError); c != nil && (!ok || !lost.CallOnly) {
			c.Drop()
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
	prepare func(ctx context.Context, loc *location) *calls.Call) (*calls.Call, error) {
	if err := st.life.Begin(); err != nil {
		return nil, err
	}
	defer st.life.Done()

	retry := st.newRetrier(ctx, table)
	for {
		loc, err := st.locate(ctx, table, key)
		if err == nil {
			call := prepare(ctx, loc)
			if err = st.call(ctx, loc, call); err == nil {
				return call, nil
			}
			if lost, ok := err.(*calls.LostError); ok && policy == sendOnce {
				return nil, retry.unknownOutcome(lost)
			}
		}

		if err := retry.afterFailure(err); err != nil {
			return nil, err
		}
	}
}
