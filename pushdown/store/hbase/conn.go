package hbase

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/pb"
	"github.com/tsuna/gohbase/region"
	"google.golang.org/protobuf/proto"
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
}

// conns numbers the connections.
var conns atomic.Uint64

// pool keeps one connection to each server of a kind.
type pool struct {
	cfg     *Config
	service region.ClientType
	life    context.Context // ends with the store
	wg      *sync.WaitGroup

	mu    sync.Mutex
	conns map[string]*conn
}

func newPool(st *Store, service region.ClientType) *pool {
	return &pool{cfg: &st.cfg, service: service, life: st.life, wg: &st.wg, conns: map[string]*conn{}}
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
	c := &conn{addr: addr, id: conns.Add(1), ready: make(chan struct{})}
	c.rc = region.NewClient(addr, p.service, &region.RegionClientOptions{
		QueueSize:     1, // nothing here is batched by gohbase
		EffectiveUser: p.cfg.EffectiveUser,
		ReadTimeout:   p.cfg.RPCTimeout + 10*time.Second,
		Logger:        slog.New(slog.DiscardHandler), // it would write a line for each dial; see drop
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := p.cfg.Dial(ctx, network, addr)
			c.err = err // gohbase's Dial hides the reason
			return nc, err
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
	p.wg.Go(func() { c.rc.QueueRPC(call) })
}

// lostError is a call that was sent, or may have been, and got no reply.
type lostError struct {
	addr  string
	alive bool // the connection still works: only this call is stuck
	err   error
}

func (e *lostError) Error() string { return fmt.Sprintf("no reply from %s: %v", e.addr, e.err) }
func (e *lostError) Unwrap() error { return e.err }

// wait waits for the reply to a started call. A silent server is probed; one
// that does not answer the probe either loses its connection, which fails
// this and every other call on it.
func (p *pool) wait(ctx context.Context, c *conn, call *rpc) error {
	select {
	case res := <-call.result: // it often is there already
		return c.outcome(res)
	default:
	}
	limit := time.NewTimer(p.cfg.RPCTimeout)
	defer limit.Stop()
	quiet := time.NewTimer(p.cfg.ProbeAfter)
	defer quiet.Stop()
	var probe *rpc
	for {
		var answered chan hrpc.RPCResult
		if probe != nil {
			answered = probe.result
		}
		select {
		case res := <-call.result:
			return c.outcome(res)
		case <-ctx.Done():
			return ctx.Err()
		case <-p.life.Done():
			return store.ErrClosed
		case <-limit.C:
			return &lostError{c.addr, true, fmt.Errorf("none within %v", p.cfg.RPCTimeout)}
		case <-answered:
			probe = nil
			quiet.Reset(p.cfg.ProbeAfter)
		case <-quiet.C:
			if probe != nil {
				p.cfg.Logger.Warn("server does not answer, connection given up", "server", c.addr)
				p.drop(c) // the calls' outcomes come through their channels
				continue
			}
			probe = p.newProbe()
			p.start(c, probe)
			quiet.Reset(p.cfg.ProbeAfter)
		}
	}
}

// outcome turns gohbase's result into ours.
func (c *conn) outcome(res hrpc.RPCResult) error {
	if res.Error == nil {
		return nil
	}
	if javaClass(res.Error) == "" {
		return &lostError{c.addr, false, res.Error}
	}
	return res.Error
}

// newProbe is a look-up in a region that does not exist: every live server
// answers it, with an exception, from a handler of its own.
func (p *pool) newProbe() *rpc {
	request := &pb.GetRequest{
		Region: regionSpecifier([]byte("downpour,probe,1")),
		Get:    &pb.Get{Row: []byte{0}, ExistenceOnly: proto.Bool(true)},
	}
	return newRPC(p.life, "Get", request, &pb.GetResponse{})
}

// regionSpecifier names a region in a request.
func regionSpecifier(name []byte) *pb.RegionSpecifier {
	return &pb.RegionSpecifier{Type: hrpc.RegionSpecifierRegionName, Value: name}
}
