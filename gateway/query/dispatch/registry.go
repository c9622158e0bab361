package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/rpc/wire"
)

// Server is a pushdown server as client.Client is one. Its methods may be called
// from many goroutines.
type Server interface {
	Address() string
	Hello(ctx context.Context) (wire.Hello, error)
	DropCaches(ctx context.Context) error
	Open(part *scanplan.Part) (operator.Operator, error)
}

// Times of the book on servers.
const (
	helloPatience = time.Second      // a server that takes longer is not used now
	helloTrust    = 30 * time.Second // so long an answer holds
	dropPatience  = 5 * time.Second  // a server that takes longer may not have dropped its caches
	firstPause    = time.Second      // before a server that failed is asked again
	lastPause     = 2 * time.Second  // it doubles up to this: one that is back is soon used again
)

// registry is what the executor knows of its servers, for all its runs. A server
// that failed is left alone for a while, so that one that hangs or is away does
// not delay every query.
type registry struct {
	servers []Server
	log     *slog.Logger
	mu      struct {
		sync.Mutex
		entries []serverHealth // of servers, by index
	}
}

type serverHealth struct {
	beside string
	asked  time.Time // of the last hello that was answered
	asking bool      // in the background
	until  time.Time // not to be used before
	pause  time.Duration
}

func newRegistry(servers []Server, log *slog.Logger) *registry {
	b := &registry{servers: servers, log: log}
	b.mu.entries = make([]serverHealth, len(servers))
	return b
}

// checkHealth asks every server whose answer is old, all at once, and waits for the
// answers. One that has failed is asked in the background: no query waits for a
// server that may hang.
func (b *registry) checkHealth(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range b.servers {
		switch stale, away := b.stale(i); {
		case stale && away:
			go b.hello(context.WithoutCancel(ctx), i)
		case stale:
			wg.Go(func() { b.hello(ctx, i) })
		}
	}
	wg.Wait()
}

// stale tells whether a server should be asked now, and if it has failed before.
// The caller asks; nobody else does meanwhile what is done in the background.
func (b *registry) stale(i int) (stale, away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, e := time.Now(), &b.mu.entries[i]
	stale, away = !e.asking && !now.Before(e.until) && now.Sub(e.asked) >= helloTrust, e.pause > 0
	e.asking = e.asking || stale && away
	return stale, away
}

func (b *registry) hello(ctx context.Context, i int) {
	inner, cancel := context.WithTimeout(ctx, helloPatience)
	defer cancel()
	h, err := b.servers[i].Hello(inner)
	if err != nil {
		if ctx.Err() == nil {
			b.failed(i)
			b.log.Warn("pushdown server not used", "server", b.servers[i].Address(), "err", err)
		}
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.entries[i] = serverHealth{beside: h.Beside, asked: time.Now()}
}

// dropCaches tells all servers at once, also those that are left alone.
func (b *registry) dropCaches(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dropPatience)
	defer cancel()
	failed := make([]error, len(b.servers))
	var wg sync.WaitGroup
	for i, server := range b.servers {
		wg.Go(func() { failed[i] = server.DropCaches(ctx) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// failed puts a server aside.
func (b *registry) failed(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &b.mu.entries[i]
	e.asking = false
	if time.Now().Before(e.until) {
		return // other parts of the same failure
	}
	e.pause = min(max(2*e.pause, firstPause), lastPause)
	e.until = time.Now().Add(e.pause)
	e.asked = time.Time{}
}

// healthy tells which servers may get a part now.
func (b *registry) healthy() []bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	out, now := make([]bool, len(b.servers)), time.Now()
	for i, e := range b.mu.entries {
		out[i] = !e.asked.IsZero() && !now.Before(e.until)
	}
	return out
}

// beside lists the servers that are usable, those beside the region's server
// before the others; which of the others comes first depends on turn, so that
// the work spreads.
func (b *registry) beside(region string, turn int) (order []int) {
	usable := b.healthy()
	b.mu.Lock()
	defer b.mu.Unlock()
	rank := func(want int) {
		n := len(b.servers)
		for k := range n {
			i := (turn + k) % n
			if usable[i] && closeness(b.mu.entries[i].beside, region) == want {
				order = append(order, i)
			}
		}
	}
	for want := 2; want >= 0; want-- {
		rank(want)
	}
	return order
}

// closeness is 2 for the same region server, 1 for one on the same host, else 0.
func closeness(beside, region string) int {
	if beside == "" || region == "" {
		return 0
	}
	if beside == region {
		return 2
	}
	a, _, errA := net.SplitHostPort(beside)
	b, _, errB := net.SplitHostPort(region)
	if errA == nil && errB == nil && a == b {
		return 1
	}
	return 0
}
