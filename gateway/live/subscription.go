package live

// Subscription is one subscriber's place in an evaluator's history. Its methods may
// be called from any goroutine.
type Subscription struct {
	evaluator *evaluator
	wake      func()
	cut       func() // nil if the subscriber must not be cut off

	// Guarded by evaluator.mu.
	track      *track  // nil before the first snapshot
	seq        uint64  // of the last update that Next returned
	confirmDue bool    // an update is due even if nothing is new, to confirm the resume
	errSeen    int     // evaluator.errCount when the last error was returned
	over       bool    // Next has returned an update that ends the subscription
	sending    *Update // what Next returned last: on its way until the next call
}

// Close ends the subscription. Further calls do nothing.
func (s *Subscription) Close() {
	h := s.evaluator.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	s.evaluator.leave(s)
}

// resumeLocked moves the subscriber to the place that r names if a history reaches back to it. Otherwise, and
// without r, the subscriber stays without a place, and gets a snapshot.
// REQUIRES: evaluator.mu is held.
func (s *Subscription) resumeLocked(r *Resume) {
	if r == nil {
		return
	}
	for _, t := range s.evaluator.mu.tracks {
		if t.epoch == r.Epoch && t.reaches(r.Seq, s.evaluator.mu.seq) {
			s.useTrackLocked(t)
			s.seq, s.confirmDue = r.Seq, true
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

	s.sending = s.nextLocked() // held by the subscriber until the next call, see countHeldLocked
	return s.sending
}

// nextLocked returns the next update that the subscriber has not had, nil if there is
// none. After the last one, a final error or the end of a complete query, the
// subscription is over.
func (s *Subscription) nextLocked() *Update {
	e := s.evaluator
	if _, joined := e.mu.subs[s]; !joined || s.over {
		return nil
	}
	if e.mu.errIsFinal {
		s.over = true
		return &Update{Kind: KindError, Err: e.mu.err}
	}

	// Data before a temporary error: the answer that was found before it is still
	// to be shown.
	if u := s.dataLocked(); u != nil {
		return u
	}
	isNews := !e.mu.errIsOld && s.errSeen != e.mu.errCount //fault:old-error-to-a-newcomer TestErrorIsNotOfTheLastLoop
	if e.mu.err != nil && isNews {
		s.errSeen = e.mu.errCount
		return &Update{Kind: KindError, Err: e.mu.err}
	}
	if e.mu.complete {
		s.over = true
		return &Update{Kind: KindComplete}
	}
	return nil
}

// dataLocked returns a snapshot or a delta if one is due, else nil, and moves the subscriber to the state that
// it leads to.
func (s *Subscription) dataLocked() *Update {
	e := s.evaluator
	switch {
	case !e.mu.answered: // the state may be old: the query has not run for a while
		return nil
	case s.track == nil:
		return s.snapshotLocked()
	case s.seq == e.mu.seq && !s.confirmDue:
		return nil
	case !s.track.reaches(s.seq, e.mu.seq):
		e.hub.merged.Add(1)
		return s.mergedSnapshotLocked()
	}
	return s.deltaLocked()
}

// snapshotLocked moves a new subscriber to the present state and returns a snapshot of it.
func (s *Subscription) snapshotLocked() *Update {
	s.moveToSnapshotLocked()
	if s.track.snapshot == nil {
		s.track.snapshot = s.makeSnapshotLocked()
	}
	return s.track.snapshot
}

// mergedSnapshotLocked is snapshotLocked for a subscriber that was too slow for deltas: the snapshot is marked
// as one in place of several updates.
func (s *Subscription) mergedSnapshotLocked() *Update {
	s.moveToSnapshotLocked()
	if s.track.mergedSnapshot == nil {
		s.track.mergedSnapshot = s.makeSnapshotLocked()
		s.track.mergedSnapshot.merged = true
	}
	return s.track.mergedSnapshot
}

// moveToSnapshotLocked moves the subscriber to the present state, on a track with the numbers of a snapshot.
func (s *Subscription) moveToSnapshotLocked() {
	e := s.evaluator
	s.useTrackLocked(e.snapshotTrackLocked())
	s.seq, s.confirmDue = e.mu.seq, false
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
		ignored:     e.query.ignored,
	}
}

// deltaLocked moves the subscriber to the present state, and returns one delta from where it was, or a
// snapshot if that is hardly longer. REQUIRES: the track reaches back to it.
func (s *Subscription) deltaLocked() *Update {
	e := s.evaluator
	var u *Update
	switch behind := e.mu.seq - s.seq; {
	case behind == 0: // resumed, and nothing is new
		u = s.newDeltaLocked(&delta{seq: s.seq, finalBefore: e.mu.state.finalBefore, damaged: e.mu.state.damaged})
	case behind == 1:
		newest := s.track.history[len(s.track.history)-1]
		if newest.update == nil { // this subscriber is the first; the others get the same message
			newest.update = s.newDeltaLocked(newest)
		}
		u = newest.update
	default:
		e.hub.merged.Add(1)
		if u = s.mergedDeltaLocked(); u == nil {
			return s.mergedSnapshotLocked() // hardly longer than the delta
		}
	}
	s.seq, s.confirmDue = e.mu.seq, false
	return u
}

// mergedDeltaLocked returns one delta for all that came after the subscriber's place, or nil if a snapshot
// is hardly longer. Subscribers who are at the same place get the same message.
func (s *Subscription) mergedDeltaLocked() *Update {
	t, present := s.track, s.evaluator.mu.state
	if u, known := t.merged[s.seq]; known {
		return u
	}

	var u *Update
	d := t.since(s.seq, present)
	if n := d.points(); n <= historyPoints || n <= present.points/2 {
		u = s.newDeltaLocked(d)
		u.merged = true
	}
	if t.merged == nil {
		t.merged = map[uint64]*Update{}
	}
	t.merged[s.seq] = u // nil too, so that the next call does not merge again
	return u
}

// newDeltaLocked returns a message with a delta of the subscriber's track to the present state.
func (s *Subscription) newDeltaLocked(d *delta) *Update {
	e := s.evaluator
	return &Update{
		account: e.hub.messages,
		Kind:    KindDelta,
		Epoch:   s.track.epoch,
		Seq:     e.mu.seq,
		millis:  !e.query.seconds,
		delta:   d,
	}
}
