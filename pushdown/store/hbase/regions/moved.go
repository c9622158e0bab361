package regions

import (
	"bytes"
	"context"
	"errors"

	"downpour/pushdown/store"
)

// regionMoved looks up whether a region is at another server by now, or
// exists no more: in hbase:meta, or in ZooKeeper if the region is hbase:meta's own.
// The next attempt finds the new location in the region cache.
func (r *Router) regionMoved(ctx context.Context, loc *Location) bool {
	// The call checks again only once this has ended, so a look-up must not hang.
	ctx, cancel := context.WithTimeout(ctx, 2*r.cfg.Calls.ProbeAfter)
	defer cancel()

	if loc.Table == MetaTable {
		// The cached address is the one in doubt: locateMeta must use ZooKeeper.
		r.locator.forget(metaServer, loc.Addr)
		now, err := r.LocateMeta(ctx)
		return err == nil && now.Addr != loc.Addr
	}

	// Many calls may wait for one server; only one at a time looks up.
	release, err := r.regions.lockLookUp(ctx, loc.Table)
	if err != nil {
		return false
	}
	defer release()

	differs := func(now *Location) bool { return now.Addr != loc.Addr || !bytes.Equal(now.Name, loc.Name) }
	// Another call may have looked it up in the meantime.
	if now := r.regions.find(loc.Table, loc.Start); now != nil && differs(now) {
		return true
	}
	now, err := r.lookUp(ctx, loc.Table, loc.Start)
	if err != nil {
		// Without its table the region no longer exists; any other error is no evidence.
		return errors.Is(err, store.ErrNoTable)
	}
	if differs(now) {
		r.regions.add(now)
	}
	return differs(now)
}

// masterMoved looks up in ZooKeeper whether there is another master.
func (r *Router) masterMoved(ctx context.Context, addr string) bool {
	// The cached address is the one in doubt: address must use ZooKeeper.
	r.locator.forget(activeMaster, addr)
	now, err := r.locator.address(ctx, activeMaster)
	return err == nil && now != addr
}
