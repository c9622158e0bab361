package live

// Subscription is one subscriber's place in an evaluator's history. Its methods
// may be called from any goroutine.
type Subscription struct {
	evaluator *evaluator
	wake      func()
	cut       func() // nil if it cannot be

	// Guarded by evaluator.mu.
	track    *track // nil before the first snapshot
	seq      uint64
	greet    bool // resumed: an update is due even when nothing is new
	errSeen  int
	complete bool
	over     bool
	sending  *Update // what Next returned last: it is on its way until the next call
}

// Close ends the subscription. It may be called again.
func (s *Subscription) Close() {
	h := s.evaluator.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	s.evaluator.leave(s)
}

// resume takes up an earlier place if the history reaches back to it.
// REQUIRES: evaluator.mu is held.
func (s *Subscription) resume(r *Resume) {
	if r == nil {
		return
	}
	for _, t := range s.evaluator.mu.tracks {
		if t.epoch == r.Epoch && t.reaches(r.Seq, s.evaluator.mu.seq) {
			s.useTrackLocked(t)
			s.seq, s.greet = r.Seq, true
		}
	}
}

func (s *Subscription) useTrackLocked(t *track) {
	if s.track != nil {
		s.track.users--
	}
	if t != nil {
		t.users++
	}
	s.track = t
}

// Next returns what the subscriber has not had yet, nil when there is nothing.
// After an update that Ends, there is never anything again. It does not block.
func (s *Subscription) Next() *Update {
	e := s.evaluator
	e.mu.Lock()
	defer e.mu.Unlock()

	s.sending = s.nextLocked()
	return s.sending
}

func (s *Subscription) nextLocked() *Update {
	e := s.evaluator
	if _, here := e.mu.subs[s]; !here || s.over {
		return nil
	}
	if e.mu.final {
		s.over = true
		return &Update{Kind: KindError, Err: e.mu.err}
	}
	if u := s.dataLocked(); u != nil {
		return u
	}
	if e.mu.err != nil && s.errSeen != e.mu.errCount {
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
	case !e.mu.fresh: // what is held may be old
		return nil
	case s.track == nil:
		return s.snapshotLocked(false)
	case s.seq == e.mu.seq && !s.greet:
		return nil
	case !s.track.reaches(s.seq, e.mu.seq):
		e.hub.merged.Add(1)
		return s.snapshotLocked(true)
	}
	return s.deltaLocked()
}

// snapshotLocked returns the snapshot of now, one for all who want it; merged
// tells that it is for one who was too slow for deltas.
func (s *Subscription) snapshotLocked(merged bool) *Update {
	e := s.evaluator
	s.useTrackLocked(e.trackLocked())
	s.seq, s.greet = e.mu.seq, false
	shared := &s.track.snapshot
	if merged {
		shared = &s.track.late
	}
	if *shared == nil {
		now := e.mu.state
		*shared = &Update{account: e.hub.messages, Kind: KindSnapshot, Epoch: s.track.epoch, Seq: s.seq, merged: merged, millis: !e.query.seconds,
			groups: s.track.list(now), points: now.points, missing: now.missing, rows: now.rows, finalBefore: now.finalBefore}
	}
	return *shared
}

func (s *Subscription) deltaLocked() *Update {
	e := s.evaluator
	u := &Update{account: e.hub.messages, Kind: KindDelta, Epoch: s.track.epoch, Seq: e.mu.seq, millis: !e.query.seconds}
	switch behind := e.mu.seq - s.seq; {
	case behind == 0:
		u.delta = &delta{seq: s.seq, finalBefore: e.mu.state.finalBefore}
	case behind == 1:
		u = s.track.history[len(s.track.history)-1].share(u)
	default:
		e.hub.merged.Add(1)
		if u = s.track.mergedSince(s.seq, u, e.mu.state); u == nil {
			return s.snapshotLocked(true)
		}
	}
	s.seq, s.greet = e.mu.seq, false
	return u
}
