package kerberos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jcmturner/gokrb5/v8/types"
)

// Client makes contexts as one principal. Its methods may be called by several
// goroutines.
type Client struct {
	principal principal
	source    source
	log       *slog.Logger
	now       func() time.Time

	loginMu      sync.Mutex // held during a login
	tgt          *ticket    // guarded by loginMu, as the three below
	loginErr     error      // of the last login, until retryLogin
	retryLogin   time.Time
	retryRefused time.Time // no login before because the KDC has refused tgt

	warned atomic.Int64 // when warn logged, Unix time in ns

	mu       sync.Mutex
	services map[string]*service // by principal as requested
}

// service is what is known of the tickets for one service. Client.mu guards it.
type service struct {
	ticket  *ticket       // nil before the first
	used    time.Time     // when a connection wanted it; zero if the KDC no longer knows the server
	err     error         // of the last attempt
	retry   time.Time     // no attempt before
	getting chan struct{} // closed when the attempt that is under way has ended; nil if none is
}

// Between a failed attempt and the next: so that many connections do not keep calling a KDC that is
// down or refuses us, which may lock our principal.
const (
	retryAfter   = time.Second
	refusedAfter = 10 * time.Second
)

// attemptFor bounds an attempt with all of its exchanges. It does not end with its caller: others
// may want the ticket, too.
const attemptFor = time.Minute

// Open returns a client. It reads the files, but calls no KDC. log gets failures without effect
// yet; it may be nil.
func Open(cfg Config, log *slog.Logger) (*Client, error) {
	if (cfg.Keytab == "") == (cfg.TicketCache == "") {
		return nil, errors.New("credentials: want a keytab or a ticket cache, and not both")
	}
	conf, err := loadKrb5Conf(cfg.Krb5Conf)
	if err != nil {
		return nil, err
	}

	own := ownPrincipal
	if cfg.Keytab == "" {
		own = cachedPrincipal
	}
	p, err := own(cfg, conf.LibDefaults.DefaultRealm)
	if err != nil {
		return nil, err
	}
	return newClient(p, &kdc{cfg, p, newNetwork()}, log), nil
}

func newClient(p principal, s source, log *slog.Logger) *Client {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Client{principal: p, source: s, log: log, now: time.Now, services: map[string]*service{}}
}

// ownPrincipal returns the principal that we have keys of.
func ownPrincipal(cfg Config, realm string) (principal, error) {
	keys, err := loadKeytab(cfg.Keytab)
	if err != nil {
		return principal{}, err
	}
	if cfg.Principal == "" {
		return principal{}, errors.New("our principal: got nothing, want name@REALM or name/host@REALM")
	}

	var tried []string
	for _, host := range append(ownHosts(), "") {
		p, err := parsePrincipal(ServerPrincipal(context.Background(), cfg.Principal, host), realm)
		if err != nil {
			return principal{}, err
		}
		for _, e := range keys.Entries {
			if e.Principal.Realm == p.realm &&
				(types.PrincipalName{NameString: e.Principal.Components}).Equal(p.PrincipalName) {
				return p, nil
			}
		}
		if host != "" {
			tried = append(tried, p.String())
		}
	}
	return principal{}, fmt.Errorf("keytab %s: it has no key of %v", cfg.Keytab, tried)
}

// cachedPrincipal returns the principal whose tickets the ticket cache has. The file may
// come later if the settings name the principal.
func cachedPrincipal(cfg Config, realm string) (principal, error) {
	if cfg.Principal != "" {
		return parsePrincipal(ServerPrincipal(context.Background(), cfg.Principal, append(ownHosts(), "localhost")[0]),
			realm)
	}
	cache, err := loadCache(cfg.TicketCache)
	if err != nil {
		return principal{}, err
	}
	return cachePrincipal(cache), nil
}

// Principal returns our principal, name@REALM.
func (c *Client) Principal() string { return c.principal.String() }

// aging reports whether the next ticket should be requested: three quarters of its time are over.
func aging(t *ticket, now time.Time) bool { return t.end.Sub(now) < t.end.Sub(t.begin)/4 }

// usable reports whether a ticket lasts long enough to be shown to a server: for a
// minute, or for an eighth of its time.
func usable(t *ticket, now time.Time) bool {
	return t != nil && t.end.Sub(now) > min(time.Minute, t.end.Sub(t.begin)/8)
}

// ticketFor returns a ticket for the service of a principal, name/host[@REALM]. It waits
// for the KDC only if there is none that can be used.
func (c *Client) ticketFor(ctx context.Context, name string) (*ticket, error) {
	// A ticket may end between its arrival and this check: the process was stopped, or the clock
	// was set. The next one is from after that.
	for range 2 {
		if t, err := c.waitFor(ctx, name); t != nil || err != nil {
			return t, err
		}
	}
	return nil, fmt.Errorf("ticket for %s: it ends as soon as it comes: is the clock right?", name)
}

// waitFor is one attempt of ticketFor. It returns nothing if the ticket has ended since it
// came.
func (c *Client) waitFor(ctx context.Context, name string) (*ticket, error) {
	c.mu.Lock()
	s := c.services[name]
	if s == nil {
		s = &service{}
		c.services[name] = s
	}

	now := c.now()
	s.used = now
	ready := usable(s.ticket, now)
	if (!ready || aging(s.ticket, now)) && s.getting == nil && !now.Before(s.retry) {
		s.getting = make(chan struct{})
		go c.get(name, s)
	}
	t, err, getting := s.ticket, s.err, s.getting
	c.mu.Unlock()

	switch {
	case ready:
		return t, nil
	case getting == nil:
		return nil, err // of just now
	}
	select {
	case <-getting:
	case <-ctx.Done():
		return nil, fmt.Errorf("no ticket for %s yet: %w", name, ctx.Err())
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if !usable(s.ticket, c.now()) {
		return nil, s.err
	}
	return s.ticket, nil
}

// Refused drops the ticket with which a context was begun, since the server at an address
// has refused it: its key may be a new one, for which the KDC makes another ticket.
func (c *Client) Refused(server, addr string, x *Context) {
	c.mu.Lock()
	defer c.mu.Unlock()

	// Other connections may have got another ticket in between.
	if s := c.services[server]; s != nil && s.ticket == x.ticket {
		s.ticket, s.err, s.retry = nil, fmt.Errorf("%w: %s at %s", errRefused, server, addr), c.now().Add(retryAfter)
	}
}

// errRefused is returned for a while after a server has refused a ticket.
var errRefused = errors.New("the server has just refused our ticket")

// get gets a ticket and ends the attempt.
func (c *Client) get(name string, s *service) {
	t, err := c.ask(name)

	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	switch {
	case err == nil && usable(t, now):
		s.ticket, s.err, s.retry = t, nil, time.Time{}
	case err == nil:
		err = fmt.Errorf("ticket for %s: it ends at %s, too soon: is the clock right?", name,
			t.end.Format(time.RFC3339))
		fallthrough
	default:
		s.err, s.retry = err, now.Add(retryAfter)
		if usable(s.ticket, now) {
			// Connections do not wait for it, so it need not be tried all the time.
			s.retry = now.Add(min(refusedAfter, s.ticket.end.Sub(now)/8))
			c.warn("cannot get the next Kerberos ticket, the last one is used as long as it lasts", "service", name,
				"until", s.ticket.end, "error", err)
		}
	}
	close(s.getting)
	s.getting = nil
}

// ask requests a ticket for a service from the KDC, and one of our own before if necessary.
func (c *Client) ask(name string) (*ticket, error) {
	// The realm may be left out: then krb5.conf or the KDC knows it.
	p, err := parsePrincipal(name, c.principal.realm)
	if err != nil {
		return nil, err
	}
	_, realm, _ := strings.Cut(name, "@")
	ctx, cancel := context.WithTimeout(context.Background(), attemptFor)
	defer cancel()

	tgt, err := c.login(ctx)
	if err != nil {
		return nil, loginFailure{err}
	}
	t, err := c.source.service(ctx, tgt, p.PrincipalName, realm)
	var refused *kdcError
	if !errors.As(err, &refused) || !refused.refusal || refused.unknownServer {
		return t, err
	}

	// It may be our own ticket that is refused, for which there are many codes: the KDC's
	// key was changed, or the ticket was revoked.
	tgt, loginErr := c.loginInstead(ctx, tgt)
	switch {
	case loginErr != nil:
		return nil, fmt.Errorf("%w; a new login: %w", err, loginErr)
	case tgt == nil:
		return nil, err
	}
	return c.source.service(ctx, tgt, p.PrincipalName, realm)
}

// loginFailure is why no service can get a ticket: we have none of our own.
type loginFailure struct{ error }

func (e loginFailure) Unwrap() error { return e.error }

// loginInstead returns a ticket-granting ticket in place of one that the KDC refuses. It returns
// nil if there was such a login just now. The refused one is kept until there is another: it may
// work for other services.
func (c *Client) loginInstead(ctx context.Context, refused *ticket) (*ticket, error) {
	c.loginMu.Lock()
	defer c.loginMu.Unlock()

	now := c.now()
	if c.tgt != refused && usable(c.tgt, now) {
		return c.tgt, nil // another service's request was refused before
	}
	if now.Before(c.retryLogin) || now.Before(c.retryRefused) {
		return nil, nil
	}
	c.retryRefused = now.Add(refusedAfter)
	return c.loginAgain(ctx, true)
}

// login returns our ticket-granting ticket. A new one is got if that ends soon; if it
// cannot be got, the old one is used to its end.
func (c *Client) login(ctx context.Context) (*ticket, error) {
	c.loginMu.Lock()
	defer c.loginMu.Unlock()

	now := c.now()
	ready := usable(c.tgt, now)
	if ready && !aging(c.tgt, now) {
		return c.tgt, nil
	}
	if now.Before(c.retryLogin) {
		if ready {
			return c.tgt, nil
		}
		return nil, c.loginErr
	}

	t, err := c.loginAgain(ctx, false)
	if err != nil && ready {
		// Connections do not wait for it, so it need not be tried all the time.
		if pause := now.Add(min(refusedAfter, c.tgt.end.Sub(now)/8)); pause.After(c.retryLogin) {
			c.retryLogin = pause
		}
		c.warn("cannot get our next Kerberos ticket, the last one is used as long as it lasts", "until", c.tgt.end,
			"error", err)
		return c.tgt, nil
	}
	return t, err
}

// loginAgain gets a ticket-granting ticket. refused is set if the KDC refuses the last one. loginMu
// is held.
func (c *Client) loginAgain(ctx context.Context, refused bool) (*ticket, error) {
	t, err := c.source.login(ctx, c.tgt, refused)
	if err == nil && !usable(t, c.now()) {
		err = fmt.Errorf("ticket of %s: it ends at %s, too soon: is the clock right?", c.principal,
			t.end.Format(time.RFC3339))
	}
	if err == nil {
		c.tgt, c.loginErr = t, nil
		return t, nil
	}

	c.loginErr, c.retryLogin = err, c.now().Add(retryAfter)
	var refusal *kdcError
	if errors.As(err, &refusal) && !refusal.away {
		c.retryLogin = c.now().Add(refusedAfter)
	}
	return nil, err
}
