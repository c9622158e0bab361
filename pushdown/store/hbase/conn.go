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
// calls and matches replies to them; when to dial, how long to wait and what
// to do after a fault is decided here, because every wait must end with its
// caller's context.
type conn struct {
	addr  string
	id    uint64 // no other connection of the process has it
	rc    hrpc.RegionClient
	ready chan struct{} // closed when dialled, or failed with err
	err   error
	pulse pulse

	// sending is held while a call is written, where what is written in parts
	// may be parted; else nil.
	sending chan struct{}
}

// conns numbers the connections.
var conns atomic.Uint64

// pool keeps one connection to each server of a kind.
type pool struct {
	cfg     *Config
	service region.ClientType
	life    context.Context // ends with the store
	wg      *sync.WaitGroup
	// moved tells whether what a call is for is no longer at the server that it
	// was sent to. It may ask other servers.
	moved func(ctx context.Context, c *conn, call *rpc) bool

	mu    sync.Mutex
	conns map[string]*conn
}

func newPool(st *Store, service region.ClientType, moved func(context.Context, *conn, *rpc) bool) *pool {
	return &pool{cfg: &st.cfg, service: service, life: st.life, wg: &st.wg, moved: moved, conns: map[string]*conn{}}
}

// dialError is a server that cannot be connected to: nothing was sent.
type dialError struct {
	addr string
	err  error
}

func (e *dialError) Error() string { return fmt.Sprintf("connect to %s: %v", e.addr, e.err) }
func (e *dialError) Unwrap() error { return e.err }

// get returns a live connection to addr, dialling if there is none. The dial
// goes on when ctx ends, for the next caller.
func (p *pool) get(ctx context.Context, addr string) (*conn, error) {
	c := p.lookup(addr)
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.err != nil {
		p.drop(c)
		return nil, &dialError{addr, c.err}
	}
	return c, nil
}

// lookup finds or makes the entry of addr; one whose connection has died is
// replaced.
func (p *pool) lookup(addr string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.conns[addr]
	if old != nil && !old.died() {
		return old
	}
	p.tell(old)
	c := p.newConn(addr)
	p.conns[addr] = c
	p.wg.Go(func() { p.dial(c) })
	return c
}

// died tells whether gohbase has noticed the connection's end. Its Dial dials
// only once and afterwards tells just that.
func (c *conn) died() bool {
	select {
	case <-c.ready:
		return c.err != nil || c.rc.Dial(context.Background()) != nil
	default:
		return false
	}
}

func (p *pool) newConn(addr string) *conn {
	c := &conn{addr: addr, id: conns.Add(1), ready: make(chan struct{}), pulse: pulse{born: time.Now()}}
	c.rc = region.NewClient(addr, p.service, &region.RegionClientOptions{
		QueueSize:     1, // nothing here is batched by gohbase
		EffectiveUser: p.cfg.EffectiveUser,
		ReadTimeout:   2*max(p.cfg.RPCTimeout, p.cfg.WriteTimeout) + 10*time.Second, // never the first to end a wait
		Logger:        slog.New(slog.DiscardHandler),                                // it would write a line for each dial; see drop
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := p.cfg.Dial(ctx, network, addr)
			c.err = err // gohbase's Dial hides the reason
			if err != nil {
				return nil, err
			}
			if _, whole := nc.(*net.TCPConn); !whole {
				c.sending = make(chan struct{}, 1)
			}
			return watch(nc, &c.pulse), nil
		},
	})
	return c
}

// dial connects c within the dial timeout or the store's life.
func (p *pool) dial(c *conn) {
	ctx, cancel := context.WithTimeout(p.life, p.cfg.DialTimeout)
	defer cancel()
	if err := c.rc.Dial(ctx); err != nil && c.err == nil {
		c.err = err
	}
	close(c.ready)
}

// drop forgets c and fails its calls.
func (p *pool) drop(c *conn) {
	p.mu.Lock()
	if p.conns[c.addr] == c {
		delete(p.conns, c.addr)
		p.tell(c)
	}
	p.mu.Unlock()
	c.close()
}

// tell writes that a connection is lost: once, and not of each attempt to get
// another, of which there may be many until a server is back.
func (p *pool) tell(c *conn) {
	if c == nil || p.life.Err() != nil {
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
	<-c.ready
	c.rc.Close()
}

// closeAll ends every connection; the store's life has ended before.
func (p *pool) closeAll() {
	p.mu.Lock()
	conns := p.conns
	p.conns = map[string]*conn{}
	p.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
}

// start sends call without waiting for anything: a write to a server that
// does not read may block until the connection is given up.
func (p *pool) start(c *conn, call *rpc) {
	call.began = time.Now()
	p.wg.Go(func() { c.send(call) })
}

// send writes a call. gohbase writes it in two parts, which only a TCP
// connection keeps together when several calls are written at a time.
func (c *conn) send(call *rpc) {
	if c.sending != nil {
		c.sending <- struct{}{}
		defer func() { <-c.sending }()
	}
	c.rc.QueueRPC(call)
}

// regionSpecifier names a region in a request.
func regionSpecifier(name []byte) *pb.RegionSpecifier {
	return &pb.RegionSpecifier{Type: hrpc.RegionSpecifierRegionName, Value: name}
}
