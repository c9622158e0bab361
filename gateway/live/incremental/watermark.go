package incremental

// Silence is how long (ms) a series may be silent at least before it counts as
// ended. It may also be silent for ten times as long as between its last two
// points.
const Silence = 10 * 60 * 1000

// FinalBefore returns the answer's watermark: the time (ms) before which no point
// of the answer changes as long as points come in order, each later than all that
// its series has. It is the earliest time that the next point of any series can
// change, and at most the end of the answer. 0 promises nothing.
//
// The promise does not cover a late, overwritten or deleted point, a new series, a
// series that comes back after it ended, and what a moving start changes at its
// edge. A series ends when it has been silent for long (Silence). Otherwise a
// series that stopped would hold the watermark back until its points leave the
// scan range.
func (t *View) FinalBefore(now int64) int64 {
	final, hasSeries := t.shown.To, false
	for _, g := range t.groups {
		if g.watermarks == nil { // a new group, or its members have changed
			t.makeWatermarks(g)
		}
		for i := range g.watermarks {
			w := &g.watermarks[i]
			hasSeries = hasSeries || w.hasData
			if now <= w.activeUntil {
				final = min(final, w.earliest)
			}
		}
	}

	// Without any series the first one may change everything.
	if !hasSeries {
		return 0
	}
	return max(final, 0)
}

// watermark is what the next point of one member can change. The watermarks of a group are adjacent
// in memory, as its edges are.
type watermark struct {
	hasData     bool  // false: only annotations; a first point makes it a new series
	activeUntil int64 // ms; the series ends then if no point comes
	earliest    int64 // ms; see View.earliestChange
}

// makeWatermarks makes the watermarks of a group's members.
func (t *View) makeWatermarks(g *group) {
	g.watermarks = make([]watermark, len(g.members))
	for i, s := range g.members {
		s.index = i
		g.watermarks[i] = t.memberWatermark(s)
	}
}

func (t *View) memberWatermark(s *series) watermark {
	if !s.hasData {
		return watermark{activeUntil: always.From} // never active: it holds nothing back
	}
	return watermark{true, t.activeUntil(s), t.earliestChange(s)}
}

// activeUntil returns the time (ms) at which a series counts as ended if no point
// comes.
func (t *View) activeUntil(s *series) int64 {
	last, before := s.lastTimes()
	if last < 0 {
		return t.plan.From*1000 + Silence
	}
	end := last + t.interval() // of a bucket
	if before < 0 {
		return end + Silence
	}
	// A series whose points are far apart may be silent for ten times its last gap.
	return end + max(Silence, 10*(last-before))
}

// interval returns the length of a bucket in ms, 0 without downsampling.
func (t *View) interval() int64 {
	if t.plan.Downsample == nil {
		return 0
	}
	return t.plan.Downsample.Interval
}

// earliestChange returns the first time (ms) at which the next point of a series
// can change its group, 0 if that may be any time.
//
// The next point is in the series' last bucket or later. Interpolation draws a line from the value
// before it to the new one. So the group changes after the value before: with buckets from the next
// bucket on; with points as stored from that point itself on, because the type of the next point
// decides the type there.
func (t *View) earliestChange(s *series) int64 {
	n := s.base.len()
	if n == 0 {
		return 0 // or it has ended in the merged older hours: its next point needs a new view
	}

	// open is the first possible time of the next point of the base.
	open := s.base.Time[n-1]
	if t.bucketer == nil {
		open++
	}

	c := t.output(s)
	before := indexFrom(c.Time, open)
	switch {
	case t.plan.Rate != nil && before < 2:
		return 0 // a second rate makes the first count at all times before it
	case before == 0 && s.tail != nil && s.tail.Last[1] >= 0 && s.tail.Last[1] < open:
		return min(open, s.tail.Last[1]+t.interval()) // the value before is in the merged older hours
	case before == 0:
		return open
	}
	return min(open, c.Time[before-1]+t.interval()) //fault:final-before-the-gap TestFinalBefore
}
