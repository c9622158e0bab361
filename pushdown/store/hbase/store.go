package hbase

import (
	"context"
	"sync"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/region"
	"github.com/tsuna/gohbase/zk"
)

// Store is one HBase cluster. It implements store.Store and store.Admin.
type Store struct {
	cfg     Config
	life    context.Context // ends with Close
	end     context.CancelFunc
	wg      sync.WaitGroup // operations and their goroutines
	closing sync.RWMutex   // held for writing while closed is set

	servers  *pool // region servers
	masters  *pool
	zk       *zkLocator
	regions  *regionCache
	nonces   nonces
	paces    paces
	seen     regionHistory
	openings openings
	looks    looks
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
	st := &Store{cfg: cfg, regions: newRegionCache(), nonces: newNonces()}
	st.life, st.end = context.WithCancel(context.Background())
	st.servers = newPool(st, region.RegionClient, st.movedFrom)
	st.masters = newPool(st, region.MasterClient, st.masterMovedFrom)
	st.zk = newZKLocator(st)
	return st, nil
}

// Close ends every operation with store.ErrClosed, closes the connections and
// waits for the store's goroutines.
func (st *Store) Close() error {
	st.closing.Lock()
	st.end()
	st.closing.Unlock()
	st.servers.closeAll()
	st.masters.closeAll()
	st.wg.Wait()
	st.servers.closeAll() // what a last operation may have opened meanwhile
	st.masters.closeAll()
	return nil
}

// enter lets an operation begin unless the store is closed; leave with
// st.wg.Done.
func (st *Store) enter() error {
	st.closing.RLock()
	defer st.closing.RUnlock()
	if st.life.Err() != nil {
		return store.ErrClosed
	}
	st.wg.Add(1)
	return nil
}

// call sends one prepared call to addr and waits for the reply; it makes one
// attempt. A fault is acted upon (connection dropped, region forgotten) so
// that the next attempt begins afresh.
func (st *Store) call(ctx context.Context, loc *location, call *rpc) error {
	_, err := st.exchange(ctx, loc, call)
	return err
}

// exchange is call, and tells on which connection the call was sent, if it was.
func (st *Store) exchange(ctx context.Context, loc *location, call *rpc) (*conn, error) {
	call.loc = loc
	c, err := st.servers.get(ctx, loc.addr)
	if err == nil {
		st.servers.start(c, call)
		err = st.servers.wait(ctx, c, call)
	}
	st.learn(loc, c, err)
	return c, err
}

// learn draws the consequences of an attempt's outcome.
func (st *Store) learn(loc *location, c *conn, err error) {
	if err == nil {
		return
	}
	if loc.table == metaTable {
		st.zk.forget(zk.Meta, loc.addr)
	}
	switch judge(err) {
	case relocate, reopen, unknown:
		st.regions.forget(loc)
	case reconnect:
		st.regions.forgetServer(loc.addr)
		if lost, ok := err.(*lostError); c != nil && (!ok || !lost.alone) {
			st.servers.drop(c)
		}
	}
}

// do makes the call that build prepares for key's region, attempt by attempt,
// until it succeeds or ctx ends. Without again, a call that may have been
// executed is not sent a second time.
func (st *Store) do(ctx context.Context, table string, key []byte, again bool,
	build func(ctx context.Context, loc *location) *rpc) (*rpc, error) {
	if err := st.enter(); err != nil {
		return nil, err
	}
	defer st.wg.Done()
	retry := st.newRetrier(ctx, table)
	for {
		loc, err := st.locate(ctx, table, key)
		if err == nil {
			call := build(ctx, loc)
			if err = st.call(ctx, loc, call); err == nil {
				return call, nil
			}
			if lost, ok := err.(*lostError); ok && !again {
				retry.last = lost
				return nil, retry.outOfTime(errUnknownOutcome)
			}
		}
		if err := retry.after(err); err != nil {
			return nil, err
		}
	}
}
