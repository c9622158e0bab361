package incremental

// Silence is how long a series may be silent, ms, before it counts as ended; it
// may also be silent for ten times as long as between its last two points.
const Silence = 10 * 60 * 1000

// Final is the time (ms) before which no point of the answer changes as long as
// points come in order: each later than all that its series has. It is the
// earliest time that the next point of any series can reach back to, and not
// behind the answer's end. 0 promises nothing.
//
// What it does not speak of: a late point, an overwritten or deleted one, a
// series that is new or comes back after it ended, and what a moving start
// changes at its edge. A series ends when it has been silent for long (Silence),
// for else one that is gone would hold everything back until it leaves.
func (t *Table) Final(now int64) int64 {
	final, any := t.shown.To, false
	for _, g := range t.groups {
		if g.outlooks == nil {
			t.makeOutlooks(g)
		}
		for i := range g.outlooks {
			o := &g.outlooks[i]
			any = any || o.data
			if now <= o.until {
				final = min(final, o.reach)
			}
		}
	}
	if !any {
		return 0
	}
	return max(final, 0)
}

// outlook is what a member's next point can do. Those of a group lie side by side,
// as its edges do.
type outlook struct {
	data  bool  // false: annotations alone, and the first point makes it a new series
	until int64 // when the series ends if no point comes, ms
	reach int64 // see Table.reach
}

func (t *Table) makeOutlooks(g *group) {
	g.outlooks = make([]outlook, len(g.members))
	for i, s := range g.members {
		s.place = i
		g.outlooks[i] = t.outlook(s)
	}
}

func (t *Table) outlook(s *series) outlook {
	if !s.data {
		return outlook{until: always.From}
	}
	return outlook{true, t.until(s), t.reach(s)}
}

// until is when a series has been silent for long.
func (t *Table) until(s *series) int64 {
	last, gap := t.plan.From*1000, int64(0)
	if n := s.base.len(); n > 0 {
		last = s.base.Time[n-1] + t.interval() // of a bucket, where it ends
		if n > 1 {
			gap = s.base.Time[n-1] - s.base.Time[n-2]
		}
	}
	return last + max(Silence, 10*gap)
}

// interval is the length of a bucket, 0 for points as stored.
func (t *Table) interval() int64 {
	if t.plan.Downsample == nil {
		return 0
	}
	return t.plan.Downsample.Interval
}

// reach is the first time whose aggregate the next point of a series can change,
// 0 if that may be any. The point lies in the series' last bucket or later, and
// changes the group from behind the value before it, which is held or drawn to
// the new one: of buckets, from the next bucket on; of points as stored, from
// that one itself on, as the type of the next one reaches back to it. A second
// rate lets the first count at all times.
func (t *Table) reach(s *series) int64 {
	n := s.base.len()
	if n == 0 {
		return 0
	}
	open := s.base.Time[n-1] // what comes lies here or later
	if t.bucketer == nil {
		open++
	}
	c := t.last(s)
	before := from(c.Time, open)
	switch {
	case t.plan.Rate != nil && before < 2:
		return 0
	case before == 0:
		return open
	}
	return min(open, c.Time[before-1]+t.interval())
}
