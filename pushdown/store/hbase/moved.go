package hbase

import (
	"bytes"
	"context"
	"downpour/pushdown/store"
	"errors"
)

// regionMoved looks up whether a region is at another server by now, or
// exists no more: in hbase:meta, or in ZooKeeper if the region is hbase:meta's own.
// The next attempt finds the new location in the region cache.
func (st *Store) regionMoved(ctx context.Context, loc *location) bool {
	// The call asks again only once this has ended, so a look-up must not hang.
	ctx, cancel := context.WithTimeout(ctx, 2*st.cfg.ProbeAfter)
	defer cancel()

	if loc.table == metaTable {
		// The cached address is the one in doubt: locateMeta has to ask ZooKeeper.
		st.locator.forget(metaServer, loc.addr)
		now, err := st.locateMeta(ctx)
		return err == nil && now.addr != loc.addr
	}

	// Many calls may wait for one server; only one at a time looks up.
	release, err := st.regions.lockLookUp(ctx, loc.table)
	if err != nil {
		return false
	}
	defer release()

	differs := func(now *location) bool { return now.addr != loc.addr || !bytes.Equal(now.name, loc.name) }
	// Another call may have looked it up meanwhile.
	if now := st.regions.find(loc.table, loc.start); now != nil && differs(now) {
		return true
	}
	now, err := st.lookUp(ctx, loc.table, loc.start)
	if err != nil {
		// Without its table the region exists no more; any other error tells nothing.
		return errors.Is(err, store.ErrNoTable)
	}
	if differs(now) {
		st.regions.add(now)
	}
	return differs(now)
}

// masterMoved looks up in ZooKeeper whether there is another master.
func (st *Store) masterMoved(ctx context.Context, addr string) bool {
	// The cached address is the one in doubt: address has to ask ZooKeeper.
	st.locator.forget(activeMaster, addr)
	now, err := st.locator.address(ctx, activeMaster)
	return err == nil && now != addr
}
