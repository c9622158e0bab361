package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/rpc/wire"
)

// gate returns a store whose scans stop before their second block until open is called. scanning
// gets an element for each scan that has come so far.
func gate() (m *operatortest.Store, scanning <-chan struct{}, open func()) {
	m = points(100)
	reached, wait := make(chan struct{}, 100), make(chan struct{})
	m.Fail = func(ctx context.Context, block int) error {
		if block != 1 {
			return nil
		}
		reached <- struct{}{}
		select {
		case <-wait:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return m, reached, sync.OnceFunc(func() { close(wait) })
}

// When a server ends, the part that runs goes on. The part that waits for a slot, later parts and
// hello are refused, so that a gateway goes elsewhere at once.
func TestServe_drainRefuses(t *testing.T) {
	m, scanning, open := gate()
	p := start(t, m, func(c *server.Config, _ *client.Options) { c.Parts = 1 })
	running, waiting := p.run(), make(chan error)
	<-scanning
	waits := p.open(part())
	go func() {
		_, err := text(waits)
		waiting <- err
	}()
	p.awaitMetric("downpour_pushdown_parts_waiting 1")
	p.stop()
	if err := <-waiting; !errors.Is(err, wire.ErrEnding) {
		t.Errorf("the waiting part: %v, want %v", err, wire.ErrEnding)
	}
	if _, err := p.client.Hello(t.Context()); !errors.Is(err, wire.ErrServer) {
		t.Errorf("hello: %v, want %v", err, wire.ErrServer)
	}
	if _, err := text(p.open(part())); !errors.Is(err, wire.ErrServer) && !errors.Is(err, wire.ErrEnding) {
		t.Errorf("a later part: %v, want it refused", err)
	}
	open()
	if err := <-running; err != nil {
		t.Errorf("the running part: %v", err)
	}
}

// run executes a part on a goroutine of its own.
func (p *peer) run() <-chan error {
	op, done := p.open(part()), make(chan error, 1)
	go func() {
		_, err := text(op)
		done <- err
	}()
	return done
}

// awaitMetric polls the metrics for a line.
func (p *peer) awaitMetric(line string) {
	p.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); ; <-tick.C {
		_, body := p.get("http", "/metrics", "", nil)
		if strings.Contains(body, line+"\n") {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("no %q in\n%s", line, body)
		}
	}
}

// A part that does not end within the drain time is cut off.
func TestServe_drainIsBounded(t *testing.T) {
	m, scanning, open := gate()
	defer open()
	p := start(t, m, func(c *server.Config, _ *client.Options) { c.Drain = 50 * time.Millisecond })
	running := p.run()
	<-scanning
	p.stop()
	if err := <-running; !errors.Is(err, wire.ErrServer) {
		t.Errorf("the running part: %v, want %v", err, wire.ErrServer)
	}
}

// Only so many parts may run or wait; the next one is refused as busy.
func TestDoGet_waitingIsBounded(t *testing.T) {
	m, scanning, open := gate()
	p := start(t, m, func(c *server.Config, _ *client.Options) { c.Parts, c.Waiting = 1, 2 })
	all := []<-chan error{p.run()}
	<-scanning
	all = append(all, p.run(), p.run())
	p.awaitMetric("downpour_pushdown_parts_waiting 2")
	if _, err := text(p.open(part())); !errors.Is(err, wire.ErrBusy) ||
		!strings.Contains(err.Error(), "3 parts run or wait") {
		t.Errorf("the fourth part: %v, want %v", err, wire.ErrBusy)
	}
	open()
	for _, done := range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A part over the server's own bound on memory is refused as busy, which is no fault of the query;
// a part over the plan's bound fails with a LimitError.
func TestDoGet_partBytes(t *testing.T) {
	p := start(t, points(1), func(c *server.Config, _ *client.Options) { c.PartBytes = 5000 })
	f := func(planned int64, busy bool) {
		t.Helper()
		part := part()
		part.Plan.MaxBytes = planned
		_, err := text(p.open(part))
		var limit *operator.LimitError
		if errors.Is(err, wire.ErrBusy) != busy || errors.As(err, &limit) == busy {
			t.Errorf("plan of %d bytes: %v, want it refused as busy: %t", planned, err, busy)
		}
	}
	f(0, true)
	f(6000, true)
	f(5000, false)
	f(1000, false)
}

// A ticket over the limit is refused before it is parsed; one of a newer version is refused with
// an error that names the versions.
func TestDoGet_tickets(t *testing.T) {
	p := start(t, points(100), nil)
	large := part()
	tag := operatortest.UID(1)
	large.Plan.Tags = []scanplan.TagPredicate{{TagK: tag, Op: scanplan.In}}
	for i := range wire.MaxTicket / 8 {
		large.Plan.Tags[0].Values = append(large.Plan.Tags[0].Values, operatortest.UID(i+1))
	}
	if _, err := text(p.open(large)); !errors.Is(err, wire.ErrServer) ||
		!strings.Contains(err.Error(), "ResourceExhausted") {
		t.Errorf("a ticket over the limit: %.200v, want ResourceExhausted", err)
	}
	newer := part()
	newer.Plan.Version = scanplan.Version + 1
	_, err := text(p.open(newer))
	want := fmt.Sprintf("version %d, want %d", scanplan.Version+1, scanplan.Version)
	if !errors.Is(err, operator.ErrBadPlan) || !strings.Contains(err.Error(), want) {
		t.Errorf("a newer plan: %v, want %q", err, want)
	}
}

// Connections that say nothing, or something that is not HTTP, keep no part from being answered.
func TestServe_strangers(t *testing.T) {
	p := start(t, points(100), nil)
	for _, hello := range []string{"", "P", "PRI * HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x00", "put sys.a 1 1 a=b\n"} {
		c, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(hello)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := text(p.open(part())); err != nil {
		t.Error(err)
	}
}
