package live

import (
	"context"
	"errors"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// evaluator asks one query again and again while it has subscribers.
type evaluator struct {
	hub   *Hub
	query query
	epoch string

	// mu may be taken while hub.mu is held, not the other way round.
	mu struct {
		sync.Mutex
		subs   map[*Subscription]struct{}
		stop   context.CancelFunc // of the loop; nil when none runs
		linger *time.Timer

		fresh    bool // answered since the loop started
		seq      uint64
		state    *state
		held     Held
		ticks    uint64   // times that it was counted what is held
		tracks   []*track // the last is the newest
		made     int      // tracks, ever
		err      *Error   // of the last ask
		errCount int      // differs for each new error
		final    bool     // err is the end
		complete bool     // the query named an end and was answered
	}
}

func newEvaluator(h *Hub, q query, epoch string) *evaluator {
	e := &evaluator{hub: h, query: q, epoch: epoch}
	e.mu.subs = map[*Subscription]struct{}{}
	e.mu.state = &state{}
	return e
}

// join adds a subscriber. REQUIRES: hub.mu is held.
func (e *evaluator) join(r Request, wake func()) *Subscription {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &Subscription{evaluator: e, wake: wake, cut: r.Cut}
	e.mu.subs[s] = struct{}{}
	s.resume(r.Resume)
	if e.mu.stop == nil && !e.mu.complete {
		e.startLocked()
	}
	wake()
	return s
}

func (e *evaluator) startLocked() {
	if e.mu.linger != nil {
		e.mu.linger.Stop()
		e.mu.linger = nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.mu.stop, e.mu.fresh = cancel, false
	e.hub.work.Go(func() { e.run(ctx) })
}

func (e *evaluator) stopLocked() {
	if e.mu.stop != nil {
		e.mu.stop()
		e.mu.stop = nil
	}
	if e.mu.linger != nil {
		e.mu.linger.Stop()
		e.mu.linger = nil
	}
}

// leave takes a subscriber away; after the last one the asking stops at once
// and the state goes after a while. REQUIRES: hub.mu is held.
func (e *evaluator) leave(s *Subscription) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, here := e.mu.subs[s]; !here {
		return
	}
	delete(e.mu.subs, s)
	s.useTrackLocked(nil)
	if len(e.mu.subs) > 0 {
		return
	}
	e.stopLocked()
	if e.mu.final || e.mu.complete || len(e.mu.tracks) == 0 {
		e.hub.forgetLocked(e)
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(e.hub.cfg.Linger, func() { e.expire(&timer) })
	e.mu.linger = timer
}

// expire forgets an evaluator that nobody came back to. It takes a pointer to
// the timer because it may run before leave has set it.
func (e *evaluator) expire(timer **time.Timer) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.linger == *timer {
		e.hub.forgetLocked(e)
	}
}

// run asks until ctx ends, the query is refused for good or it is complete.
func (e *evaluator) run(ctx context.Context) {
	from := e.hub.source(e.query)
	defer func() { from.Close() }()
	for {
		start := time.Now()
		work, leave := e.hub.enter(ctx)
		a, err := e.hub.ask(work, e.query, from)
		if err == nil {
			if err = e.makeRoom(work, &a); err != nil { // what comes next must not build on a lost answer
				from.Close()
				from = e.hub.source(e.query)
			}
		}
		over := e.publish(ctx, a, err)
		leave()
		if over {
			return
		}
		if !e.pause(ctx, time.Since(start), from.Changed()) {
			return
		}
	}
}

// pause waits for the next tick: an interval, or until there is news. A query
// that takes long is asked less often: it may keep its part of the server busy
// half of the time.
func (e *evaluator) pause(ctx context.Context, took time.Duration, changed <-chan struct{}) bool {
	rest := min(took, 30*time.Second)
	whole := max(e.hub.cfg.Interval-took, rest)
	if changed == nil {
		return wait(ctx, whole, nil)
	}
	quick := max(e.hub.cfg.Quick-took, rest)
	return wait(ctx, quick, nil) && wait(ctx, whole-quick, changed)
}

// wait returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

// publish takes in an answer or error and wakes the subscribers. It returns
// whether the asking is over.
func (e *evaluator) publish(ctx context.Context, a Answer, err error) (over bool) {
	var now *state
	var ch *changes
	if err == nil {
		// Outside of the locks: with many points this takes a while. Nobody else
		// sets the state as long as ctx lasts.
		now, ch, err = e.advance(a)
	}
	e.hub.mu.Lock() // before e.mu, for forgetLocked
	defer e.hub.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil {
		return true // stopped meanwhile; another loop may run already
	}
	if err == nil {
		err = e.acceptLocked(now, ch, a.Held)
	}
	if err != nil {
		e.failLocked(err)
	}
	if e.mu.final || e.mu.complete {
		e.mu.stop()
		if over = true; e.mu.final {
			e.hub.forgetLocked(e)
		} else {
			e.hub.removeLocked(e) // the answer stays until its last subscriber has it
		}
	}
	for s := range e.mu.subs {
		s.wake()
	}
	return over
}

// advance works out the next state. An answer that does not fit the one before
// ends the query, not the process.
func (e *evaluator) advance(a Answer) (now *state, ch *changes, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.hub.cfg.Log.Error("live: an answer does not fit", "panic", p, "query", string(e.query.body), "stack", string(debug.Stack()))
			err = &Error{Code: 500, Message: "Internal error"}
		}
	}()
	now, ch = e.last().advance(a, e.query.seconds)
	return now, ch, nil
}

func (e *evaluator) last() *state {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.state
}

// acceptLocked takes in an answer, over a source that keeps so much.
func (e *evaluator) acceptLocked(now *state, ch *changes, source int64) error {
	if err := e.hub.hold(e, now, source); err != nil {
		return err
	}
	recovered := e.mu.err != nil
	e.mu.state = now
	e.mu.err, e.mu.fresh, e.mu.complete = nil, true, !e.query.live
	if e.mu.seq == 0 || recovered || !ch.empty() {
		e.mu.seq++
		e.recordLocked(ch)
	}
	return nil
}

// recordLocked adds the change to the tracks in use; others are forgotten, but
// for the newest, which somebody may resume or join.
func (e *evaluator) recordLocked(ch *changes) {
	var kept []*track
	for i, t := range e.mu.tracks {
		if t.users > 0 || i == len(e.mu.tracks)-1 {
			t.record(e.mu.seq, ch, e.mu.state)
			t.forgetMessages()
			kept = append(kept, t)
		}
	}
	e.mu.tracks = kept
}

func (e *evaluator) failLocked(err error) {
	var refusal *Error
	if !errors.As(err, &refusal) {
		refusal = &Error{Code: 500, Message: err.Error(), Temporary: true}
	}
	shown := *refusal
	shown.Temporary = shown.Temporary && e.query.live
	if e.mu.err == nil || *e.mu.err != shown {
		e.mu.err = &shown
		e.mu.errCount++
		e.hub.cfg.Log.Warn("live: query failed", "code", shown.Code, "error", shown.Message, "temporary", shown.Temporary, "query", string(e.query.body))
	}
	e.mu.final = !shown.Temporary
}

// trackLocked returns a track whose numbers are those of a snapshot of now.
func (e *evaluator) trackLocked() *track {
	if n := len(e.mu.tracks); n > 0 && e.mu.tracks[n-1].dense() {
		return e.mu.tracks[n-1]
	}
	e.mu.made++
	t := newTrack(e.epoch+"-"+strconv.Itoa(e.mu.made), e.mu.state)
	e.mu.tracks = append(e.mu.tracks, t)
	return t
}
