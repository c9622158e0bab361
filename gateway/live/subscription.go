package live

// Subscription is one subscriber's place in an evaluator's history. Its methods may
// be called from any goroutine.
type Subscription struct {
	evaluator *evaluator
	wake      func()
	cut       func() // nil if the subscriber must not be cut off

	// Guarded by evaluator.mu.
	track   *track  // nil before the first snapshot
	seq     uint64  // of the last update that Next returned
	resumed bool    // an update is due even if nothing is new, to confirm the resume
	errSeen int     // evaluator.errCount when the last error was returned
	over    bool    // Next has returned an update that ends the subscription
	sending *Update // what Next returned last: on its way until the next call
}

// Close ends the subscription. It may be called again.
func (s *Subscription) Close() {
	h := s.evaluator.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	s.evaluator.leave(s)
}

// resumeLocked takes the place that r names if the history reaches back to it.
// REQUIRES: evaluator.mu is held.
func (s *Subscription) resumeLocked(r *Resume) {
	if r == nil {
		return
	}
	for _, t := range s.evaluator.mu.tracks {
		if t.epoch == r.Epoch && t.reaches(r.Seq, s.evaluator.mu.seq) {
			s.useTrackLocked(t)
			s.seq, s.resumed = r.Seq, true
		}
	}
}

// useTrackLocked moves the subscriber to another track, or to none.
func (s *Subscription) useTrackLocked(t *track) {
	if s.track != nil {
		s.track.users--
	}
	if t != nil {
		t.users++
	}
	s.track = t
}

// Next returns the next update for the subscriber, or nil if there is none now.
// After an update that Ends it returns nil for ever. It does not block.
func (s *Subscription) Next() *Update {
	e := s.evaluator
	e.mu.Lock()
	defer e.mu.Unlock()

	s.sending = s.nextLocked() // held by the subscriber until the next call, see updateHeld
	return s.sending
}

// nextLocked returns the next update that the subscriber has not had, nil if there is
// none. After the last one, a final error or the end of a complete query, the
// subscription is over.
func (s *Subscription) nextLocked() *Update {
	e := s.evaluator
	if _, here := e.mu.subs[s]; !here || s.over {
		return nil
	}
	if e.mu.final {
		s.over = true
		return &Update{Kind: KindError, Err: e.mu.err}
	}

	// Data before a temporary error: the answer that was found before it is still
	// to be shown.
	if u := s.dataLocked(); u != nil {
		return u
	}
	if e.mu.err != nil && !e.mu.old && s.errSeen != e.mu.errCount { //fault:old-error-to-a-newcomer TestErrorIsNotOfTheLastLoop
		s.errSeen = e.mu.errCount
		return &Update{Kind: KindError, Err: e.mu.err}
	}
	if e.mu.complete {
		s.over = true
		return &Update{Kind: KindComplete}
	}
	return nil
}

// dataLocked returns a snapshot or a delta if one is due.
func (s *Subscription) dataLocked() *Update {
	e := s.evaluator
	switch {
	case !e.mu.fresh: // the state may be old: the query has not run for a while
		return nil
	case s.track == nil:
		return s.snapshotLocked()
	case s.seq == e.mu.seq && !s.resumed:
		return nil
	case !s.track.reaches(s.seq, e.mu.seq):
		e.hub.merged.Add(1)
		return s.mergedSnapshotLocked()
	}
	return s.deltaLocked()
}

// snapshotLocked returns a snapshot of the present state for a new subscriber.
func (s *Subscription) snapshotLocked() *Update {
	s.moveToSnapshotLocked()
	if s.track.snapshot == nil {
		s.track.snapshot = s.makeSnapshotLocked()
	}
	return s.track.snapshot
}

// mergedSnapshotLocked returns a snapshot of the present state for a subscriber that was too slow
// for deltas, marked as such.
func (s *Subscription) mergedSnapshotLocked() *Update {
	s.moveToSnapshotLocked()
	if s.track.mergedSnapshot == nil {
		s.track.mergedSnapshot = s.makeSnapshotLocked()
		s.track.mergedSnapshot.merged = true
	}
	return s.track.mergedSnapshot
}

// moveToSnapshotLocked moves the subscriber to the present state, on a track whose
// numbers a snapshot can have.
func (s *Subscription) moveToSnapshotLocked() {
	e := s.evaluator
	s.useTrackLocked(e.snapshotTrackLocked())
	s.seq, s.resumed = e.mu.seq, false
}

func (s *Subscription) makeSnapshotLocked() *Update {
	e := s.evaluator
	now := e.mu.state
	return &Update{
		account:     e.hub.messages,
		Kind:        KindSnapshot,
		Epoch:       s.track.epoch,
		Seq:         s.seq,
		millis:      !e.query.seconds,
		groups:      s.track.list(now),
		points:      now.points,
		missing:     now.missing,
		rows:        now.rows,
		finalBefore: now.finalBefore,
		damaged:     now.damaged,
	}
}

// deltaLocked returns one delta from the subscriber's place to the present state.
// REQUIRES: the track reaches back to it.
func (s *Subscription) deltaLocked() *Update {
	e := s.evaluator
	u := &Update{
		account: e.hub.messages,
		Kind:    KindDelta,
		Epoch:   s.track.epoch,
		Seq:     e.mu.seq,
		millis:  !e.query.seconds,
	}
	switch behind := e.mu.seq - s.seq; {
	case behind == 0: // resumed, and nothing is new
		u.delta = &delta{seq: s.seq, finalBefore: e.mu.state.finalBefore, damaged: e.mu.state.damaged}
	case behind == 1:
		// The last delta unchanged: the first call sets its u, and all get the same message.
		u = s.track.history[len(s.track.history)-1].share(u)
	default:
		e.hub.merged.Add(1)
		if u = s.track.mergedSince(s.seq, u, e.mu.state); u == nil {
			return s.mergedSnapshotLocked() // hardly longer than the delta
		}
	}
	s.seq, s.resumed = e.mu.seq, false
	return u
}
