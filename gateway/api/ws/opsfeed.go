package ws

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"downpour/gateway/live"
)

// kindOps is the message with the gateway's activity for operators.
const kindOps live.Kind = "ops"

// source is the source of a subscription's updates.
type source interface {
	// Next returns the next update, nil if there is none now. It does not block.
	Next() *live.Update
	// Close ends the subscription. It may be called again.
	Close()
}

// opsFeed remakes the operators' view every so often while there are subscribers, once for all.
type opsFeed struct {
	cfg  *Config
	work sync.WaitGroup

	mu struct {
		sync.Mutex
		subs   map[*opsSubscription]struct{}
		stop   context.CancelFunc // of the loop; nil when none runs
		update *live.Update       // the newest; nil before the first
		made   uint64             // updates so far
	}
}

// opsSubscription is one operator's place in the feed.
type opsSubscription struct {
	feed  *opsFeed
	token string
	wake  func()

	// Guarded by feed.mu.
	seen uint64 // updates made when Next returned the last one
	over bool   // Next has returned an update that ends the subscription
}

func newOpsFeed(cfg *Config) *opsFeed {
	f := &opsFeed{cfg: cfg}
	f.mu.subs = map[*opsSubscription]struct{}{}
	return f
}

// subscribe begins a subscription of the holder of a token. The error is for the client.
func (f *opsFeed) subscribe(token string, wake func()) (*opsSubscription, *live.Error) {
	if f.cfg.Ops == nil {
		return nil, badRequest("There is nothing to tell of operations here")
	}
	if !f.allows(token) {
		return nil, errNoOperator
	}
	f.mu.Lock()
	defer f.mu.Unlock()

	s := &opsSubscription{feed: f, token: token, wake: wake}
	f.mu.subs[s] = struct{}{}
	if f.mu.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		f.mu.stop, f.mu.update = stop, nil // an old update is not sent again
		f.work.Go(func() { f.run(ctx) })
	} else if f.mu.update != nil {
		wake()
	}
	return s, nil
}

// errNoOperator refuses a token, at first or because it has lost its scope.
var errNoOperator = &live.Error{Code: 403, Message: "A token with scope admin is wanted"}

func (f *opsFeed) allows(token string) bool {
	return f.cfg.AuthorizeOps == nil || f.cfg.AuthorizeOps(token)
}

// run makes updates until ctx ends.
func (f *opsFeed) run(ctx context.Context) {
	ticker := time.NewTicker(f.cfg.OpsEvery)
	defer ticker.Stop()
	for {
		f.publish(ctx, f.ask(ctx))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// ask makes an update. A fault is sent to the operators, who will look for it.
func (f *opsFeed) ask(ctx context.Context) (u *live.Update) {
	defer func() {
		if p := recover(); p != nil {
			f.cfg.Log.Error("stream: what operators see could not be made", "panic", p, "stack", string(debug.Stack()))
			u = live.NewError(&live.Error{Code: 500, Message: "Internal error", Temporary: true})
		}
	}()

	text, err := f.cfg.Ops(ctx)
	if err != nil {
		return live.NewError(&live.Error{Code: 500, Message: err.Error(), Temporary: true})
	}
	return live.NewMessage(kindOps, fmt.Appendf(nil, `,"ops":%s}`, text))
}

// publish makes an update the newest, and wakes the subscribers.
func (f *opsFeed) publish(ctx context.Context, u *live.Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return // another loop may run already
	}
	f.mu.update = u
	f.mu.made++
	for s := range f.mu.subs {
		s.wake()
	}
}

// Next implements source. A slow client misses updates, and always gets the newest.
func (s *opsSubscription) Next() *live.Update {
	allowed := s.feed.allows(s.token) // a token may be revoked; the check holds no lock
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()

	_, here := f.mu.subs[s]
	switch {
	case !here || s.over:
		return nil
	case !allowed:
		s.over = true
		return live.NewError(errNoOperator)
	case f.mu.update == nil || s.seen == f.mu.made:
		return nil
	}
	s.seen = f.mu.made
	return f.mu.update
}

// Close implements source. The loop ends with the last subscriber.
func (s *opsSubscription) Close() {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()

	delete(f.mu.subs, s)
	if len(f.mu.subs) == 0 && f.mu.stop != nil {
		f.mu.stop()
		f.mu.stop = nil
	}
}
