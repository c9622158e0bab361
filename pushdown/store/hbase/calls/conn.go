package calls

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/region"
)

// Conn is one connection to one server. gohbase's region client frames the
// calls and matches replies to them. When to dial, how long to wait and what
// to do after a failure is decided here, because every wait must end with its
// caller's context.
type Conn struct {
	Addr string
	ID   uint64 // unique in the process
	// Conditions is for callers that send conditions on region actions: whether the server on this
	// connection knows them, 0 if that is unknown.
	Conditions atomic.Int32

	pool     *Pool
	client   hrpc.RegionClient
	ready    chan struct{} // closed once dialling has succeeded or failed
	err      error         // of dialling; may be read once ready is closed
	liveness liveness

	// writeLock holds a token while a call is written, if another call's parts could come
	// between its parts; nil if they cannot.
	writeLock chan struct{}
}

// connIDs counts the connections of the process.
var connIDs atomic.Uint64

// Service is what a server offers on a connection.
type Service region.ClientType

// The services. Each is a set of methods of HBase's protocol.
const (
	RegionService Service = Service(region.RegionClient) // rows of a region
	MasterService Service = Service(region.MasterClient) // tables
	AdminService  Service = "AdminService"               // files of a region
	NodeService   Service = "ClientMetaService"          // where servers are, as bootstrap nodes know it
)

// Pool keeps one connection to each server of a kind.
type Pool struct {
	cfg     *Config
	life    *Life // the store's
	service Service

	// OfMasters says that the servers have the principal of masters. It is set before the
	// first Get.
	OfMasters bool

	warned atomic.Int64 // when warnUnprotected logged, Unix time in ns

	mu    sync.Mutex
	conns map[string]*Conn // by address
}

// NewPool makes the pool of a service, without a connection.
func NewPool(cfg *Config, l *Life, s Service) *Pool {
	return &Pool{cfg: cfg, life: l, service: s, conns: map[string]*Conn{}}
}

// Get returns a live connection to addr and dials if there is none. If ctx ends, the dial continues
// for the next caller. Its error is a dialError or the context's.
func (p *Pool) Get(ctx context.Context, addr string) (*Conn, error) {
	c := p.liveOrDialling(addr)
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	if c.err != nil {
		c.Drop() // so that the next call dials again
		return nil, &dialError{addr, c.err}
	}
	return c, nil
}

// liveOrDialling returns the pool's connection to addr if it is live or still being dialled. Otherwise it puts
// a new one into the pool and starts to dial it.
func (p *Pool) liveOrDialling(addr string) *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()

	old := p.conns[addr]
	if old != nil && !old.dead() {
		return old
	}
	p.logLost(old)

	c := p.newConn(addr)
	p.conns[addr] = c
	p.life.Run(func() { p.dial(c) })
	return c
}

// dead reports whether dialling has failed or gohbase has noticed the end of the
// connection. gohbase's Dial dials only once; called again, it returns an error
// if the connection has ended.
func (c *Conn) dead() bool {
	select {
	case <-c.ready:
		return c.err != nil || c.client.Dial(context.Background()) != nil
	default:
		return false
	}
}

// newConn makes a connection to a server of the pool's service, outside of the pool; dial connects it.
func (p *Pool) newConn(addr string) *Conn {
	c := &Conn{
		Addr:     addr,
		pool:     p,
		ID:       connIDs.Add(1),
		ready:    make(chan struct{}),
		liveness: liveness{start: time.Now()},
	}
	c.client = region.NewClient(addr, region.ClientType(p.service), &region.RegionClientOptions{
		QueueSize:     1, // gohbase batches nothing
		EffectiveUser: p.cfg.EffectiveUser,
		// Longer than any wait here, so gohbase never ends one.
		ReadTimeout: 2*max(p.cfg.RPCTimeout, p.cfg.WriteTimeout) + 10*time.Second,
		// gohbase would log every dial; logLost logs what operators need.
		Logger: slog.New(slog.DiscardHandler),
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := p.open(ctx, network, addr, c)
			c.err = err // gohbase's Dial hides the reason
			return nc, err
		},
	})
	return c
}

// open opens the network connection of c: protected as configured, and checked for gohbase. It sets
// c.writeLock if c needs one.
func (p *Pool) open(ctx context.Context, network, addr string, c *Conn) (net.Conn, error) {
	nc, err := p.cfg.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if nc, err = p.protect(ctx, nc, c); err != nil {
		return nil, err
	}

	// gohbase writes a call in two parts, which only a TCP connection
	// keeps together when several goroutines write, and one with TLS does not.
	if _, tcp := nc.(*net.TCPConn); !tcp {
		c.writeLock = make(chan struct{}, 1)
	}
	return checked(nc, &c.liveness, p.cfg.Security != nil), nil
}

// dial connects c, within Config.DialTimeout and while the store is open, and closes c.ready. c.err is then
// the reason if it has failed.
func (p *Pool) dial(c *Conn) {
	ctx, cancel := context.WithTimeout(p.life.Context(), p.cfg.DialTimeout)
	defer cancel()

	// The dialer's own error, which is already in c.err, is better than gohbase's.
	err := c.client.Dial(ctx)
	c.err = cmp.Or(c.err, err)
	close(c.ready)
}

// Drop closes the connection; its calls fail, and the next Get dials again.
func (c *Conn) Drop() {
	p := c.pool
	p.mu.Lock()
	// A new connection may have taken its place.
	if p.conns[c.Addr] == c {
		delete(p.conns, c.Addr)
		p.logLost(c)
	}
	p.mu.Unlock()

	c.close()
}

// logLost logs that a connection is lost if it was once established and the store is open: so there is
// one line and not one for each attempt until the server is back. c may be nil.
func (p *Pool) logLost(c *Conn) {
	if c == nil || p.life.Ended() {
		return
	}
	select {
	case <-c.ready:
		if c.err == nil {
			p.cfg.Logger.Warn("connection lost", "server", c.Addr)
		}
	default:
	}
}

// close closes the connection, after dialling has ended: gohbase's Close misses one that is still being made.
func (c *Conn) close() {
	<-c.ready
	c.client.Close()
}

// CloseAll closes every connection. The store's life has ended before.
func (p *Pool) CloseAll() {
	p.mu.Lock()
	conns := p.conns
	p.conns = map[string]*Conn{}
	p.mu.Unlock()

	// Not under the lock, because close waits for dials.
	for _, c := range conns {
		c.close()
	}
}

// Send sends call in the background: writing to a server that does not read may
// block until the connection is given up.
func (c *Conn) Send(call *Call) {
	call.Began = time.Now()
	c.pool.life.Run(func() { c.write(call) })
}

// write passes call to gohbase, which writes it immediately.
func (c *Conn) write(call *Call) {
	if c.writeLock != nil {
		c.writeLock <- struct{}{}
		defer func() { <-c.writeLock }()
	}
	c.client.QueueRPC(queued{call})
}
