package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/pb"
	"github.com/tsuna/gohbase/zk"
	"google.golang.org/protobuf/proto"
)

// A server that does not answer may be dead, or stopped, or have too much to do.
// Whoever asks a slow one again makes it slower, and a write that it still has
// may be done later than what was written after it. So a call is given up for
// silence only when its answer cannot come or is of no use any more:
//
//   - the connection has ended, or is dead while the server answers on another;
//   - nobody listens at the server's address;
//   - the region is elsewhere by now, as hbase:meta says;
//   - its time is over: Config.RPCTimeout, or WriteTimeout of writes, or that of
//     whoever waits.
//
// Until then it waits, however silent the server is.

// lostError is a call that was sent, or may have been, and got no reply.
type lostError struct {
	addr  string
	alone bool // its connection goes on: other calls on it may still be answered
	err   error
}

func (e *lostError) Error() string { return fmt.Sprintf("no reply from %s: %v", e.addr, e.err) }
func (e *lostError) Unwrap() error { return e.err }

// errElsewhere is a region that another server has by now.
var errElsewhere = errors.New("the region has left the server, which is silent")

// pulse is what is known of the life at the other end of a connection. Its times
// count from its birth.
type pulse struct {
	born  time.Time
	heard atomic.Int64 // when bytes came last, ns

	mu       sync.Mutex
	probed   bool  // a probe has been sent
	asked    int64 // when the last one was, ns
	told     int64 // that one whose silence has been logged
	doubting bool  // another connection is being tried
}

func (p *pulse) now() int64 { return int64(time.Since(p.born)) }

// beat notes that bytes have come.
func (p *pulse) beat() { p.heard.Store(p.now()) }

// unanswered tells whether nothing has come since the last probe; the lock is
// held.
func (p *pulse) unanswered() bool { return p.probed && p.heard.Load() < p.asked }

// silent tells for how long a probe has been waiting for any sign of life, 0 if
// none does.
func (p *pulse) silent() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.unanswered() {
		return 0
	}
	return time.Duration(p.now() - p.asked)
}

// ask tells whether a probe is to be sent now: nothing was heard for a while,
// and none is on its way.
func (p *pulse) ask(after time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.unanswered() || time.Duration(now-p.heard.Load()) < after/2 {
		return false
	}
	p.probed, p.asked = true, now
	return true
}

// wait waits for the reply to a started call.
func (p *pool) wait(ctx context.Context, c *conn, call *rpc) error {
	select {
	case res := <-call.result: // it often is there already
		return c.outcome(res)
	default:
	}
	bound := p.cfg.RPCTimeout
	if call.write {
		bound = p.cfg.WriteTimeout
	}
	limit := time.NewTimer(time.Until(call.began.Add(bound)))
	defer limit.Stop()
	quiet := time.NewTimer(p.cfg.ProbeAfter)
	defer quiet.Stop()
	if c.pulse.silent() >= p.cfg.ProbeAfter {
		quiet.Reset(p.cfg.ProbeAfter / 8) // others wait for it already
	}
	var moved chan bool
	for {
		select {
		case res := <-call.result:
			return c.outcome(res)
		case <-ctx.Done():
			return ctx.Err()
		case <-p.life.Done():
			return store.ErrClosed
		case <-limit.C:
			// A write that is left with the server may overwrite later ones; if its
			// connection ends, the server forgets it as long as it waits there.
			alone := !call.write && c.pulse.silent() == 0
			return &lostError{c.addr, alone, fmt.Errorf("none within %v", bound)}
		case yes := <-moved:
			if yes {
				return &lostError{c.addr, true, errElsewhere}
			}
			moved = nil
		case <-quiet.C:
			quiet.Reset(p.cfg.ProbeAfter)
			if !p.suspect(c) || moved != nil {
				continue
			}
			answer := make(chan bool, 1)
			moved = answer
			p.wg.Go(func() { answer <- p.moved(ctx, c, call) })
		}
	}
}

// suspect asks a quiet server for a sign of life. It tells whether one has been
// asked in vain, which is found out about then.
func (p *pool) suspect(c *conn) bool {
	if c.pulse.ask(p.cfg.ProbeAfter) {
		p.start(c, p.newProbe())
		return false
	}
	if c.pulse.silent() < p.cfg.ProbeAfter {
		return false
	}
	c.pulse.mu.Lock()
	defer c.pulse.mu.Unlock()
	if c.pulse.told != c.pulse.asked {
		c.pulse.told = c.pulse.asked
		p.cfg.Logger.Warn("server does not answer, its calls wait", "server", c.addr)
	}
	if !c.pulse.doubting {
		c.pulse.doubting = true
		p.wg.Go(func() { p.doubt(c) })
	}
	return true
}

// doubt tries a silent server on another connection. Where that is refused, or
// answered while the first one stays silent, the first one is dead; its calls'
// outcomes come through their channels.
func (p *pool) doubt(c *conn) {
	dead := p.answersElsewhere(c.addr) && p.pause(p.cfg.ProbeAfter) && c.pulse.silent() > 0
	c.pulse.mu.Lock()
	c.pulse.doubting = false
	c.pulse.mu.Unlock()
	if dead {
		p.cfg.Logger.Warn("connection is dead while its server lives, given up", "server", c.addr)
		p.drop(c)
	}
}

// answersElsewhere tells whether a server answers on a new connection, be it by
// refusing it.
func (p *pool) answersElsewhere(addr string) bool {
	fresh := p.newConn(addr)
	p.dial(fresh)
	defer fresh.close()
	if fresh.err != nil {
		return errors.Is(fresh.err, syscall.ECONNREFUSED)
	}
	probe := p.newProbe()
	p.start(fresh, probe)
	timer := time.NewTimer(p.cfg.ProbeAfter)
	defer timer.Stop()
	select {
	case res := <-probe.result:
		_, lost := fresh.outcome(res).(*lostError)
		return !lost
	case <-timer.C:
	case <-p.life.Done():
	}
	return false
}

// pause waits; false at the end of the store.
func (p *pool) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.life.Done():
		return false
	}
}

// newProbe is a look-up in a region that does not exist: every live server
// answers it, with an exception. Its priority takes it past the calls that wait,
// also where all their handlers are stuck.
func (p *pool) newProbe() *rpc {
	request := &pb.GetRequest{
		Region: regionSpecifier([]byte("downpour,probe,1")),
		Get:    &pb.Get{Row: []byte{0}, ExistenceOnly: proto.Bool(true)},
	}
	probe := newRPC(p.life, "Get", request, &pb.GetResponse{})
	probe.high = true
	return probe
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

// movedFrom asks hbase:meta, or ZooKeeper for hbase:meta itself, whether a call's
// region is at another server by now, or is no more. What it learns serves the
// next attempt.
func (st *Store) movedFrom(ctx context.Context, _ *conn, call *rpc) bool {
	loc := call.loc
	ctx, cancel := context.WithTimeout(ctx, 2*st.cfg.ProbeAfter)
	defer cancel()
	if loc.table == metaTable {
		st.zk.forget(zk.Meta, loc.addr)
		now, err := st.locateMeta(ctx)
		return err == nil && now.addr != loc.addr
	}
	release, err := st.regions.turn(ctx, loc.table) // many may wait for one server
	if err != nil {
		return false
	}
	defer release()
	differs := func(now *location) bool { return now.addr != loc.addr || !bytes.Equal(now.name, loc.name) }
	if now := st.regions.find(loc.table, loc.start); now != nil && differs(now) {
		return true
	}
	now, err := st.lookUp(ctx, loc.table, loc.start)
	if err != nil {
		return errors.Is(err, store.ErrNoTable)
	}
	if differs(now) {
		st.regions.add(now)
	}
	return differs(now)
}

// masterMovedFrom asks ZooKeeper whether there is another master.
func (st *Store) masterMovedFrom(ctx context.Context, c *conn, _ *rpc) bool {
	st.zk.forget(zk.Master, c.addr)
	now, err := st.zk.address(ctx, zk.Master)
	return err == nil && now != c.addr
}
