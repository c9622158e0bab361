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
		subs    map[*Subscription]struct{}
		stop    context.CancelFunc // of the loop; nil when none runs
		linger  *time.Timer        // forgets the evaluator; nil while it has subscribers
		lingers int                // how often linger was started: the number of the last one

		answered   bool     // since the loop started: state is not of an earlier loop
		seq        uint64   // of state; 0 before the first answer
		state      *state   // the last answer
		held       Held     // as counted for state
		ticks      uint64   // times that held was counted
		tracks     []*track // the last is the newest
		tracksMade int      // since the start
		err        *Error   // of the last run of the query; nil if it was answered
		errCount   int      // grows with each new error
		errIsOld   bool     // err is of a loop that has ended: who subscribes now does not get it
		errIsFinal bool     // err ends the query
		complete   bool     // the query named an end and was answered
	}
}

func newEvaluator(h *Hub, q query, epoch string) *evaluator {
	e := &evaluator{hub: h, query: q, epoch: epoch}
	e.mu.subs = map[*Subscription]struct{}{}
	e.mu.state = &state{}
	return e
}

// join adds a subscriber, at the place that it resumes if there is one, and starts the loop if none runs.
// REQUIRES: hub.mu is held.
func (e *evaluator) join(r Request, wake func()) *Subscription {
	e.mu.Lock()
	defer e.mu.Unlock()

	s := &Subscription{evaluator: e, wake: wake, cut: r.Cut}
	e.mu.subs[s] = struct{}{}
	s.resumeLocked(r.Resume)
	if e.mu.stop == nil && !e.mu.complete { // no loop runs, and there is more to do
		e.startLocked()
	}

	wake() // there may be an answer already
	return s
}

// startLocked starts the loop.
func (e *evaluator) startLocked() {
	e.stopLingerLocked()
	ctx, cancel := context.WithCancel(context.Background())
	e.mu.stop, e.mu.answered, e.mu.errIsOld = cancel, false, e.mu.err != nil
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

	if _, joined := e.mu.subs[s]; !joined { // closed before
		return
	}
	delete(e.mu.subs, s)
	s.useTrackLocked(nil)
	if len(e.mu.subs) > 0 {
		return
	}

	e.stopLocked()
	if e.mu.errIsFinal || e.mu.complete || len(e.mu.tracks) == 0 {
		// There is nothing to resume: the query was refused for good, has ended, or nothing was sent.
		e.hub.forgetLocked(e)
		return
	}
	e.mu.lingers++
	n := e.mu.lingers
	e.mu.linger = time.AfterFunc(e.hub.cfg.Linger, func() { e.expire(n) })
}

// expire forgets the evaluator if no subscriber has come since linger number n was started.
func (e *evaluator) expire(n int) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()

	if e.mu.linger != nil && e.mu.lingers == n {
		e.hub.forgetLocked(e)
	}
}

// run is the loop: it runs the query at each tick, until ctx ends, the query is refused for good, or it is
// complete.
func (e *evaluator) run(ctx context.Context) {
	source := e.hub.openSource(e.query)
	// Not deferred directly: source may be another one by then.
	defer func() { source.Close() }()
	for {
		start := time.Now()
		// The context work carries the memory account of the run, which leave releases.
		work, leave := e.hub.enter(ctx)
		a, err := e.hub.ask(work, e.query, source)

		// Without memory for it an answer is lost, and the next one must not be a change of it: a
		// new source begins with all groups.
		if err == nil {
			if err = e.reserveAnswer(work, &a); err != nil {
				source.Close()
				source = e.hub.openSource(e.query)
			}
		}

		ended := e.publish(ctx, a, err)
		leave()
		if ended {
			return
		}
		if !e.pause(ctx, time.Since(start), source.Changed()) {
			return
		}
	}
}

// longestRest bounds the pause of a query whose last run took long.
const longestRest = 30 * time.Second

// pause waits for the next tick, which begins Config.Interval after the last one began, or, with news from
// changed, Config.Quick after it. A nil changed never has news. took is how long the last run took:
// the pause is no shorter, up to longestRest, so that a query uses the server half of the time at
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

// publish makes an answer the present one, or records an error, and wakes the subscribers. It returns
// true if the loop must end: ctx has ended, the query was refused for good, or it is complete.
func (e *evaluator) publish(ctx context.Context, a Answer, err error) (ended bool) {
	var next *state
	var ch *changes
	if err == nil {
		// Outside of the locks, because it takes a while with many points. Nobody
		// else sets the state before ctx ends.
		next, ch, err = e.advance(a)
	}

	e.hub.mu.Lock() // before e.mu, for forgetLocked
	defer e.hub.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil {
		return true // stopped in between; another loop may already run
	}

	if err == nil {
		err = e.acceptLocked(next, ch, a.Held)
	}
	if err != nil {
		e.failLocked(err)
	}

	ended = e.mu.errIsFinal || e.mu.complete
	if ended {
		e.mu.stop()
		if e.mu.errIsFinal {
			e.hub.forgetLocked(e)
		} else {
			e.hub.removeLocked(e) // the answer stays until its last subscriber has it
		}
	}
	for s := range e.mu.subs {
		s.wake()
	}
	return ended
}

// advance computes the next state and the difference from the present one, and changes nothing. An answer
// that does not fit the one before ends the query, with errInternal, and not the process.
func (e *evaluator) advance(a Answer) (next *state, ch *changes, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.hub.cfg.Log.Error("live: an answer does not fit", "panic", p, "query", string(e.query.question.Body),
				"stack", string(debug.Stack()))
			err = errInternal
		}
	}()
	next, ch = e.lastState().advance(a, e.query.seconds)
	return next, ch, nil
}

// lastState returns the present state, of the last answer that was accepted.
func (e *evaluator) lastState() *state {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.state
}

// acceptLocked makes the next state the present one, and records the difference if there is one. sourceBytes
// is the memory that its source holds. It fails if all live queries together would hold too much.
func (e *evaluator) acceptLocked(next *state, ch *changes, sourceBytes int64) error {
	if err := e.hub.holdOrRefuse(e, next, sourceBytes); err != nil {
		return err
	}

	recovered := e.mu.err != nil
	e.mu.state = next
	e.mu.err, e.mu.answered, e.mu.complete = nil, true, !e.query.live

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

// failLocked records an error of a run, and logs it if the run before had another one.
func (e *evaluator) failLocked(err error) {
	var refusal *Error
	if !errors.As(err, &refusal) {
		refusal = &Error{Code: 500, Message: err.Error(), Temporary: true}
	}

	// A query with an end is run once: none of its errors is temporary.
	shown := *refusal
	shown.Temporary = shown.Temporary && e.query.live
	sameAgain := e.mu.err != nil && e.mu.err.same(&shown) && !e.mu.errIsOld
	if !sameAgain {
		e.mu.err = &shown
		e.mu.errCount++
		e.hub.cfg.Log.Warn("live: query failed", "code", shown.Code, "error", shown.Message, "temporary",
			shown.Temporary, "query", string(e.query.question.Body))
	}
	e.mu.errIsFinal, e.mu.errIsOld = !shown.Temporary, false
}

// snapshotTrackLocked returns a track whose numbers are those of a snapshot of the
// present state: the newest if its numbers have no hole, else a new one, which it adds to the tracks.
func (e *evaluator) snapshotTrackLocked() *track {
	if n := len(e.mu.tracks); n > 0 && e.mu.tracks[n-1].dense() {
		return e.mu.tracks[n-1]
	}
	e.mu.tracksMade++
	t := newTrack(e.epoch+"-"+strconv.Itoa(e.mu.tracksMade), e.mu.state)
	e.mu.tracks = append(e.mu.tracks, t)
	return t
}
