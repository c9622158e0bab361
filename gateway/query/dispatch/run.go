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
)

// local is the place of parts executed in process; other places are indexes of
// servers.
const local = -1

// pendingPart is a piece that is not accepted yet.
type pendingPart struct {
	part
	turn     int          // where the search for a server begins
	failedAt map[int]bool // places that failed since the last pause
	pause    time.Duration
	failure  error // the last one
	notUntil time.Time
}

// partAttempt is what became of a task at a place.
type partAttempt struct {
	part    *pendingPart
	place   int
	began   time.Time
	records []batch.Record
	held    *memory.Lease // of the records; nil if there are none
	stats   operator.Stats
	err     error
}

// free releases the records.
func (a *partAttempt) free() {
	for _, r := range a.records {
		r.Release()
	}
	if a.held != nil {
		a.held.Close()
	}
}

// run is one execution of a plan. Its fields belong to the goroutine of work;
// attempts run on goroutines of their own and report over results.
type run struct {
	e        *Executor
	plan     *scanplan.Plan
	opts     Options
	began    time.Time
	sink     Sink
	coverage *coverage
	stats    Stats
	seeks    bool
	read     []read // by the accepted parts

	waiting []*pendingPart
	busy    map[int]int // attempts at each place
	running int
	results chan partAttempt
	held    atomic.Int64 // bytes of records, accepted ones too
}

func newRun(e *Executor, plan *scanplan.Plan, opts Options, sink Sink, d division) *run {
	r := &run{
		e: e, plan: plan, opts: opts, began: time.Now(), sink: sink, coverage: newCoverage(plan.Ranges), seeks: d.seeks,
		busy: map[int]int{}, results: make(chan partAttempt),
	}
	for i, p := range d.parts {
		r.waiting = append(r.waiting, &pendingPart{part: p, turn: i, failedAt: map[int]bool{}})
	}
	return r
}

// work gives tasks out and takes results in until all is accepted or nothing
// more can come. When ctx ends it still hears the attempts out, which end with
// it: their errors tell a slow store from one that is not there.
func (r *run) work(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer r.drain()
	defer cancel()
	for !r.coverage.complete() {
		if ctx.Err() == nil {
			r.launch(inner)
		} else if r.running == 0 {
			return r.stopped(ctx)
		}
		if a := r.wait(ctx); a != nil {
			if err := r.finishAttempt(ctx, a); err != nil {
				return err
			}
		}
	}
	if !r.seeks { // else the bytes read are not those of the hours
		r.e.sizes.learn(r.plan, r.read)
	}
	return nil
}

// drain waits for the attempts that were cancelled and frees what they hold.
func (r *run) drain() {
	for ; r.running > 0; r.running-- {
		a := <-r.results
		a.free()
	}
}

// launch starts the tasks that have a free place.
func (r *run) launch(ctx context.Context) {
	now := time.Now()
	rest := r.waiting[:0]
	for _, t := range r.waiting {
		if place, ok := r.place(t); ok && !now.Before(t.notUntil) {
			r.busy[place]++
			r.running++
			r.stats.Attempts++
			go func() { r.results <- r.attempt(ctx, t, place) }()
			continue
		}
		rest = append(rest, t)
	}
	r.waiting = rest
}

// place chooses where a task goes: the best server that has not failed it, then
// this process. It returns false when that place is full: waiting for the server
// beside the rows is better than reading them from afar.
func (r *run) place(t *pendingPart) (place int, free bool) {
	for _, i := range r.e.servers.beside(t.Region, t.turn) {
		if !t.failedAt[i] {
			return i, r.busy[i] < r.e.cfg.PerServer
		}
	}
	return local, r.busy[local] < r.e.cfg.Local
}

// wait returns the next result, or nil when a pause of a task is over or ctx has
// ended.
func (r *run) wait(ctx context.Context) *partAttempt {
	var timer <-chan time.Time
	if d, ok := r.pause(); ok {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	done := ctx.Done()
	if ctx.Err() != nil {
		done, timer = nil, nil
	}
	select {
	case a := <-r.results:
		r.running--
		r.busy[a.place]--
		return &a
	case <-timer:
	case <-done:
	}
	return nil
}

// pause is the time until the next waiting task may start.
func (r *run) pause() (d time.Duration, ok bool) {
	now := time.Now()
	for _, t := range r.waiting {
		if left := t.notUntil.Sub(now); left > 0 && (!ok || left < d) {
			d, ok = left, true
		}
	}
	return d, ok
}

// finishAttempt accepts a good attempt or issues the task anew.
func (r *run) finishAttempt(ctx context.Context, a *partAttempt) error {
	defer a.free()
	r.traceAttempt(a)
	if a.err == nil {
		return r.accept(a)
	}
	r.stats.Discarded++
	r.held.Add(-size(a.records))
	if final(a.err, a.place == local) {
		return a.err
	}
	r.waiting = append(r.waiting, a.part)
	if ctx.Err() == nil || unlessContext(a.err) != nil {
		a.part.failure = a.err
	}
	if ctx.Err() == nil {
		r.failed(a)
	}
	return nil
}

// traceAttempt keeps an attempt for the trace.
func (r *run) traceAttempt(a *partAttempt) {
	if !r.opts.Trace {
		return
	}
	t := a.part
	r.stats.Trace = append(r.stats.Trace, Attempt{
		Range: t.Range, Region: t.Region, Place: r.name(a.place), Mode: t.Mode, Bytes: t.Bytes,
		Began: a.began.Sub(r.began), Took: time.Since(a.began), Stats: a.stats, Err: a.err,
	})
}

// accept enters a part in the ledger and hands it over.
func (r *run) accept(a *partAttempt) error {
	if !r.coverage.accept(a.part.Range) {
		r.stats.Discarded++
		r.held.Add(-size(a.records))
		return nil
	}
	r.stats.Stats.Add(a.stats)
	r.read = append(r.read, read{a.part.Range, a.stats})
	r.stats.Parts++
	if a.place != local {
		r.stats.Remote++
		operator.RecordScan(r.e.cfg.Seek, &scanplan.Part{Plan: *r.plan, Range: a.part.Range}, a.stats)
	}
	if a.part.Mode == scanplan.PartialAggregation {
		r.stats.Partial++
	}
	if r.opts.Trace {
		r.stats.Trace[len(r.stats.Trace)-1].Accepted = true
	}
	return r.sink(a.part.Range, a.records)
}

// failed notes a failure that another attempt may heal: a server is put aside,
// and a task that failed here as well begins anew after a pause.
func (r *run) failed(a *partAttempt) {
	t := a.part
	r.e.cfg.Log.Warn("a part is issued anew", "start", t.Range.Start.String(), "place", r.name(a.place), "err", a.err)
	t.failedAt[a.place] = true
	if a.place != local {
		r.e.servers.failed(a.place)
		return
	}
	t.pause = min(max(2*t.pause, firstRetry), lastRetry)
	t.notUntil = time.Now().Add(t.pause)
	clear(t.failedAt)
}

func (r *run) name(place int) string {
	if place == local {
		return InProcess
	}
	return r.e.cfg.Servers[place].Address()
}

// stopped is the end of a run whose context has ended.
func (r *run) stopped(ctx context.Context) error {
	if r.opts.AllowMissing && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.stats.Missing = r.coverage.missing()
		return nil
	}
	return r.ended(ctx)
}

// ended is the run's error when its context has ended.
func (r *run) ended(ctx context.Context) error {
	var failure error
	for _, t := range r.waiting {
		if t.failure != nil {
			failure = t.failure
		}
	}
	return ended(ctx, r.coverage.missing(), r.stats.Parts, failure)
}

func size(records []batch.Record) (n int64) {
	for _, r := range records {
		n += operator.RecordBytes(r)
	}
	return n
}
