//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// balanced is a balancer that asks its gateways for /readyz, as balancers do, and sends requests only
// to those that answer 200.
type balanced struct {
	*roundRobin
	t     *testing.T
	front *httptest.Server
	urls  []string

	mu  sync.Mutex
	out map[int]bool // taken out by the operator
}

// healthEvery is how often a gateway is asked.
const healthEvery = 100 * time.Millisecond

func newBalanced(ctx context.Context, t *testing.T, urls ...string) *balanced {
	t.Helper()
	b := &balanced{roundRobin: newRoundRobin(t, urls...), t: t, urls: urls, out: map[int]bool{}}
	b.front = httptest.NewServer(b)
	ctx, stop := context.WithCancel(ctx)
	var asking sync.WaitGroup
	for i := range urls {
		asking.Go(func() { b.watch(ctx, i) })
	}
	t.Cleanup(func() { stop(); asking.Wait(); b.front.Close() })
	return b
}

// watch leaves a gateway out while it is not ready.
func (b *balanced) watch(ctx context.Context, i int) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		a, err := e2e.Get(ctx, b.urls[i]+"/readyz")
		b.mu.Lock()
		if err == nil && a.Status == 200 && !b.out[i] {
			b.down[i].Store(0)
		} else {
			b.down[i].Store(math.MaxInt64)
		}
		b.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// takeOut sends no more requests to a gateway, and waits until it has answered those that it has.
func (b *balanced) takeOut(ctx context.Context, i int) {
	b.t.Helper()
	b.mu.Lock()
	b.out[i] = true
	b.down[i].Store(math.MaxInt64)
	b.mu.Unlock()
	b.until(ctx, func() error {
		if n := b.busy[i].Load(); n > 0 {
			return fmt.Errorf("%d requests are under way", n)
		}
		return nil
	})
}

// takeIn waits until a gateway gets requests again.
func (b *balanced) takeIn(ctx context.Context, i int) {
	b.t.Helper()
	b.mu.Lock()
	b.out[i] = false
	b.mu.Unlock()
	was := b.served[i].Load()
	b.until(ctx, func() error {
		if b.served[i].Load() == was {
			return errors.New("the gateway that came back got no request")
		}
		return nil
	})
}

func (b *balanced) until(ctx context.Context, ready func() error) {
	b.t.Helper()
	if err := e2e.Until(ctx, 20*time.Millisecond, func(context.Context) error { return ready() }); err != nil {
		b.t.Fatal(err)
	}
}

// running is a load whose clients run. end lets them have their last answers: a request that is cut
// off would look like one that was refused.
type running struct {
	*load
	end func()
}

// load starts clients that put and query through the balancer. url is a gateway that knows the
// answers about data that does not change.
func (b *balanced) load(ctx context.Context, url string) running {
	b.t.Helper()
	return b.start(ctx, url, &load{})
}

// start is load of given clients, which have nothing to do yet.
func (b *balanced) start(ctx context.Context, url string, l *load) running {
	b.t.Helper()
	put(ctx, b.t, url, introduce())
	put(ctx, b.t, url, dataset(23))
	l.t, l.url, l.comparer = b.t, b.front.URL, compare.Comparer{Permits: compare.Standard}
	l.settle(ctx, url)
	for i := range 2 {
		l.writers = append(l.writers, &robinWriter{name: fmt.Sprintf("w%d", i)})
	}
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, w := range l.writers {
		all.Go(func() { l.write(ctx, w) })
	}
	all.Go(func() { l.readSettled(ctx) })
	l.await(ctx, 5, 5)
	all.Go(func() { l.readWritten(ctx) })
	l.await(ctx, 5, 5)
	end := func() { l.ended.Store(true); all.Wait() }
	b.t.Cleanup(func() { stop(); end() })
	return running{l, end}
}
