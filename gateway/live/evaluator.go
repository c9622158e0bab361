package live

import (
	"context"
	"errors"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// evaluator runs one query periodically while it has subscribers.
type evaluator struct {
	hub   *Hub
	query query
	epoch string

	// mu may be locked while hub.mu is held, not the other way round.
	mu struct {
		sync.Mutex
		subs   map[*Subscription]struct{}
		stop   context.CancelFunc // of the loop; nil when none runs
		linger *time.Timer        // forgets the evaluator; nil while it has subscribers

		fresh    bool     // the query was answered since the loop started
		seq      uint64   // of state; 0 before the first answer
		state    *state   // the last answer
		held     Held     // as counted for state
		ticks    uint64   // times that held was counted
		tracks   []*track // the last is the newest
		made     int      // tracks made since the start
		err      *Error   // of the last ask
		errCount int      // grows with each new error
		old      bool     // err is of a loop that has ended, and no news to who comes now
		final    bool     // err ends the query
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
	s.resumeLocked(r.Resume)
	if e.mu.stop == nil && !e.mu.complete { // no loop runs, and there is more to do
		e.startLocked()
	}

	// There may be an answer already.
	wake()
	return s
}

// startLocked starts the loop.
func (e *evaluator) startLocked() {
	e.stopLingerLocked()
	ctx, cancel := context.WithCancel(context.Background())
	e.mu.stop, e.mu.fresh, e.mu.old = cancel, false, e.mu.err != nil
	e.hub.work.Go(func() { e.run(ctx) })
}

// stopLocked ends the loop, if one runs, and the timer.
func (e *evaluator) stopLocked() {
	if e.mu.stop != nil {
		e.mu.stop()
		e.mu.stop = nil
	}
	e.stopLingerLocked()
}

func (e *evaluator) stopLingerLocked() {
	if e.mu.linger != nil {
		e.mu.linger.Stop()
		e.mu.linger = nil
	}
}

// leave removes a subscriber. After the last one the loop stops immediately, and the state is kept
// for Config.Linger. REQUIRES: hub.mu is held.
func (e *evaluator) leave(s *Subscription) {
	e.mu.Lock()
	defer e.mu.Unlock()

	if _, here := e.mu.subs[s]; !here { // closed before
		return
	}
	delete(e.mu.subs, s)
	s.useTrackLocked(nil)
	if len(e.mu.subs) > 0 {
		return
	}

	e.stopLocked()
	if e.mu.final || e.mu.complete || len(e.mu.tracks) == 0 {
		// There is nothing to resume: it was refused for good, has ended, or has sent nothing.
		e.hub.forgetLocked(e)
		return
	}
	// expire gets a pointer to the variable, because it may start before that is set.
	var timer *time.Timer
	timer = time.AfterFunc(e.hub.cfg.Linger, func() { e.expire(&timer) })
	e.mu.linger = timer
}

// expire drops an evaluator without new subscribers. It reads the timer under e.mu,
// which leave holds until the variable is set.
func (e *evaluator) expire(timer **time.Timer) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()

	// Another timer, or none, means that a subscriber has come back.
	if e.mu.linger == *timer {
		e.hub.forgetLocked(e)
	}
}

// run runs the query until ctx ends, the query is refused for good, or it is complete.
func (e *evaluator) run(ctx context.Context) {
	source := e.hub.openSource(e.query)
	// Not deferred directly: source may be another one by then.
	defer func() { source.Close() }()
	for {
		start := time.Now()
		// The context work carries the memory account of the run, which leave releases.
		work, leave := e.hub.enter(ctx)
		a, err := e.hub.ask(work, e.query, source)

		// If there is no memory to take the answer in, it is lost, and the next
		// one must not be a change of it: begin with a new source.
		if err == nil {
			if err = e.reserveAnswer(work, &a); err != nil {
				source.Close()
				source = e.hub.openSource(e.query)
			}
		}

		over := e.publish(ctx, a, err)
		leave()
		if over {
			return
		}
		if !e.pause(ctx, time.Since(start), source.Changed()) {
			return
		}
	}
}

// longestRest bounds the pause of a query whose last run took long.
const longestRest = 30 * time.Second

// pause waits for the next tick: for an interval, or until there is news, but no less
// than Config.Quick. A nil changed never has news. took is the time of the last run.
// The pause is at least as long, so that a query uses the server half of the time at
// most. pause returns false if ctx ends first.
func (e *evaluator) pause(ctx context.Context, took time.Duration, changed <-chan struct{}) bool {
	rest := min(took, longestRest)
	interval := max(e.hub.cfg.Interval-took, rest)
	if changed == nil {
		return wait(ctx, interval, nil)
	}
	quick := max(e.hub.cfg.Quick-took, rest)
	// News that comes during the first wait stays in changed and ends the second immediately.
	return wait(ctx, quick, nil) && wait(ctx, interval-quick, changed)
}

// wait waits for d or until changed gets a value. It returns false if ctx ends
// first.
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

// publish takes in an answer or an error and wakes the subscribers. It returns
// whether the loop is over.
func (e *evaluator) publish(ctx context.Context, a Answer, err error) (over bool) {
	var now *state
	var ch *changes
	if err == nil {
		// Outside of the locks, because it takes a while with many points. Nobody
		// else sets the state before ctx ends.
		now, ch, err = e.advance(a)
	}

	e.hub.mu.Lock() // before e.mu, for forgetLocked
	defer e.hub.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil {
		return true // stopped in between; another loop may already run
	}

	if err == nil {
		err = e.acceptLocked(now, ch, a.Held)
	}
	if err != nil {
		e.failLocked(err)
	}

	if e.mu.final || e.mu.complete {
		over = true
		e.mu.stop()
		if e.mu.final {
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

// advance computes the next state. An answer that does not fit the one before ends
// the query, not the process.
func (e *evaluator) advance(a Answer) (now *state, ch *changes, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.hub.cfg.Log.Error("live: an answer does not fit", "panic", p, "query", string(e.query.question.Body),
				"stack", string(debug.Stack()))
			err = errInternal
		}
	}()
	now, ch = e.lastState().advance(a, e.query.seconds)
	return now, ch, nil
}

func (e *evaluator) lastState() *state {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.state
}

// acceptLocked makes an answer the present one. sourceBytes is the memory that its
// source holds. It fails if all live queries together would hold too much.
func (e *evaluator) acceptLocked(now *state, ch *changes, sourceBytes int64) error {
	if err := e.hub.updateHeld(e, now, sourceBytes); err != nil {
		return err
	}

	recovered := e.mu.err != nil
	e.mu.state = now
	e.mu.err, e.mu.fresh, e.mu.complete = nil, true, !e.query.live

	// An answer equal to the one before is no news. But a client that got an error waits for a
	// message that it is over.
	if e.mu.seq == 0 || recovered || !ch.empty() {
		e.mu.seq++
		e.recordLocked(ch)
	}
	return nil
}

// recordLocked adds the change to the tracks in use, and drops the others. The newest is always
// kept, because a subscriber may resume or join it.
func (e *evaluator) recordLocked(ch *changes) {
	var inUse []*track
	for i, t := range e.mu.tracks {
		if t.users > 0 || i == len(e.mu.tracks)-1 {
			t.record(e.mu.seq, ch, e.mu.state)
			t.dropMessages()
			inUse = append(inUse, t)
		}
	}
	e.mu.tracks = inUse
}

// failLocked records an error of a run.
func (e *evaluator) failLocked(err error) {
	var refusal *Error
	if !errors.As(err, &refusal) {
		refusal = &Error{Code: 500, Message: err.Error(), Temporary: true}
	}

	// A query with an end is run once: none of its errors is temporary.
	shown := *refusal
	shown.Temporary = shown.Temporary && e.query.live
	if e.mu.err == nil || *e.mu.err != shown || e.mu.old { // the same error again is no news
		e.mu.err = &shown
		e.mu.errCount++
		e.hub.cfg.Log.Warn("live: query failed", "code", shown.Code, "error", shown.Message, "temporary",
			shown.Temporary, "query", string(e.query.question.Body))
	}
	e.mu.final, e.mu.old = !shown.Temporary, false
}

// snapshotTrackLocked returns a track whose numbers are those of a snapshot of the
// present state: the newest if its numbers have no hole, or a new one.
func (e *evaluator) snapshotTrackLocked() *track {
	if n := len(e.mu.tracks); n > 0 && e.mu.tracks[n-1].dense() {
		return e.mu.tracks[n-1]
	}
	e.mu.made++
	t := newTrack(e.epoch+"-"+strconv.Itoa(e.mu.made), e.mu.state)
	e.mu.tracks = append(e.mu.tracks, t)
	return t
}
