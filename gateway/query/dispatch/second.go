package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"downpour/pushdown/operator"
	"downpour/pushdown/resultcache"
)

// A part that is late at a pushdown server is started a second time, elsewhere: its process may be slow or paused.
// The attempt that succeeds first counts, once the other one has ended, so that what the two read is never counted
// together. Few parts are started twice, see paces, and none of a region server that is slow itself.

// runningAttempt is an attempt that has not ended.
type runningAttempt struct {
	place    *place
	second   bool // it was started because the first one was late
	cancel   context.CancelFunc
	budget   operator.Budget
	expected time.Duration // how long it takes at most; 0 if that is not known
	lookAt   time.Time     // when to look whether it is late; zero: never
}

// start starts an attempt at a part.
func (r *run) start(ctx context.Context, p *pendingPart, at *place, second bool) {
	ctx, cancel := context.WithCancel(ctx)
	a := &runningAttempt{place: at, second: second, cancel: cancel, budget: r.opts.Budget}
	// What the first one has read counts already. What the second one reads counts if it is accepted.
	if second {
		a.budget = operator.NewBudget(r.opts.Budget.Left())
	}
	if at.remote() {
		if expected, ok := r.e.paces.late(r.e.servers.list(), p.Bytes); ok {
			a.expected, a.lookAt = expected, time.Now().Add(expected)
			r.lookBy(a.lookAt)
		}
	}

	if len(p.running) == 0 {
		r.inFlight = append(r.inFlight, p)
	}
	p.running = append(p.running, a)
	r.busy[at]++
	r.running++
	r.stats.Attempts++
	go func() { r.results <- r.attempt(ctx, p, a) }()
}

// ended takes an attempt that has ended from those that run.
func (r *run) ended(a *partAttempt) {
	a.of.cancel()
	p := a.part
	p.running = slices.DeleteFunc(p.running, func(x *runningAttempt) bool { return x == a.of })
	if len(p.running) == 0 {
		r.inFlight = slices.DeleteFunc(r.inFlight, func(x *pendingPart) bool { return x == p })
	}
}

// startSeconds starts a second attempt at each part that is late.
func (r *run) startSeconds(ctx context.Context) {
	now := time.Now()
	if r.lookAt.IsZero() || now.Before(r.lookAt) {
		return
	}
	r.lookAt = time.Time{}
	for _, p := range r.inFlight {
		first := p.running[0]
		if len(p.running) > 1 || p.noSecond || p.winner != nil || first.lookAt.IsZero() {
			continue
		}
		if now.Before(first.lookAt) {
			r.lookBy(first.lookAt)
			continue
		}
		if r.e.paces.isSlow(p.RegionServer, now) {
			continue
		}
		at, free := r.secondPlace(p, first.place)
		if !free || !r.e.paces.takeSecond() {
			r.lookAt = now.Add(leastLate) // there is none for the other parts, either
			return
		}

		r.e.cfg.Log.Debug("a part is late, and started elsewhere, too", "start", p.Range.Start.String(), "place",
			first.place.name(), "expected", first.expected, "also", at.name())
		p.doubled = true
		r.e.servers.suspect(ctx, first.place)
		r.start(ctx, p, at, true)
	}
}

// secondPlace chooses the place of a second attempt: a server other than the first, or this process.
func (r *run) secondPlace(p *pendingPart, first *place) (at *place, free bool) {
	for at := range r.e.servers.placement(r.plan.Table).candidates(p.RegionServer, p.turn) {
		if at != first && r.mayTake(p, at) && r.hasRoom(at) {
			return at, true
		}
	}
	return r.e.here, r.hasRoom(r.e.here)
}

// lookBy has the run look at its parts at a time, or earlier.
func (r *run) lookBy(at time.Time) {
	if r.lookAt.IsZero() || at.Before(r.lookAt) {
		r.lookAt = at
	}
}

// learnPace notes how long an attempt that has succeeded at a server took, and whether the region server was what it
// waited for.
func (r *run) learnPace(a *partAttempt, took time.Duration) {
	if !a.place.remote() || a.stats.CacheHits > 0 {
		return
	}
	r.e.paces.add(a.place, len(r.e.servers.list()), took, a.stats.Bytes)
	isLate := a.of.expected > 0 && took > a.of.expected
	if server := a.part.RegionServer; isLate && a.stats.ScanTime > took/2 && server != "" {
		a.regionServerSlow = true
		r.e.paces.setSlow(server, time.Now())
	}
}

// settle accepts one of two attempts at a part: the winner, which has succeeded before, now that the other one has
// ended, too.
func (r *run) settle(ctx context.Context, other *partAttempt) error {
	won, lost := other.part.winner, other
	// If both have succeeded, the first attempt is accepted: what it has read counts already.
	if other.err == nil && won.of.second {
		won, lost = other, won
	}
	r.discard(lost)
	lost.release()

	defer won.release()
	return r.acceptAlone(ctx, won)
}

// acceptAlone accepts an attempt when no other one at its part runs. What a second attempt has read counts from now on.
func (r *run) acceptAlone(ctx context.Context, a *partAttempt) error {
	if a.of.second {
		if err := r.reserve(recordBytes(a.records)); err != nil {
			return err
		}
		if err := r.opts.Budget.Spend(ctx, a.stats.Points, a.stats.Bytes); err != nil {
			return err
		}
	}
	return r.accept(a)
}

// leave leaves a part to the other attempt at it, after one has failed.
func (r *run) leave(ctx context.Context, a *partAttempt) {
	p := a.part
	p.noSecond = true
	_ = r.panickedAgain(a) // which logs it
	if unlessContext(a.err) != nil {
		p.failure = withoutPlace(a.err)
	}
	if ctx.Err() != nil || errors.Is(a.err, resultcache.ErrUnproven) || r.refused(a) {
		return
	}
	p.failedAt[a.place] = true
	if a.place.remote() && !p.panicked && !isFinal(a.err, false) {
		r.e.servers.markFailed(a.place)
	}
}

// discard counts an attempt whose records are not used.
func (r *run) discard(a *partAttempt) {
	r.stats.Discarded++
	if !a.of.second {
		r.heldBytes.Add(-recordBytes(a.records))
	}
}
