package dispatch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
)

// pendingPart is a part that is not yet accepted.
type pendingPart struct {
	part
	turn      int             // rotates the choice among equally close servers
	failedAt  map[*place]bool // places that failed it since its last pause
	unproven  bool            // an attempt has ended with resultcache.ErrUnproven
	panicked  bool            // an attempt has ended with an operator.PanicError
	pause     time.Duration   // the last pause
	failure   error           // of the last failed attempt
	notBefore time.Time       // when the next attempt may start

	running  []*runningAttempt // attempts at it: none, one, or two
	winner   *partAttempt      // the first of two to succeed; it counts once the other one has ended
	doubled  bool              // it was started a second time since it last waited
	noSecond bool              // it is not started a second time again
}

// partAttempt is the outcome of one attempt at a part.
type partAttempt struct {
	part    *pendingPart
	of      *runningAttempt
	place   *place
	began   time.Time
	records []batch.Record
	lease   *memory.Lease // memory of the records; nil if there are none
	stats   operator.Stats
	err     error

	traced           int  // its index in the trace
	regionServerSlow bool // it was late because of the region server
}

// release gives back the records and their memory.
func (a *partAttempt) release() {
	for _, r := range a.records {
		r.Release()
	}
	if a.lease != nil { // nil if the part could not be started
		a.lease.Close()
	}
}

// run is one execution of a plan. Its fields belong to the goroutine of execute.
// Each attempt runs on a goroutine of its own and reports on the channel results.
type run struct {
	e         *Executor
	plan      *scanplan.Plan
	opts      Options
	began     time.Time
	sink      Sink
	coverage  *coverage
	stats     Stats
	skipsRows bool       // the parts' reads are not whole hours
	read      []partRead // what the accepted parts read

	queue     queue
	refusedBy map[*place]bool // servers to which the plan is too new
	inFlight  []*pendingPart  // that have running attempts; those that began first come first
	lookAt    time.Time       // none of them may be late earlier; zero: none may
	busy      map[*place]int  // running attempts by place
	running   int             // sum of busy
	results   chan partAttempt
	heldBytes atomic.Int64 // of records, those of accepted parts included
}

// newRun makes a run whose parts all wait for their first attempt.
func newRun(e *Executor, plan *scanplan.Plan, opts Options, sink Sink, p partition) *run {
	r := &run{
		e:         e,
		plan:      plan,
		opts:      opts,
		began:     time.Now(),
		sink:      sink,
		coverage:  newCoverage(plan.Ranges),
		skipsRows: p.skipsRows,
		busy:      map[*place]int{},
		refusedBy: map[*place]bool{},
		results:   make(chan partAttempt),
	}
	for i, p := range p.parts {
		r.queue.add(&pendingPart{part: p, turn: i, failedAt: map[*place]bool{}})
	}
	return r
}

// execute starts attempts and accepts their results until the coverage is complete or no result can
// come.
func (r *run) execute(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	// In reverse order: cancel ends the attempts that drain awaits.
	defer r.drain()
	defer cancel()

	for !r.coverage.complete() {
		// After the context has ended, the attempts that still run end with it. They are awaited,
		// because only their errors distinguish a slow store from one that cannot be reached.
		if ctx.Err() == nil {
			r.launch(inner)
			r.startSeconds(inner)
		} else if r.running == 0 {
			return r.endIncomplete(ctx)
		}

		if a := r.awaitAttempt(ctx); a != nil {
			if err := r.finishAttempt(ctx, a); err != nil {
				return err
			}
		}
	}

	// Where rows were skipped, the bytes read are not those of whole hours.
	if !r.skipsRows {
		r.e.sizes.learn(r.plan, r.read)
	}
	return nil
}

// drain waits for the cancelled attempts and releases what they hold.
func (r *run) drain() {
	for _, p := range r.inFlight {
		if p.winner != nil {
			p.winner.release()
		}
	}
	for ; r.running > 0; r.running-- {
		a := <-r.results
		a.release()
	}
}

// launch starts an attempt at each waiting part that has a free place.
func (r *run) launch(ctx context.Context) {
	r.queue.place(r.e.servers.placement(r.plan.Table), time.Now(), r.choosePlace)
	for {
		p, at := r.queue.take(r.hasRoom)
		if p == nil {
			return
		}
		r.start(ctx, p, at, false)
	}
}

// choosePlace chooses where a part is executed next: at the best server that has not
// failed it, or in this process if none is left, or if the part is to be read here. It waits
// while that place is full: that costs less than reading its rows over the network.
func (r *run) choosePlace(p *pendingPart) *place {
	if p.Here {
		return r.e.here
	}
	for at := range r.queue.placement.candidates(p.RegionServer, p.turn) {
		if r.mayTake(p, at) {
			return at
		}
	}
	return r.e.here
}

// mayTake reports whether a server may get a part: it has neither failed the part nor refused the plan.
func (r *run) mayTake(p *pendingPart, at *place) bool { return !p.failedAt[at] && !r.refusedBy[at] }

// hasRoom reports whether a place has room for a part of the run.
func (r *run) hasRoom(at *place) bool {
	if at.remote() {
		return r.busy[at] < r.e.cfg.PerServer
	}
	return r.busy[at] < r.e.cfg.Local
}

// awaitAttempt returns the next attempt that has ended. It returns nil when the pause
// of a waiting part is over, when a running one may be late, or when ctx ends.
func (r *run) awaitAttempt(ctx context.Context) *partAttempt {
	var timer <-chan time.Time
	d, ok := r.queue.nextPauseEnd(time.Now())
	if look := time.Until(r.lookAt); !r.lookAt.IsZero() && (!ok || look < d) {
		d, ok = max(0, look), true
	}
	if ok {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}

	// Once ctx has ended nothing more is started; attempts are only awaited.
	done := ctx.Done()
	if ctx.Err() != nil {
		done, timer = nil, nil
	}

	select {
	case a := <-r.results:
		r.running--
		r.busy[a.place]--
		r.queue.freed(a.place)
		return &a
	case <-timer:
	case <-done:
	}
	return nil
}

// finishAttempt accepts the part of a successful attempt, and queues the part of a
// failed one again. The error is final for the run.
func (r *run) finishAttempt(ctx context.Context, a *partAttempt) error {
	r.ended(a)
	took := time.Since(a.began)
	a.place.tally.count(ctx, time.Now(), took, a.stats.Bytes, a.err)
	if a.err == nil {
		r.learnPace(a, took)
	}
	r.traceAttempt(a, took)

	switch another := len(a.part.running) > 0; {
	case a.part.winner != nil:
		return r.settle(ctx, a)
	case a.err == nil && another:
		a.part.winner = a
		a.part.running[0].cancel()
		return nil
	case a.err == nil: //fault:failed-attempt-kept TestRun_chaos
		defer a.release()
		return r.acceptAlone(ctx, a)
	}

	defer a.release()
	r.discard(a)
	if len(a.part.running) > 0 {
		r.leave(ctx, a)
		return nil
	}
	// What this process was the first to read, a server may read: it may have the memory for more rows than were
	// expected. And one of two attempts at a part may have had too little because of the other one.
	p, doubled, final := a.part, a.part.doubled, isFinal(a.err, !a.place.remote())
	if again := r.panickedAgain(a); again || final && !p.Here && !doubled {
		if a.place.remote() {
			r.e.cfg.Log.Info("a part ends its query", "start", p.Range.Start.String(), "place",
				a.place.name(), "err", a.err)
		}
		return a.err
	}

	p.doubled = false
	defer r.queue.add(p) // once it is known where and when
	// An attempt that ended only because the run's context did has not failed. A pushdown server, which has the same
	// deadline, may see it first.
	if unlessContext(a.err) != nil {
		p.failure = withoutPlace(a.err)
	}
	// An error that would end the query says nothing of the place.
	if ctx.Err() == nil && !(final && doubled) {
		r.scheduleRetry(a)
	}
	return nil
}

// panickedAgain logs an attempt that has panicked, and reports whether the part is not attempted
// again: one panic may be of a place, whose program may be older, but not two.
func (r *run) panickedAgain(a *partAttempt) bool {
	var fault *operator.PanicError
	if !errors.As(a.err, &fault) {
		return false
	}
	plan, _ := (&scanplan.Part{
		Plan:  *r.plan,
		Range: a.part.Range,
		Mode:  a.part.Mode,
	}).MarshalTicket() // of what was checked before
	r.e.cfg.Log.Error("a part panicked, which is a fault of the program", "panic", fault.Value, "place",
		a.place.name(), "part", string(plan), "stack", fault.Stack)
	again := a.part.panicked
	a.part.panicked = true
	return again
}

// traceAttempt adds an attempt to the trace.
func (r *run) traceAttempt(a *partAttempt, took time.Duration) {
	if !r.opts.Trace {
		return
	}
	p := a.part
	r.stats.Trace = append(r.stats.Trace, Attempt{
		Range: p.Range, RegionServer: p.RegionServer, Place: a.place.name(), Mode: p.Mode, Bytes: p.Bytes,
		Began: a.began.Sub(r.began), Took: took, Stats: a.stats, Err: a.err,
		Second: a.of.second, RegionServerSlow: a.regionServerSlow,
	})
	a.traced = len(r.stats.Trace) - 1
}

// accept marks a part as covered and passes its records to the sink. Their bytes stay
// counted in heldBytes, because the plan's MaxBytes bounds all parts of a run together.
func (r *run) accept(a *partAttempt) error {
	// Parts do not overlap, and one attempt at each is accepted. So this is only a guard
	// against a fault of ours: rows that count twice make a wrong answer.
	if !r.coverage.accept(a.part.Range) {
		r.stats.Discarded++
		r.heldBytes.Add(-recordBytes(a.records))
		return nil
	}

	r.stats.Stats.Add(a.stats)
	r.read = append(r.read, partRead{a.part.Range, a.stats})
	r.stats.Parts++
	if a.place.remote() {
		r.stats.Remote++
		// In this process the operator itself has recorded its scan.
		operator.RecordScan(r.e.cfg.Seek, &scanplan.Part{Plan: *r.plan, Range: a.part.Range}, a.stats)
	}
	if a.part.Mode.IsPartial() {
		r.stats.Partial++
	}
	if r.opts.Trace {
		r.stats.Trace[a.traced].Accepted = true
	}
	return r.sink(a.part.Range, a.records)
}

// scheduleRetry decides where and when the part of a failed attempt is tried again:
// immediately at another place, or after a pause if this process has failed it too.
func (r *run) scheduleRetry(a *partAttempt) {
	p := a.part
	// A region was opened again since a cached answer was made. The place has noticed that, and
	// reads the rows now; it has not failed, unless that happens again.
	if errors.Is(a.err, resultcache.ErrUnproven) && !p.unproven {
		p.unproven = true
		return
	}

	here := p.Here
	p.Here = false

	if r.refused(a) {
		return
	}

	p.failedAt[a.place] = true
	// The next one is the last, in this process if there is no other server; see panickedAgain.
	if p.panicked {
		return
	}

	// A region may have moved, and its rows be next to another server.
	r.e.regions.forget(r.plan.Table)
	r.e.cfg.Log.Warn("retrying a part", "start", p.Range.Start.String(), "place", a.place.name(), "err", a.err)
	if a.place.remote() {
		r.e.servers.markFailed(a.place)
		return
	}
	if here {
		return // a server is next
	}

	// This process is the last resort: every place has failed.
	p.pause = min(max(2*p.pause, minRetryPause), maxRetryPause)
	p.notBefore = time.Now().Add(p.pause)
	clear(p.failedAt)
}

// refused notes a server to which the plan is too new. It has not failed: it may answer the next plan.
func (r *run) refused(a *partAttempt) bool {
	// A plan that this process does not know ends its query, once the servers have had it.
	if !a.place.remote() ||
		!errors.Is(a.err, operator.ErrBadPlan) { //fault:refused-plan-marks-its-server TestRun_releaseBefore
		return false
	}
	if !r.refusedBy[a.place] {
		r.refusedBy[a.place] = true
		r.e.cfg.Log.Info("a pushdown server does not know a plan", "place", a.place.name(), "err", a.err)
	}
	return true
}

// endIncomplete ends a run whose context has ended before the coverage was complete.
func (r *run) endIncomplete(ctx context.Context) error {
	if r.opts.AllowMissing && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.stats.Missing = r.coverage.missing()
		return nil
	}

	var failure error
	for _, p := range r.queue.waiting() {
		if p.failure != nil {
			failure = p.failure
		}
	}
	return deadlineError(ctx, r.coverage.missing(), r.stats.Parts, failure)
}

func recordBytes(records []batch.Record) (n int64) {
	for _, r := range records {
		n += operator.RecordBytes(r)
	}
	return n
}
