package kerberos

import (
	"context"
	"errors"
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
// has ended. It ends with ctx even while a KDC is asked. Several may run.
func (c *Client) Keep(ctx context.Context) {
	pause := keepEvery
	for {
		wait, err := c.keepOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.warn("cannot keep the Kerberos tickets alive, it is tried again", "error", err)
			wait, pause = pause, min(2*pause, keepPause)
		default:
			pause = keepEvery
		}

		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// keepOnce gets the tickets that are due, one after the other, until one cannot be got. It
// returns when to look again.
func (c *Client) keepOnce(ctx context.Context) (time.Duration, error) {
	wait, loginErr := c.keepLogin(ctx)
	for name, s := range c.kept() {
		due, err := c.keepService(ctx, name, s)
		if err != nil || ctx.Err() != nil {
			return 0, err
		}
		wait = min(wait, due)
	}
	return max(wait, time.Second), loginErr
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
		// A failure that does not matter yet counts, too.
		done <- errors.Join(err, c.loginErr)
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
