package hbase

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/pb"
	"github.com/tsuna/gohbase/region"
)

// conn is one connection to one server. gohbase's region client frames the
// calls and matches replies to them. When to dial, how long to wait and what
// to do after a failure is decided here, because every wait must end with its
// caller's context.
type conn struct {
	addr     string
	id       uint64 // unique in the process
	client   hrpc.RegionClient
	ready    chan struct{} // closed once dialling has succeeded or failed
	err      error         // of dialling; may be read once ready is closed
	liveness liveness

	// conditions says whether the server has shown that it knows conditions on region
	// actions, see tryCondition.
	conditions atomic.Int32

	// writing is held while a call is written, if another call's parts could come
	// between its parts; nil if they cannot.
	writing chan struct{}
}

// connIDs counts the connections of the process.
var connIDs atomic.Uint64

// pool keeps one connection to each server of a kind.
type pool struct {
	cfg      *Config
	service  region.ClientType
	lifetime context.Context // the store's
	wg       *sync.WaitGroup // the store's

	// ofMasters is set if the servers have the principal of masters.
	ofMasters bool

	// moved tells whether the target of a call, a region or the master's role, is
	// no longer at the server that the call was sent to. It may ask other servers.
	moved func(ctx context.Context, c *conn, call *rpc) bool

	warned atomic.Int64 // when warnUnprotected logged, Unix time in ns

	mu    sync.Mutex
	conns map[string]*conn // by address
}

func newPool(st *Store, service region.ClientType, moved func(context.Context, *conn, *rpc) bool) *pool {
	return &pool{cfg: &st.cfg, service: service, lifetime: st.lifetime, wg: &st.wg, moved: moved, conns: map[string]*conn{}}
}

// dialError is the error of a call that was not sent because its server cannot be
// connected to.
type dialError struct {
	addr string
	err  error
}

func (e *dialError) Error() string { return fmt.Sprintf("cannot connect to %s: %v", e.addr, e.err) }
func (e *dialError) Unwrap() error { return e.err }

// get returns a live connection to addr and dials if there is none. If ctx ends
// meanwhile, the dial goes on for the next caller.
func (p *pool) get(ctx context.Context, addr string) (*conn, error) {
	c := p.connTo(addr)
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	if c.err != nil {
		// Without it in the pool, the next attempt dials again.
		p.drop(c)
		return nil, &dialError{addr, c.err}
	}
	return c, nil
}

// connTo returns the connection to addr, which may still be dialling. It replaces
// one that is dead.
func (p *pool) connTo(addr string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()

	old := p.conns[addr]
	if old != nil && !old.dead() {
		return old
	}
	p.logLost(old)

	c := p.newConn(addr)
	p.conns[addr] = c
	p.wg.Go(func() { p.dial(c) })
	return c
}

// dead reports whether dialling has failed or gohbase has noticed the end of the
// connection. gohbase's Dial dials only once; called again, it returns an error
// if the connection has ended.
func (c *conn) dead() bool {
	select {
	case <-c.ready:
		return c.err != nil || c.client.Dial(context.Background()) != nil
	default:
		return false
	}
}

// newConn makes a connection to a region server; it is dialled later.
func (p *pool) newConn(addr string) *conn {
	c := &conn{addr: addr, id: connIDs.Add(1), ready: make(chan struct{}), liveness: liveness{start: time.Now()}}
	c.client = region.NewClient(addr, p.service, &region.RegionClientOptions{
		QueueSize:     1, // gohbase batches nothing
		EffectiveUser: p.cfg.EffectiveUser,
		// Longer than any wait here, so that gohbase never ends one.
		ReadTimeout: 2*max(p.cfg.RPCTimeout, p.cfg.WriteTimeout) + 10*time.Second,
		// gohbase would log every dial; see logLost.
		Logger: slog.New(slog.DiscardHandler),
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := p.cfg.Dial(ctx, network, addr)
			if err == nil {
				nc, err = p.protected(ctx, nc, c)
			}
			c.err = err // gohbase's Dial hides the reason
			if err != nil {
				return nil, err
			}

			// gohbase writes a call in two parts, which only a TCP connection
			// keeps together when several goroutines write, and one with TLS does not.
			if _, tcp := nc.(*net.TCPConn); !tcp {
				c.writing = make(chan struct{}, 1)
			}
			return checkReplies(nc, &c.liveness, p.cfg.Security != nil), nil
		},
	})
	return c
}

// dial connects c, within Config.DialTimeout and while the store is open.
func (p *pool) dial(c *conn) {
	ctx, cancel := context.WithTimeout(p.lifetime, p.cfg.DialTimeout)
	defer cancel()

	// The dialer's own error, which c.err has already, says more than gohbase's.
	if err := c.client.Dial(ctx); err != nil && c.err == nil {
		c.err = err
	}
	close(c.ready)
}

// drop removes c from the pool and closes it; its calls fail.
func (p *pool) drop(c *conn) {
	p.mu.Lock()
	// A new connection may have taken its place.
	if p.conns[c.addr] == c {
		delete(p.conns, c.addr)
		p.logLost(c)
	}
	p.mu.Unlock()

	c.close()
}

// logLost logs that a connection is lost. It does so only if the connection was
// once established, so that there is one line and not one for each attempt until
// the server is back. c may be nil.
func (p *pool) logLost(c *conn) {
	if c == nil || p.lifetime.Err() != nil {
		return
	}
	select {
	case <-c.ready:
		if c.err == nil {
			p.cfg.Logger.Warn("connection lost", "server", c.addr)
		}
	default:
	}
}

func (c *conn) close() {
	// gohbase's Close misses a connection that is still being made.
	<-c.ready
	c.client.Close()
}

// closeAll closes every connection. The store's lifetime has ended before.
func (p *pool) closeAll() {
	p.mu.Lock()
	conns := p.conns
	p.conns = map[string]*conn{}
	p.mu.Unlock()

	// Unlocked, because close waits for dials.
	for _, c := range conns {
		c.close()
	}
}

// send sends call in the background: writing to a server that does not read may
// block until the connection is given up.
func (p *pool) send(c *conn, call *rpc) {
	call.began = time.Now()
	p.wg.Go(func() { c.write(call) })
}

// write hands call to gohbase, which writes it at once.
func (c *conn) write(call *rpc) {
	// Parts of two calls would be mixed up on this connection.
	if c.writing != nil {
		c.writing <- struct{}{}
		defer func() { <-c.writing }()
	}
	c.client.QueueRPC(call)
}

// regionSpecifier names a region in a request.
func regionSpecifier(name []byte) *pb.RegionSpecifier {
	return &pb.RegionSpecifier{Type: hrpc.RegionSpecifierRegionName, Value: name}
}
