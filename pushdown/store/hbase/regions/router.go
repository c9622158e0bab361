package regions

import (
	"context"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
)

// Config is where a cluster is and how long an operation is tried. Either Quorum or
// Nodes is given; everything else is needed.
type Config struct {
	Calls *calls.Config
	// Quorum lists the ZooKeeper servers, "host:port[,host:port…]", and Root is HBase's znode.
	Quorum, Root string
	// Nodes lists bootstrap nodes, "host:port", that are queried in place of ZooKeeper.
	Nodes []string
	// ZooKeeperTimeout is the session timeout of a look-up.
	ZooKeeperTimeout time.Duration
	// LookUpHost returns the addresses of the name of a ZooKeeper server.
	LookUpHost func(ctx context.Context, name string) ([]string, error)
	// RetryTimeout ends an operation that has failed for this long.
	RetryTimeout time.Duration
	// Scan reads rows of hbase:meta, with its own retries.
	Scan func(ctx context.Context, s store.Scan) (store.Scanner, error)
}

// Router knows which server has which region, and calls it there.
type Router struct {
	cfg  *Config
	life *calls.Life

	servers *calls.Pool // region servers
	masters *calls.Pool
	admins  *calls.Pool // AdminService of region servers
	locator *locator
	nodes   *bootstrapNodes // nil if ZooKeeper is used
	regions *regionCache
}

// New makes a router. It does not connect.
func New(cfg *Config, life *calls.Life) *Router {
	r := &Router{cfg: cfg, life: life, regions: newRegionCache()}
	r.servers = calls.NewPool(cfg.Calls, life, calls.RegionService)
	r.masters = calls.NewPool(cfg.Calls, life, calls.MasterService)
	r.masters.OfMasters = true
	r.admins = calls.NewPool(cfg.Calls, life, calls.AdminService)
	if len(cfg.Nodes) > 0 {
		r.nodes = newBootstrapNodes(cfg, life)
		r.locator = newLocator(life, r.nodes)
	} else {
		r.locator = newLocator(life, newZKDirectory(cfg, life))
	}
	return r
}

// CloseAll closes the connections to all servers.
func (r *Router) CloseAll() {
	r.servers.CloseAll()
	r.masters.CloseAll()
	r.admins.CloseAll()
	if r.nodes != nil {
		r.nodes.closeAll()
	}
}

// ByNodes reports whether bootstrap nodes are queried in place of ZooKeeper.
func (r *Router) ByNodes() bool { return r.nodes != nil }

// call sends a call to the server of loc and waits for the reply. It makes one attempt.
// After a failure it drops what has proved wrong (see Invalidate), so that the next
// attempt looks it up again.
func (r *Router) call(ctx context.Context, loc *Location, call *calls.Call) error {
	_, err := r.CallConn(ctx, loc, call)
	return err
}

// CallConn is like call and also returns the connection that the call was sent
// on, nil if it was not sent.
func (r *Router) CallConn(ctx context.Context, loc *Location, call *calls.Call) (*calls.Conn, error) {
	c, err := r.Connect(ctx, loc)
	if err != nil {
		return c, err
	}
	return c, r.CallOn(ctx, c, loc, call)
}

// CallOn makes one attempt at a call to a region, on a connection to its server.
func (r *Router) CallOn(ctx context.Context, c *calls.Conn, loc *Location, call *calls.Call) error {
	r.Send(c, loc, call)
	err := c.Wait(ctx, call)
	r.Invalidate(loc, c, err)
	return err
}

// Send sends a call to a region, on a connection to its server.
func (r *Router) Send(c *calls.Conn, loc *Location, call *calls.Call) {
	call.Moved = func(ctx context.Context) bool { return r.regionMoved(ctx, loc) }
	c.Send(call)
}

// Invalidate drops the cached locations and the connection that the outcome of
// an attempt shows to be wrong. c may be nil; a nil err drops nothing.
func (r *Router) Invalidate(loc *Location, c *calls.Conn, err error) {
	if err == nil {
		return
	}

	// After any failure hbase:meta may have moved: a call of the locator is cheap.
	if loc.Table == MetaTable {
		r.locator.forget(metaServer, loc.Addr)
	}

	switch calls.Classify(err) {
	case calls.ClassRelocate, calls.ClassReopen, calls.ClassUnknown:
		r.regions.forget(loc)
	case calls.ClassReconnect:
		r.regions.forgetServer(loc.Addr)
		// The connection is kept if only this call is lost: others on it may still be
		// answered.
		if lost, ok := err.(*calls.LostError); c != nil && (!ok || !lost.CallOnly) {
			c.Drop()
		}
	}
}

// Forget drops the cached location of a region that is elsewhere.
func (r *Router) Forget(loc *Location) { r.regions.forget(loc) }

// Connect returns a connection to the server of a region. If there is none, it drops what
// has proved wrong.
func (r *Router) Connect(ctx context.Context, loc *Location) (*calls.Conn, error) {
	c, err := r.servers.Get(ctx, loc.Addr)
	r.Invalidate(loc, c, err)
	return c, err
}

// CallAdmin makes one attempt at a call of AdminService to the server of a region.
func (r *Router) CallAdmin(ctx context.Context, loc *Location, call *calls.Call) error {
	c, err := r.admins.Get(ctx, loc.Addr)
	if err == nil {
		r.Send(c, loc, call)
		err = c.Wait(ctx, call)
	}
	if err != nil && c != nil && calls.Classify(err) == calls.ClassReconnect {
		c.Drop()
	}
	return err
}

// ResendPolicy is whether a call may be sent again if its outcome is unknown.
type ResendPolicy bool

const (
	ResendLost ResendPolicy = true  // sent again: the server recognizes a repetition
	SendOnce   ResendPolicy = false // errUnknownOutcome instead
)

// CallRow sends a call to the region of key, attempt after attempt, until it
// succeeds or ctx ends. prepare makes the call of one attempt. It returns the call
// with its reply.
func (r *Router) CallRow(ctx context.Context, table string, key []byte, policy ResendPolicy,
	prepare func(ctx context.Context, loc *Location) *calls.Call) (*calls.Call, error) {
	if err := r.life.Begin(); err != nil {
		return nil, err
	}
	defer r.life.Done()

	retry := r.NewRetrier(ctx, table)
	for {
		loc, err := r.Locate(ctx, table, key)
		if err == nil {
			call := prepare(ctx, loc)
			if err = r.call(ctx, loc, call); err == nil {
				return call, nil
			}
			if lost, ok := err.(*calls.LostError); ok && policy == SendOnce {
				return nil, retry.UnknownOutcome(lost)
			}
		}

		if err := retry.AfterFailure(err); err != nil {
			return nil, err
		}
	}
}
