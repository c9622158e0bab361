package kerberos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// keepEvery is how often Keep looks at the tickets at least: others get some meanwhile,
	// and the clock may be set or the machine have slept.
	keepEvery = 10 * time.Second
	// keepFor is how long a ticket is kept alive after a connection has wanted it. A
	// connection may be open for weeks; but servers that are gone are forgotten.
	keepFor = 30 * 24 * time.Hour
	// keepPause is the longest pause after failures: a KDC that refuses us may count them
	// and lock our principal.
	keepPause = 5 * time.Minute
	// warnEvery is how often a failure is logged.
	warnEvery = 10 * time.Minute
)

// Keep gets the next tickets when the ones that are used grow old, until ctx ends: where
// connections last, nobody asks for a ticket for days, and none could be renewed once it
// has ended. A ticket that cannot be got does not keep others from being got. It ends with ctx
// even while a KDC is asked. Several may run.
func (c *Client) Keep(ctx context.Context) {
	k := renewals{Client: c, failing: map[string]error{}, away: map[string]bool{}}
	for ctx.Err() == nil {
		timer := time.NewTimer(k.once(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// renewals are those of one call of Keep. What cannot be got is tried again together, after longer and
// longer pauses.
type renewals struct {
	*Client
	failing map[string]error // why, by service; by ownLogin for the ticket-granting ticket
	away    map[string]bool  // realms whose KDC could not be asked: each attempt takes seconds
	pause   time.Duration    // the last one, 0 if nothing fails
	retry   time.Time        // what fails is not tried before
	stopped bool             // nothing is, because it would fail for the same reason
}

// ownLogin is in place of the name of a service.
const ownLogin = ""

// once gets the tickets that are due, one after the other, and returns when to look again. It stops
// early if what has failed is our own login, or our right to any ticket.
func (k *renewals) once(ctx context.Context) time.Duration {
	now := k.now()
	again := !now.Before(k.retry)
	if k.stopped && !again {
		return min(keepEvery, k.retry.Sub(now))
	}

	wait, failed := keepEvery, false
	note := func(name string, due time.Duration, err error) {
		if err == nil {
			delete(k.failing, name)
			wait = min(wait, due)
			return
		}
		k.failing[name], failed = err, true
	}
	if again || k.failing[ownLogin] == nil {
		due, err := k.keepLogin(ctx)
		note(ownLogin, due, err)
	}
	k.stopped = false

	if again {
		clear(k.away)
	}
	kept := k.kept()
	for _, name := range k.inOrder(kept) {
		_, realm, _ := strings.Cut(name, "@")
		if k.stopped || ctx.Err() != nil {
			break
		}
		if k.failing[name] != nil && !again || k.away[realm] {
			continue
		}
		due, err := k.keepService(ctx, name, kept[name])
		note(name, due, err)
		k.away[realm], k.stopped = isAway(err), isOfAll(err)
	}
	if ctx.Err() == nil {
		k.calm(again, failed)
	}
	return max(wait, time.Second)
}

// inOrder returns names of services, those that fail last: they may take long. What fails of a service that is
// not kept any more is forgotten.
func (k *renewals) inOrder(kept map[string]*service) []string {
	var fine, failing []string
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if k.failing[name] == nil {
			fine = append(fine, name)
		} else {
			failing = append(failing, name)
		}
	}
	maps.DeleteFunc(k.failing, func(name string, _ error) bool { return name != ownLogin && kept[name] == nil })
	return append(fine, failing...)
}

// calm says when what fails is tried again, and logs it if something has failed just now.
func (k *renewals) calm(again, failed bool) {
	switch {
	case len(k.failing) == 0:
		k.pause = 0
		clear(k.away)
	case again && failed:
		k.pause = min(max(2*k.pause, keepEvery), keepPause)
		k.retry = k.now().Add(k.pause)
	}
	if failed {
		k.warn("cannot keep the Kerberos tickets alive, it is tried again", "error", k.failures())
	}
}

// maxFailures bounds the services that a line of the log names.
const maxFailures = 20

// failures returns all that fails, each with its cause.
func (k *renewals) failures() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(k.failing)) {
		switch {
		case len(errs) == maxFailures:
			return errors.Join(append(errs, fmt.Errorf("and %d more", len(k.failing)-maxFailures))...)
		case name == ownLogin:
			errs = append(errs, fmt.Errorf("our own: %w", k.failing[name]))
		default:
			errs = append(errs, fmt.Errorf("%s: %w", name, k.failing[name]))
		}
	}
	return errors.Join(errs...)
}

// isAway tells whether no KDC could be asked.
func isAway(err error) bool {
	var e *kdcError
	return errors.As(err, &e) && e.away
}

// isOfAll tells whether an error of one service's ticket is one that each other's would have.
func isOfAll(err error) bool {
	var e *kdcError
	var login loginFailure
	return errors.As(err, &login) || errors.As(err, &e) && e.ours
}

// kept returns the services whose tickets are kept alive, and forgets those that are gone.
func (c *Client) kept() map[string]*service {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, out := c.now(), map[string]*service{}
	for name, s := range c.services {
		switch {
		case now.Sub(s.used) < keepFor:
			out[name] = s
		case s.getting == nil && !usable(s.ticket, now):
			delete(c.services, name)
		}
	}
	return out
}

// keepLogin gets the next ticket-granting ticket if it is due.
func (c *Client) keepLogin(ctx context.Context) (time.Duration, error) {
	if !c.loginMu.TryLock() {
		return keepEvery, nil // somebody is about it
	}
	t, now := c.tgt, c.now()
	c.loginMu.Unlock()
	if t == nil {
		return time.Second, nil // there will be one soon
	}
	if !aging(t, now) {
		return dueIn(t, now), nil
	}

	done := make(chan error, 1)
	go func() {
		attempt, cancel := context.WithTimeout(context.Background(), attemptFor)
		defer cancel()
		_, err := c.login(attempt)
		c.loginMu.Lock()
		defer c.loginMu.Unlock()
		if err == nil {
			err = c.loginErr // a failure that does not matter yet counts, too
		}
		done <- err
	}()
	select {
	case err := <-done:
		return keepEvery, err
	case <-ctx.Done():
		return 0, nil
	}
}

// keepService gets the next ticket for a service if it is due.
func (c *Client) keepService(ctx context.Context, name string, s *service) (time.Duration, error) {
	c.mu.Lock()
	now := c.now()
	switch {
	case usable(s.ticket, now) && !aging(s.ticket, now):
		defer c.mu.Unlock()
		return dueIn(s.ticket, now), nil
	case s.getting == nil && now.Before(s.retry):
		defer c.mu.Unlock()
		return keepEvery, nil
	case s.getting == nil:
		s.getting = make(chan struct{})
		go c.get(name, s)
	}
	getting := s.getting
	c.mu.Unlock()

	select {
	case <-getting:
	case <-ctx.Done():
		return 0, nil
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(s.err, ErrUnknownServer) {
		s.used = time.Time{} // until a connection wants it again
		return keepEvery, nil
	}
	return keepEvery, s.err
}

// dueIn returns how long it takes until a ticket is aging, keepEvery at most.
func dueIn(t *ticket, now time.Time) time.Duration {
	return min(keepEvery, t.end.Sub(now)-t.end.Sub(t.begin)/4+time.Millisecond)
}

// warn logs a failure that does not matter yet, now and then: the attempts go on, and there
// may be many services.
func (c *Client) warn(text string, args ...any) {
	now := c.now().UnixNano()
	last := c.warned.Load()
	if (last == 0 || now-last > int64(warnEvery)) && c.warned.CompareAndSwap(last, now) {
		c.log.Warn(text, args...)
	}
}
