package kerberos

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/types"
)

// played is a source whose tickets last for life by a clock that the test sets.
type played struct {
	mu       sync.Mutex
	now      time.Time
	life     time.Duration
	loginErr error
	err      error
	logins   int
	services int
	wait     chan struct{}    // if not nil, services are given once it is closed
	bubble   bool             // the clock is that of synctest
	until    time.Time        // if set, logins renew a ticket, up to then
	stale    *ticket          // the KDC refuses services for this ticket-granting ticket
	unknown  string           // the KDC does not know this server
	refused  map[string]error // by server: its ticket cannot be got
}

func (p *played) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.time()
}

func (p *played) time() time.Time {
	if p.bubble {
		return time.Now()
	}
	return p.now
}

func (p *played) ticket() *ticket {
	return &ticket{begin: p.time(), end: p.time().Add(p.life)}
}

func (p *played) login(_ context.Context, old *ticket, _ bool) (*ticket, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logins++
	t := p.ticket()
	if !p.until.IsZero() {
		if old != nil && !p.time().Before(old.end) {
			return nil, errors.New("ended")
		}
		if t.end.After(p.until) {
			t.end = p.until
		}
	}
	return t, p.loginErr
}

func (p *played) service(_ context.Context, tgt *ticket, name types.PrincipalName, _ string) (*ticket, error) {
	p.mu.Lock()
	p.services++
	wait := p.wait
	p.mu.Unlock()
	if wait != nil {
		<-wait
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case tgt == p.stale:
		return nil, &kdcError{text: "our ticket is refused", refusal: true, err: errors.New("KRB_AP_ERR_MODIFIED")}
	case p.unknown != "" && name.PrincipalNameString() == p.unknown:
		return nil, &kdcError{
			text:          "no such server",
			refusal:       true,
			unknownServer: true,
			err:           errors.New("KDC_ERR_S_PRINCIPAL_UNKNOWN"),
		}
	}
	if err := p.refused[name.PrincipalNameString()]; err != nil {
		return nil, err
	}
	t := p.ticket()
	if t.end.After(tgt.end) {
		t.end = tgt.end
	}
	return t, p.err
}

func (p *played) pass(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
}

func (p *played) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *played) counts() (logins, services int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logins, p.services
}

func play(life time.Duration) (*played, *Client) {
	p := &played{now: time.Unix(1e9, 0), life: life}
	c := newClient(principal{types.PrincipalName{NameString: []string{"me"}}, "R"}, p, nil)
	c.now = p.clock
	return p, c
}

// settle waits until no ticket is being got.
func settle(c *Client, name string) {
	c.mu.Lock()
	getting := c.services[name].getting
	c.mu.Unlock()
	if getting != nil {
		<-getting
	}
}

const server = "hbase/a"

// Over hours of tickets that last a minute no request is without a ticket that lasts, and
// none waits for the KDC but the first.
func TestTickets_renewed(t *testing.T) {
	p, c := play(time.Minute)
	var last *ticket
	changes := 0
	for range 3600 {
		got, err := c.ticketFor(t.Context(), server)
		if err != nil {
			t.Fatal(err)
		}
		if left := got.end.Sub(p.clock()); left < 10*time.Second {
			t.Fatalf("the ticket lasts for only %v more", left)
		}
		if got != last {
			changes++
		}
		last = got
		settle(c, server)
		p.pass(time.Second)
	}
	if logins, services := p.counts(); services != changes || services < 60 || services > 100 || logins > services {
		t.Errorf("%d logins, %d tickets got and %d used in an hour, want some 80", logins, services, changes)
	}
}

// Many that want the first ticket share one request.
func TestTickets_shared(t *testing.T) {
	p, c := play(time.Hour)
	p.wait = make(chan struct{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := c.ticketFor(t.Context(), server); err != nil {
				t.Error(err)
			}
		})
	}
	close(p.wait)
	wg.Wait()
	if _, services := p.counts(); services != 1 {
		t.Errorf("%d requests, want 1", services)
	}
}

// A call that waits for a ticket ends with its context.
func TestTickets_context(t *testing.T) {
	p, c := play(time.Hour)
	p.wait = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.ticketFor(ctx, server); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	close(p.wait)
	settle(c, server)
}

// While the KDC is away the last ticket is used as long as it lasts, and the KDC is not
// asked all the time; when it is back the next request has a new one.
func TestTickets_away(t *testing.T) {
	away := &kdcError{text: "no KDC of R can be reached", away: true, err: errors.New("refused")}
	for _, what := range []string{"login", "service"} {
		t.Run(what, func(t *testing.T) {
			p, c := play(time.Hour)
			if _, err := c.ticketFor(t.Context(), server); err != nil {
				t.Fatal(err)
			}
			p.set(func() {
				if what == "login" {
					p.loginErr = away
				} else {
					p.err = away
				}
			})

			ended := 0
			for range 61 * 60 {
				p.pass(time.Second)
				_, err := c.ticketFor(t.Context(), server)
				settle(c, server)
				left := time.Unix(1e9, 0).Add(time.Hour).Sub(p.clock())
				switch {
				case left > time.Minute && err != nil:
					t.Fatalf("with a ticket that lasts for %v more: %v", left, err)
				case left <= 0 && !errors.Is(err, away):
					t.Fatalf("without a ticket: got %v, want that the KDC is away", err)
				case left <= 0:
					ended++
				}
			}
			if _, services := p.counts(); ended == 0 || services > 300 {
				t.Errorf("%d requests for tickets in an hour, want at most 300", services)
			}

			p.set(func() { p.loginErr, p.err = nil, nil })
			p.pass(refusedAfter)
			if _, err := c.ticketFor(t.Context(), server); err != nil {
				t.Errorf("the KDC is back: %v", err)
			}
		})
	}
}

// After a refusal the KDC is not called again for a while, so that our principal is not
// locked.
func TestTickets_refused(t *testing.T) {
	p, c := play(time.Hour)
	p.loginErr = &kdcError{text: "wrong key", err: errors.New("KDC_ERR_PREAUTH_FAILED")}
	for range 100 {
		if _, err := c.ticketFor(t.Context(), server); err == nil || !strings.Contains(err.Error(), "wrong key") {
			t.Fatalf("got %v", err)
		}
		p.pass(time.Second / 5)
	}
	if logins, _ := p.counts(); logins > 3 {
		t.Errorf("%d logins in 20 s, want at most 3", logins)
	}
}

// A ticket that a server has refused is requested again, once in a while.
func TestTickets_forgotten(t *testing.T) {
	p, c := play(time.Hour)
	for range 100 {
		got, err := c.ticketFor(t.Context(), server)
		if err != nil && !errors.Is(err, errRefused) {
			t.Fatal(err)
		}
		if err == nil {
			c.Refused(server, "a:16020", &Context{ticket: got})
		}
		p.pass(time.Second / 5)
	}
	if _, services := p.counts(); services < 15 || services > 25 {
		t.Errorf("%d tickets in 20 s, want one a second", services)
	}
}

// Tickets that have ended when they come, as by a clock that is wrong, are an error.
func TestTickets_ended(t *testing.T) {
	_, c := play(-time.Minute)
	if _, err := c.ticketFor(t.Context(), server); err == nil || !strings.Contains(err.Error(), "too soon") {
		t.Errorf("got %v, want that it ends too soon", err)
	}
}
