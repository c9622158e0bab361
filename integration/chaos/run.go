package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"downpour/integration/e2e"
)

// Config is one run.
type Config struct {
	Cluster *e2e.HBase
	Sites   []*Site
	Seed    uint64
	// For is how long faults go on. Every kind comes at least once, even if
	// that takes longer.
	For time.Duration
	// Clients ask each site at the same time; less than 2 means 2.
	Clients int
	// Logf gets every fault as it happens.
	Logf func(format string, args ...any)
}

// HBaseOptions is the cluster that a run is made for: three region servers, and
// sessions so short that a death is noticed soon.
func HBaseOptions() e2e.HBaseOptions {
	return e2e.HBaseOptions{RegionServers: 3, RegionServerMiB: 512, SessionTimeout: sessionTimeout}
}

// world is a run's state. Only clients are on other goroutines.
type world struct {
	Config
	cluster *e2e.HBase
	sites   []*Site
	rng     *rand.Rand
	report  *Report
	now     atomic.Pointer[fault] // nil between faults
	clients []*client
	dead    []int // region servers that a fault has killed or that HBase has declared dead
	servers servers
	revived int // servers that ended by themselves and were started again
}

// Run harms the cluster under clients until the time is over, and returns the
// account. An error is one of the run itself: HBase did not come back.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	w := &world{
		Config:  cfg,
		cluster: cfg.Cluster,
		servers: cfg.Cluster,
		sites:   cfg.Sites,
		report:  newReport(),
		rng:     rand.New(rand.NewPCG(cfg.Seed, 1)),
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var clients sync.WaitGroup
	for i := range max(cfg.Clients, 2) * len(cfg.Sites) {
		c := &client{w: w, site: cfg.Sites[i%len(cfg.Sites)], rng: rand.New(rand.NewPCG(cfg.Seed, uint64(i+2)))}
		w.clients = append(w.clients, c)
	}
	// Asking ends before ctx does, so that the answers to the last questions still count.
	for _, c := range w.clients {
		clients.Go(func() { c.run(asking, ctx) })
	}
	err := w.harm(ctx)
	if err == nil {
		err = w.again(ctx)
	}
	stop()
	clients.Wait()
	w.report.revived = w.revived
	return w.report, err
}

// harm does rounds of all faults, each in a random order, until the time is over. The first
// round is always whole.
func (w *world) harm(ctx context.Context) error {
	end := time.Now().Add(w.For)
	var round []int
	for first := true; first || time.Now().Before(end); first = false {
		round = w.rng.Perm(len(faults))
		for n, i := range round {
			if !first && time.Now().After(end) {
				return nil
			}
			if err := w.once(ctx, &faults[i]); err != nil {
				return fmt.Errorf("after fault %d of the round, %s: %w", n+1, faults[i].name, err)
			}
		}
	}
	return ctx.Err()
}

// again repeats faults whose healing was slow, until each was done often enough to tell why.
func (w *world) again(ctx context.Context) error {
	for faults := w.report.unsure(); len(faults) > 0; faults = w.report.unsure() {
		if err := w.once(ctx, faultNamed(faults[0])); err != nil {
			return fmt.Errorf("%s once more: %w", faults[0], err)
		}
	}
	return ctx.Err()
}

// once does one fault and waits until all is whole, then brings the dead back.
func (w *world) once(ctx context.Context, f *fault) error {
	w.enter(ctx, f)
	if len(w.dead) > 0 {
		// Their start is entered as an event of its own, which queries must hardly notice.
		back := fault{started, true, func(ctx context.Context, w *world) (string, error) { return "", w.tend(ctx) }}
		w.enter(ctx, &back)
	} else if err := w.calm(ctx); err != nil {
		return err
	}
	w.pause(ctx, time.Second) // of calm, which is asked and counted as well
	return ctx.Err()
}

// calm waits until HBase is ready. A server may have ended by itself in a pause: then it waits until all is whole, too.
func (w *world) calm(ctx context.Context) error {
	if err := w.tend(ctx); err != nil || w.now.Load() == nil {
		return err
	}
	var e event
	w.heal(ctx, &e)
	w.now.Store(nil)
	return e.err
}

// enter does one fault, waits until all is whole again, and enters it into the account.
func (w *world) enter(ctx context.Context, f *fault) {
	e := event{fault: f.name, mild: f.mild, at: time.Since(w.report.began)}
	w.now.Store(f)
	began := time.Now()
	if e.detail, e.err = f.do(ctx, w); e.err != nil {
		// HBase would not do it. It is mended first, for no site is whole without it.
		e.err = errors.Join(e.err, w.tend(ctx))
	}
	e.lasted = time.Since(began)
	w.heal(ctx, &e)
	w.now.Store(nil)
	w.report.event(e)
	w.Logf("%7.1fs %s (%s): lasted %.1fs, whole again after %.2fs, where looking takes %.2fs, error %v",
		e.at.Seconds(), e.fault, e.detail, e.lasted.Seconds(), e.whole.Seconds(), e.look.Seconds(), e.err)
}

// heal measures how long it takes until all is whole. Looking takes time as
// well, on a busy machine much: what a second look takes, when all is whole
// already, does not count. What is measured while a server ends by itself says nothing of the
// fault, and is measured again once HBase has the server back.
func (w *world) heal(ctx context.Context, e *event) {
	for {
		var took time.Duration
		before := w.revived
		err := w.tended(ctx, func(ctx context.Context) (err error) {
			if took, err = w.sitesWhole(ctx); err == nil {
				e.look, err = w.sitesWhole(ctx)
			}
			return err
		})
		if w.revived > before && ctx.Err() == nil {
			if err = w.hbaseReady(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			e.ill, e.err = true, err
		}
		e.whole = max(0, took-e.look)
		return
	}
}

// patience is how long a run waits for wholeness before it calls a site ill.
const patience = 2 * time.Minute

// sitesWhole waits until every site answers its fixed questions and places its
// parts next to their regions, and nothing asked before now still waits. It
// returns how long that took.
func (w *world) sitesWhole(ctx context.Context) (time.Duration, error) {
	healed := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conditions := []func(context.Context) error{func(context.Context) error { return w.heard(healed) }}
	for _, s := range w.sites {
		conditions = append(conditions, s.answered, s.placed)
	}
	errs := make(chan error, len(conditions))
	for i, c := range conditions {
		go func() {
			var reason error // why it did not hold at once
			err := e2e.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
				err := c(ctx)
				if err != nil {
					reason = err
				}
				return err
			})
			if took := time.Since(healed); took > WholeWithin {
				w.Logf("condition %d holds after %.1fs; before: %v", i, took.Seconds(), reason)
			}
			errs <- err
		}()
	}
	var first error
	for range conditions {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return time.Since(healed), first
}

// heard returns an error while a question asked before t has no answer.
func (w *world) heard(t time.Time) error {
	for i, c := range w.clients {
		if asked := c.asked.Load(); asked != 0 && asked < t.UnixNano() {
			return fmt.Errorf("client %d waits since %v before the healing",
				i, t.Sub(time.Unix(0, asked)).Round(time.Millisecond))
		}
	}
	return nil
}

// site chooses one.
func (w *world) site() *Site { return w.sites[w.rng.IntN(len(w.sites))] }

// pause waits for d, or until ctx ends.
func (w *world) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// client asks one question after the other.
type client struct {
	w     *world
	site  *Site
	rng   *rand.Rand
	asked atomic.Int64 // when it asked what it waits for, Unix ns; 0 if for nothing
}

const (
	// thinking is the pause of a client between an answer and its next
	// question.
	thinking = 20 * time.Millisecond
	// longest is far more than a gateway may take for any answer.
	longest = 50 * time.Second
)

// run asks until asking ends; what is asked then still gets its answer.
func (c *client) run(asking, ctx context.Context) {
	for asking.Err() == nil {
		c.once(ctx)
		c.w.pause(asking, thinking)
	}
}

// once asks one question and enters what came of it under the fault of that moment.
func (c *client) once(ctx context.Context) {
	q := c.site.Recording.Queries[c.rng.IntN(len(c.site.Recording.Queries))]
	inner, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	f := c.w.now.Load()
	began := time.Now()
	c.asked.Store(began.UnixNano())
	o := c.site.ask(inner, q)
	c.asked.Store(0)
	if ctx.Err() != nil { // the run was ended, which says nothing of the gateway
		return
	}
	// One may have begun while the answer was awaited, and a server may have ended by itself.
	if now := c.w.now.Load(); f == nil || now == &endedItself {
		f = now
	}
	if f == nil {
		f = &fault{name: calm, mild: true}
	}
	c.w.report.answer(f.name, f.mild, o, time.Since(began), q)
}
