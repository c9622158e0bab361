package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/rpc/wire"
)

// Server is a pushdown server; client.Client is one. Its methods may be called from
// many goroutines.
type Server interface {
	// Address returns the server's host:port.
	Address() string
	// Hello is the health check. It returns the region server next to the pushdown server.
	Hello(ctx context.Context) (wire.Hello, error)
	// DropCaches empties the server's result cache.
	DropCaches(ctx context.Context) error
	// Open starts a part within a budget.
	Open(part *scanplan.Part, budget operator.Budget) (operator.Operator, error)
}

// Times of health checks.
const (
	healthTimeout = time.Second      // of one, see Config.HelloTimeout
	healthTTL     = 30 * time.Second // how long an answer stays valid
	dropTimeout   = 5 * time.Second  // a server that takes longer may not have dropped its caches
	minBackoff    = time.Second      // until a server that failed is checked again
	maxBackoff    = 2 * time.Second  // the backoff doubles up to this, so that a server that is back is soon used again
)

// place is where parts are executed: at a pushdown server, or in this process.
type place struct {
	server Server // nil for this process
	tally  tally
	health serverHealth // guarded by registry.mu
	pace   pace         // guarded by paces.mu
}

// remote reports whether it is a pushdown server.
func (p *place) remote() bool { return p.server != nil }

// name is a server's address, or InProcess.
func (p *place) name() string {
	if p.remote() {
		return p.server.Address()
	}
	return InProcess
}

// registry is the state of the executor's pushdown servers, shared by all runs. A
// server that failed gets no parts for a while, so that one that hangs or is down does
// not delay every query. A server that has left the registry ends what it was given.
type registry struct {
	rollups []string // tables that only servers read which name them in their hello
	log     *slog.Logger
	within  time.Duration // a server that takes longer to answer is not healthy
	mu      struct {
		sync.Mutex
		places []*place // of the servers there are now; a change makes a new slice
		// placements are made from places and their health, by rollup table, "" for all other tables.
		placements map[string]*placement
	}
}

// serverHealth is the last known state of a server.
type serverHealth struct {
	regionServer string        // host:port of the region server next to it, "" if it named none
	rollups      []string      // the rollup tables that it reads
	before       bool          // it is of the release before
	checked      time.Time     // when a health check was last answered; zero after a failure, and then it gets no parts
	checking     bool          // a health check runs in the background
	notBefore    time.Time     // it is not checked earlier
	backoff      time.Duration // the last backoff; 0 if it has not failed since it last answered
	lastError    string        // of the last check that failed, "" for none since the start
	lastFail     time.Time     // when that was
}

func newRegistry(servers []Server, rollups []string, log *slog.Logger) *registry {
	r := &registry{rollups: rollups, log: log, within: healthTimeout}
	r.set(servers)
	return r
}

// list returns the places of the servers there are now. It is not written to.
func (r *registry) list() []*place {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.places
}

// set replaces the servers, and returns the places of new ones. One that was there keeps its state.
func (r *registry) set(servers []Server) (joined []*place) {
	r.mu.Lock()
	defer r.mu.Unlock()

	places := make([]*place, len(servers))
	for i, s := range servers {
		if old := slices.IndexFunc(r.mu.places, func(p *place) bool { return p.server == s }); old >= 0 {
			places[i] = r.mu.places[old]
			continue
		}
		places[i] = &place{server: s}
		joined = append(joined, places[i])
	}
	r.mu.places, r.mu.placements = places, nil
	return joined
}

// welcome checks servers that have joined, in the background: no query waits for one that nobody has seen yet.
func (r *registry) welcome(joined []*place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range joined {
		p.health.checking = true
		go r.check(context.Background(), p)
	}
}

// checkHealth checks all servers whose last answer is too old, concurrently, and waits
// for the answers. A server that has failed is checked in the background, so that no
// query waits for a server that may hang.
func (r *registry) checkHealth(ctx context.Context) {
	var wg sync.WaitGroup
	for _, p := range r.list() {
		switch due, failedBefore := r.claimCheck(p); {
		case due && failedBefore:
			go r.check(context.WithoutCancel(ctx), p)
		case due:
			wg.Go(func() { r.check(ctx, p) })
		}
	}
	wg.Wait()
}

// claimCheck reports whether a server is due for a health check, and whether it has
// failed before. If both hold, only this caller may check it until the check has ended.
// A server that has not failed may be checked by several callers concurrently, because
// each of them waits for the answer.
func (r *registry) claimCheck(p *place) (due, failedBefore bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	now, e := time.Now(), &p.health
	due = !e.checking && !now.Before(e.notBefore) && now.Sub(e.checked) >= healthTTL
	failedBefore = e.backoff > 0 // an answer sets it to 0 again
	e.checking = e.checking || due && failedBefore
	return due, failedBefore
}

// suspect checks a server, at which a part is late, in the background: one that is paused gets no more parts.
func (r *registry) suspect(ctx context.Context, p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := &p.health; !e.checking {
		e.checking = true
		go r.check(context.WithoutCancel(ctx), p)
	}
}

// check checks one server and records the outcome.
func (r *registry) check(ctx context.Context, p *place) {
	inner, cancel := context.WithTimeout(ctx, r.within)
	defer cancel()

	h, err := p.server.Hello(inner)
	if err == nil {
		err = compatible(h)
	}
	if err != nil {
		// The cancellation of the query is no failure of the server.
		if ctx.Err() == nil {
			r.markFailed(p)
			r.keepError(p, err)
			r.log.Warn("pushdown server not used", "server", p.name(), "err", err)
		}
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	e := &p.health
	*e = serverHealth{
		regionServer: h.Beside,
		rollups:      h.Rollups,
		before:       h.Batch == batch.Previous,
		checked:      time.Now(),
		lastError:    e.lastError,
		lastFail:     e.lastFail,
	}
	r.mu.placements = nil
}

// compatible returns an error for a server with which each part would fail: it is neither of this release nor of one
// next to it. A server of the release before refuses the parts that are new to it, which are then executed elsewhere.
func compatible(h wire.Hello) error {
	if h.Batch != batch.Version && h.Batch != batch.Previous || //fault:release-before-not-used TestRun_releaseBefore
		h.Plan != scanplan.Version {
		return fmt.Errorf(
			"%w: %s has version %q of record batches and %d of scan plans, want %q or %q, and %d; "+
				"run gateway and pushdown servers of releases that follow each other",
			wire.ErrServer, h.Program, h.Batch, h.Plan, batch.Version, batch.Previous, scanplan.Version)
	}
	return nil
}

// keepError remembers why a check has failed.
func (r *registry) keepError(p *place, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.health.lastError, p.health.lastFail = textOf(err), time.Now()
}

// dropCaches calls all servers concurrently, including those that failed lately.
func (r *registry) dropCaches(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()

	places := r.list()
	failed := make([]error, len(places))
	var wg sync.WaitGroup
	for i, p := range places {
		wg.Go(func() {
			if err := p.server.DropCaches(ctx); err != nil {
				failed[i] = fmt.Errorf("pushdown server %s: %w", p.name(), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// markFailed keeps parts from a server for a while.
func (r *registry) markFailed(p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()

	e := &p.health
	e.checking = false // a check in the background that failed has ended
	// Many parts fail together when a server dies; that counts as one failure.
	if time.Now().Before(e.notBefore) {
		return
	}
	e.backoff = min(max(2*e.backoff, minBackoff), maxBackoff)
	e.notBefore = time.Now().Add(e.backoff)
	e.checked = time.Time{} // no part until it has answered a check
	r.mu.placements = nil
}

// placement returns the servers that may get a part now of a plan that reads a table.
func (r *registry) placement(table string) *placement {
	r.mu.Lock()
	defer r.mu.Unlock()

	// Only servers that name one of these tables in their hello read it; all read any other.
	named := slices.Contains(r.rollups, table)
	if !named {
		table = ""
	}
	if l, ok := r.mu.placements[table]; ok {
		return l
	}
	l := newPlacement()
	for _, p := range r.mu.places {
		e := &p.health
		reads := !named || slices.Contains(e.rollups, table)
		if reads && !e.checked.IsZero() {
			l.add(p, e.regionServer)
			l.before = l.before || e.before //fault:aligned-at-the-release-before TestRun_releaseBefore
		}
	}
	if r.mu.placements == nil {
		r.mu.placements = map[string]*placement{}
	}
	r.mu.placements[table] = l
	return l
}
