package kerberos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jcmturner/gokrb5/v8/types"
)

var errAway = &kdcError{text: "no KDC of R can be reached", away: true, err: errors.New("refused")}

// errLocked is a refusal that is about us, whatever service a ticket is for.
var errLocked = explain(errors.New("KRB Error: (18) KDC_ERR_CLIENT_REVOKED"), "me", "hbase/a", "R")

// keeping runs Keep in a bubble while f runs, and sees that it ends.
func keeping(t *testing.T, life time.Duration, f func(t *testing.T, p *played, c *Client, log *bytes.Buffer)) {
	synctest.Test(t, func(t *testing.T) {
		p, c := play(life)
		p.bubble = true
		var log bytes.Buffer
		c.log = slog.New(slog.NewTextHandler(&log, nil))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Keep(ctx)
		}()
		f(t, p, c, &log)
		cancel()
		<-done
	})
}

// after lets a time pass in the bubble.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Tickets live on without connections: with a keytab for ever, with a ticket cache up to the
// end of renewing. So a KDC that is away when a connection breaks does not matter.
func TestKeep(t *testing.T) {
	for _, renewed := range []bool{false, true} {
		keeping(t, 10*time.Hour, func(t *testing.T, p *played, c *Client, log *bytes.Buffer) {
			if renewed {
				p.until = time.Now().Add(7 * 24 * time.Hour)
			}
			if _, err := c.ticketFor(t.Context(), server); err != nil {
				t.Fatal(err)
			}
			after(7*24*time.Hour - 3*time.Hour)

			p.set(func() { p.loginErr, p.err = errAway, errAway })
			logins, services := p.counts()
			got, err := c.ticketFor(t.Context(), server)
			if err != nil || time.Until(got.end) < 2*time.Hour {
				t.Fatalf("renewed %v: after a week without a connection, with the KDC away: %v, %v", renewed, got, err)
			}
			if logins < 20 || logins > 60 || services < 20 || services > 60 || log.Len() > 0 {
				t.Errorf("renewed %v: %d logins and %d tickets in a week of tickets of 10 h, want 20 to 60\n%s",
					renewed, logins, services, log)
			}
		})
	}
}

// Our own ticket is renewed also while no server's is.
func TestKeep_login(t *testing.T) {
	keeping(t, 10*time.Hour, func(t *testing.T, p *played, c *Client, _ *bytes.Buffer) {
		p.until = time.Now().Add(7 * 24 * time.Hour)
		if _, err := c.ticketFor(t.Context(), server); err != nil {
			t.Fatal(err)
		}
		p.set(func() { p.unknown = server })
		after(2 * 24 * time.Hour)
		if _, err := c.ticketFor(t.Context(), "hbase/b"); err != nil {
			t.Errorf("another server after two days: %v", err)
		}
	})
}

// While the KDC is away or refuses us, Keep asks calmly and logs now and then; afterwards it
// goes on.
func TestKeep_failures(t *testing.T) {
	for name, failure := range map[string]error{"away": errAway, "refused": errLocked} {
		keeping(t, 10*time.Hour, func(t *testing.T, p *played, c *Client, log *bytes.Buffer) {
			for _, s := range []string{server, "hbase/b", "hbase/c"} {
				if _, err := c.ticketFor(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			p.set(func() { p.loginErr, p.err = failure, failure })
			after(9*time.Hour + 30*time.Minute)
			logins, services := p.counts()
			// Two hours of attempts, each five minutes, after the first ones.
			if logins < 10 || logins > 40 || services > 100 {
				t.Errorf("%s: %d logins and %d requests for tickets, want 10 to 40 and at most 100", name, logins,
					services)
			}
			if lines := strings.Count(log.String(), "\n"); lines == 0 || lines > 15 {
				t.Errorf("%s: %d lines in the log, want 1 to 15:\n%s", name, lines, log)
			}

			p.set(func() { p.loginErr, p.err = nil, nil })
			after(keepPause + time.Second)
			p.set(func() { p.loginErr, p.err = failure, failure })
			after(time.Hour)
			if _, err := c.ticketFor(t.Context(), server); err != nil {
				t.Errorf("%s: after the KDC was back: %v", name, err)
			}
		})
	}
}

// Services whose tickets cannot be had for days do not delay the tickets of others, are
// retried slowly, and each is in the log with its cause. Afterwards they are got again.
func TestKeep_others(t *testing.T) {
	keeping(t, 40*time.Minute, func(t *testing.T, p *played, c *Client, log *bytes.Buffer) {
		refused := map[string]error{}
		for i := range 30 {
			name := fmt.Sprintf("hbase/h%02d@R", i)
			if _, err := c.ticketFor(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			if i%10 != 9 {
				refused[name[:len(name)-2]] = &kdcError{
					text:    "no ticket for " + name,
					refusal: true,
					err:     errors.New("KDC_ERR_POLICY"),
				}
			}
		}
		p.set(func() { p.refused = refused })
		for minutes := range 2 * 24 * 60 {
			after(time.Minute)
			for _, name := range []string{"hbase/h09@R", "hbase/h19@R", "hbase/h29@R"} {
				c.mu.Lock()
				ok := usable(c.services[name].ticket, time.Now())
				c.mu.Unlock()
				if !ok {
					t.Fatalf("after %d minutes there is no ticket for %s, which nobody refuses", minutes, name)
				}
			}
		}

		// Each of 27 twice in five minutes, and each login once more.
		logins, services := p.counts()
		if most := 2 * 24 * 12; logins > 2*most || services > 27*3*most {
			t.Errorf("%d logins and %d requests for tickets in two days", logins, services)
		}
		if text := log.String(); !strings.Contains(text, "hbase/h00@R: no ticket for hbase/h00@R (KDC_ERR_POLICY)") ||
			!strings.Contains(text, "and 7 more") {
			t.Errorf("want the first services with their causes in the log, and how many more, got %.2000s", text)
		}

		p.set(func() { p.refused = nil })
		after(keepPause + keepEvery)
		p.set(func() { p.loginErr, p.err = errAway, errAway })
		for name := range c.kept() {
			if _, err := c.ticketFor(t.Context(), name); err != nil {
				t.Errorf("after nothing is refused any more: %v", err)
			}
		}
	})
}

// A failure that each service would have ends the attempts at once: none for the other services
// follow, which would count against our principal, or take seconds each.
func TestKeep_all(t *testing.T) {
	for name, failure := range map[string]error{"away": errAway, "locked": errLocked} {
		keeping(t, 10*time.Hour, func(t *testing.T, p *played, c *Client, log *bytes.Buffer) {
			for i := range 50 {
				if _, err := c.ticketFor(t.Context(), fmt.Sprintf("hbase/h%02d@R", i)); err != nil {
					t.Fatal(err)
				}
			}
			p.set(func() { p.err = failure })
			_, before := p.counts()
			after(9*time.Hour + 50*time.Minute)
			if _, services := p.counts(); services-before < 20 || services-before > 100 {
				t.Errorf("%s: %d requests in the last two hours, want one each five minutes, or two after a new login",
					name, services-before)
			}
			p.set(func() { p.loginErr = failure })
			after(11 * time.Hour) // no ticket of our own can be used any more
			logins, before := p.counts()
			after(2 * time.Hour)
			after, services := p.counts()
			if after -= logins; after < 20 || after > 50 || services != before {
				t.Errorf("%s: %d logins and %d requests for tickets in two hours without a login, "+
					"want one login each five minutes",
					name, after, services-before)
			}
			if !strings.Contains(log.String(), failure.Error()) {
				t.Errorf("%s: the log does not say why: %s", name, log)
			}
		})
	}
}

// A realm whose KDC is away, or refuses us, keeps no service of another from its next ticket.
func TestKeep_realms(t *testing.T) {
	for name, failure := range map[string]error{"away": errAway, "locked": errLocked} {
		keeping(t, 40*time.Minute, func(t *testing.T, p *played, c *Client, log *bytes.Buffer) {
			refused := map[string]error{}
			for i := range 20 {
				for _, realm := range []string{"A", "R"} {
					if _, err := c.ticketFor(t.Context(), fmt.Sprintf("hbase/%s%02d@%s", realm, i, realm)); err != nil {
						t.Fatal(err)
					}
				}
				refused[fmt.Sprintf("hbase/A%02d", i)] = failure
			}
			p.set(func() { p.refused = refused })
			logins, before := p.counts()
			after(24 * time.Hour)
			if logins, services := subtract(p, logins, before); services > 20*100+2*24*14 || logins > 24*14+100 {
				t.Errorf("%s: %d logins and %d requests a day", name, logins, services)
			}
			p.set(func() { p.loginErr, p.err = failure, failure })
			for i := range 20 {
				if _, err := c.ticketFor(t.Context(), fmt.Sprintf("hbase/R%02d@R", i)); err != nil {
					t.Errorf("%s: a service of the realm that was there: %v", name, err)
				}
			}
		})
	}
}

// subtract returns the counts since some earlier ones.
func subtract(p *played, logins, services int) (int, int) {
	l, s := p.counts()
	return l - logins, s - services
}

// Servers that are gone are forgotten: at once if the KDC does not know them any more, else
// after a month.
func TestKeep_gone(t *testing.T) {
	keeping(t, 10*time.Hour, func(t *testing.T, p *played, c *Client, log *bytes.Buffer) {
		for _, s := range []string{server, "hbase/b"} {
			if _, err := c.ticketFor(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		p.set(func() { p.unknown = "hbase/b" })
		after(24 * time.Hour)
		if kept := c.kept(); len(kept) != 1 || kept[server] == nil || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("kept after a day: %v, want %s alone, and one line:\n%s", kept, server, log)
		}
		c.mu.Lock()
		c.services[server].used = time.Now().Add(-keepFor)
		c.mu.Unlock()
		after(10 * time.Hour) // so long lasts its ticket
		_, before := p.counts()
		after(24 * time.Hour)
		if _, services := p.counts(); len(c.services) != 0 || services != before {
			t.Errorf("kept after a month: %v, and %d requests a day", c.services, services-before)
		}
	})
}

// Keep ends with its context even while the KDC does not answer.
func TestKeep_ends(t *testing.T) {
	var wait chan struct{}
	synctest.Test(t, func(t *testing.T) {
		wait = make(chan struct{})
		keepingEnds(t, wait)
		close(wait)
	})
}

func keepingEnds(t *testing.T, wait chan struct{}) {
	p, c := play(time.Hour)
	p.bubble = true
	if _, err := c.ticketFor(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	p.set(func() { p.wait = wait })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Minute)
	defer cancel()
	c.Keep(ctx)
	if _, services := p.counts(); services != 2 {
		t.Errorf("%d requests, want 2: the second is not answered", services)
	}
}

// After a change of the KDC's key our own ticket is requested again, once, and the request
// succeeds.
func TestTickets_newKDCKey(t *testing.T) {
	p, c := play(time.Hour)
	if _, err := c.ticketFor(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	p.set(func() { p.stale = c.tgt })
	for _, s := range []string{"hbase/b", "hbase/c"} {
		if _, err := c.ticketFor(t.Context(), s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if logins, services := p.counts(); logins != 2 || services != 4 {
		t.Errorf("%d logins, %d requests, want 2 and 4", logins, services)
	}
}

// A service that the KDC refuses for its own sake does not cause many logins.
func TestTickets_refusedLogins(t *testing.T) {
	p, c := play(time.Hour)
	p.err = &kdcError{text: "policy", refusal: true, err: errors.New("KDC_ERR_POLICY")}
	for range 100 {
		if _, err := c.ticketFor(t.Context(), server); err == nil || !strings.Contains(err.Error(), "policy") {
			t.Fatalf("got %v, want the refusal", err)
		}
		p.pass(time.Second / 5)
	}
	if logins, _ := p.counts(); logins < 2 || logins > 4 {
		t.Errorf("%d logins in 20 s, want 2 to 4", logins)
	}
}

// A ticket that ends between its arrival and the look at it is an error or is got again,
// never nothing.
func TestTickets_clockSteps(t *testing.T) {
	p, c := play(time.Hour)
	c.now = func() time.Time {
		now := p.clock()
		p.pass(20 * time.Minute)
		return now
	}
	for range 20 {
		if got, err := c.ticketFor(t.Context(), server); got == nil && err == nil {
			t.Fatal("got neither a ticket nor an error")
		}
	}
}

// A ticket of the ticket cache takes the place of one that the KDC refuses whatever its end,
// else only if it ends later.
func TestNewer(t *testing.T) {
	made := func(cipher string, end int64) *ticket {
		out := &ticket{end: time.Unix(end, 0)}
		out.EncPart = types.EncryptedData{Cipher: []byte(cipher)}
		return out
	}
	for _, tc := range []struct {
		cached, last           *ticket
		refused, file, stillNo bool
	}{
		{made("a", 1), nil, false, true, false},
		{made("a", 1), made("b", 2), false, false, false},
		{made("a", 3), made("b", 2), false, true, false},
		{made("a", 1), made("b", 2), true, true, false},
		{made("b", 2), made("b", 2), true, false, true},
	} {
		got, refused := inUse(tc.cached, tc.last, tc.refused)
		if (got == tc.cached) != tc.file || refused != tc.stillNo {
			t.Errorf("%+v: got %v, %v", tc, got, refused)
		}
	}
}
