package calls

import (
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
	"google.golang.org/protobuf/proto"
)

// A server that does not answer may be dead, paused or overloaded. Repeating a call makes an
// overloaded one slower, and a write that it still has may be executed after a later one. So a call
// is given up only when its reply cannot come or is no longer of use:
//
//   - the connection has ended, or is dead while the server answers on another;
//   - nobody listens at the server's address;
//   - the region is elsewhere by now, as hbase:meta says;
//   - its time is over: Config.RPCTimeout, Config.WriteTimeout of writes, or the
//     caller's context.
//
// Until then the call waits, however long the server is silent.

// liveness is what is known of the server at the other end of a connection. Its
// times are durations since start, in ns.
type liveness struct {
	start        time.Time
	lastReceived atomic.Int64 // when bytes last came

	// fault is why the connection is unusable, if its bytes have shown that: gohbase reports to
	// calls only that it is closed.
	fault atomic.Pointer[error]

	mu          sync.Mutex
	lastProbe   int64 // when the last probe was sent, 0 for none
	loggedProbe int64 // the probe whose silence was logged last
	checking    bool  // checkConnection is running
}

func (l *liveness) now() int64 { return int64(time.Since(l.start)) }

// received notes that bytes have come.
func (l *liveness) received() { l.lastReceived.Store(l.now()) }

// probeUnansweredLocked reports whether no byte has come since the last probe. l.mu
// is held.
func (l *liveness) probeUnansweredLocked() bool {
	return l.lastReceived.Load() < l.lastProbe
}

// probeUnansweredFor returns how long ago the last probe was sent if nothing has come since,
// else 0.
func (l *liveness) probeUnansweredFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()

	if !l.probeUnansweredLocked() {
		return 0
	}
	return time.Duration(l.now() - l.lastProbe)
}

// claimProbe returns true if the caller must send a probe, and notes it as sent: nothing has come for half of
// interval, and no other probe is unanswered.
func (l *liveness) claimProbe(interval time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	now := l.now()
	// One probe at a time, and none for a server that has just been heard of.
	if l.probeUnansweredLocked() || time.Duration(now-l.lastReceived.Load()) < interval/2 {
		return false
	}
	l.lastProbe = now
	return true
}

// Wait returns nil once the reply to a call that was sent on c is in the call's Response and Cells. Its error
// is the server's exception as gohbase returns it, a LostError if no reply will come or none has come in
// time, the context's, or store.ErrClosed. While the server is silent Wait probes it, and asks call.Moved.
func (c *Conn) Wait(ctx context.Context, call *Call) error {
	// The reply is often there already; then no timers are needed.
	select {
	case res := <-call.result:
		return c.resultError(res)
	default:
	}

	p := c.pool
	timeout := p.cfg.RPCTimeout
	if call.Write {
		timeout = p.cfg.WriteTimeout
	}
	giveUp := time.NewTimer(time.Until(call.Began.Add(timeout)))
	defer giveUp.Stop()

	lookAgain := time.NewTimer(p.cfg.ProbeAfter)
	defer lookAgain.Stop()
	// If the server is known to be silent, because other calls wait, this one looks sooner
	// whether its region has moved.
	if c.liveness.probeUnansweredFor() >= p.cfg.ProbeAfter {
		lookAgain.Reset(p.cfg.ProbeAfter / 8)
	}

	var moved chan bool // gets the answer of call.Moved while that runs, else nil
	for {
		select {
		case res := <-call.result:
			return c.resultError(res)
		case <-ctx.Done():
			return ctx.Err()
		case <-p.life.Context().Done():
			return store.ErrClosed
		case <-giveUp.C:
			// A write that stays with the server may overwrite later ones. If its
			// connection ends, the server drops the write as long as that is still
			// queued. So after a write that is given up the caller must close the connection, and
			// after a read only if nothing else comes from the server either.
			callOnly := !call.Write && c.liveness.probeUnansweredFor() == 0
			return &LostError{addr: c.Addr, CallOnly: callOnly, err: fmt.Errorf("none within %v", timeout)}
		case yes := <-moved:
			if yes {
				return &LostError{addr: c.Addr, CallOnly: true, err: errElsewhere}
			}
			moved = nil // it may move later: the next silence checks again
		case <-lookAgain.C:
			lookAgain.Reset(p.cfg.ProbeAfter)
			if !p.probeSilent(c) || moved != nil || call.Moved == nil {
				continue
			}
			// The buffer for one answer lets the goroutine end even if this function has returned.
			answer := make(chan bool, 1)
			moved = answer
			p.life.Run(func() { answer <- call.Moved(ctx) })
		}
	}
}

// probeSilent sends a probe to a server from which nothing has come for a while. It returns
// true once a probe has been unanswered for Config.ProbeAfter; then it also logs the silence, once, and
// starts to check the connection on another one, unless that is being done.
func (p *Pool) probeSilent(c *Conn) bool {
	if c.liveness.claimProbe(p.cfg.ProbeAfter) {
		c.Send(p.newProbe())
		return false
	}
	if c.liveness.probeUnansweredFor() < p.cfg.ProbeAfter {
		return false
	}

	c.liveness.mu.Lock()
	defer c.liveness.mu.Unlock()

	// One line for each silence, however many calls wait.
	if c.liveness.loggedProbe != c.liveness.lastProbe {
		c.liveness.loggedProbe = c.liveness.lastProbe
		p.cfg.Logger.Warn("server does not answer; its calls wait", "server", c.Addr)
	}
	if !c.liveness.checking {
		c.liveness.checking = true
		p.life.Run(func() { p.checkConnection(c) })
	}
	return true
}

// checkConnection tries a silent server on another connection. If that is refused,
// or is answered while the first one stays silent, the first one is dead and is
// dropped; its calls then fail.
func (p *Pool) checkConnection(c *Conn) {
	// The pause gives the first connection time: the server may have been silent on
	// both until now.
	dead := p.answersNewConnection(c.Addr) && p.pause(p.cfg.ProbeAfter) && c.liveness.probeUnansweredFor() > 0

	c.liveness.mu.Lock()
	c.liveness.checking = false
	c.liveness.mu.Unlock()

	if dead {
		p.cfg.Logger.Warn("closing a dead connection to a live server", "server", c.Addr)
		c.Drop()
	}
}

// answersNewConnection reports whether a server answers a probe on a new connection within Config.ProbeAfter.
// A refused connection is an answer, too: nothing listens there any more.
func (p *Pool) answersNewConnection(addr string) bool {
	fresh := p.newConn(addr)
	p.dial(fresh)
	defer fresh.close()
	if fresh.err != nil {
		// After any other error the server may be alive or dead.
		return errors.Is(fresh.err, syscall.ECONNREFUSED)
	}

	probe := p.newProbe()
	fresh.Send(probe)
	timer := time.NewTimer(p.cfg.ProbeAfter)
	defer timer.Stop()
	select {
	case res := <-probe.result:
		// Every live server answers a probe, with an exception. Without a reply the error is a LostError.
		_, lost := fresh.resultError(res).(*LostError)
		return !lost
	case <-timer.C:
	case <-p.life.Context().Done():
	}
	return false
}

// pause waits for d. It returns false if the store is closed before.
func (p *Pool) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.life.Context().Done():
		return false
	}
}

// newProbe returns a get from a region that does not exist: every live server
// answers it with an exception. Its high priority takes it past the calls that
// wait, even if all their handlers are stuck.
func (p *Pool) newProbe() *Call {
	request := &pb.GetRequest{
		Region: RegionSpecifier([]byte("downpour,probe,1")),
		Get:    &pb.Get{Row: []byte{0}, ExistenceOnly: proto.Bool(true)},
	}
	probe := New(p.life.Context(), "Get", request, &pb.GetResponse{})
	probe.highPriority = true
	return probe
}

// resultError returns the error of a call's result, nil for a reply: gohbase's error if the server
// has answered with an exception, else a LostError, with the fault of the connection if one is known.
func (c *Conn) resultError(res hrpc.RPCResult) error {
	if res.Error == nil {
		return nil
	}
	if _, _, isException := cutException(res.Error); isException {
		return res.Error
	}
	if fault := c.liveness.fault.Load(); fault != nil {
		return &LostError{addr: c.Addr, err: *fault}
	}
	return &LostError{addr: c.Addr, err: res.Error}
}
