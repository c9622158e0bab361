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
	// keepEvery is the longest interval between Keep's checks of the tickets: connections get some,
	// too, and the clock may be set or the machine have slept.
	keepEvery = 10 * time.Second
	// keepFor is how long a ticket is kept alive after a connection has wanted it. A
	// connection may be open for weeks; but servers that no longer exist are dropped.
	keepFor = 30 * 24 * time.Hour
	// keepPause is the longest pause after failures: a KDC that refuses us may count them
	// and lock our principal.
	keepPause = 5 * time.Minute
	// warnEvery is how often a failure is logged.
	warnEvery = 10 * time.Minute
)

// Keep gets the next tickets when the used ones grow old, until ctx ends: while connections last,
// no ticket may be requested for days, and none could be renewed once it has ended. A failure for
// one ticket does not delay others. It ends with ctx even during a call to a KDC. Several may run.
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

// renewals are those of one call of Keep. Failed renewals are retried together, after longer and
// longer pauses.
type renewals struct {
	*Client
	failing map[string]error // why, by service; by ownLogin for the ticket-granting ticket
	away    map[string]bool  // realms whose KDC could not be reached: each attempt takes seconds
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
		k.retryAt(again, failed)
	}
	return max(wait, time.Second)
}

// inOrder returns names of services, failing ones last: they may take long. Failures of services
// that are no longer kept are dropped.
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

// retryAt sets when failures are retried, and logs new ones.
func (k *renewals) retryAt(again, failed bool) {
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

// isAway reports whether no KDC could be reached.
func isAway(err error) bool {
	var e *kdcError
	return errors.As(err, &e) && e.away
}

// isOfAll reports whether an error of one service's ticket would also hit all others.
func isOfAll(err error) bool {
	var e *kdcError
	var login loginFailure
	return errors.As(err, &login) || errors.As(err, &e) && e.ours
}

// kept returns the services whose tickets are kept alive, and drops unused ones.
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
			err = c.loginErr // a failure without effect yet counts, too
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

// warn logs a failure without effect yet, now and then: attempts continue, and there may be many
// services.
func (c *Client) warn(text string, args ...any) {
	now := c.now().UnixNano()
	last := c.warned.Load()
	if (last == 0 || now-last > int64(warnEvery)) && c.warned.CompareAndSwap(last, now) {
		c.log.Warn(text, args...)
	}
}
