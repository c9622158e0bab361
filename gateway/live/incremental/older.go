package incremental

import (
	"slices"

	"downpour/gateway/query/merge"
)

// A view can begin at the end of older hours that are merged already (merge.OlderHours). It then has
// the final points of their groups and the tails of their series, and continues from there as a merger
// would:
//
//	        older hours             cut   newerFrom
//	series             (not held) ...x--x--|--x--x--x    columns: tail, then rows
//	group   x--x--x--x--x--x--x--x--x--x--x|--x--x--x    points: final before the cut
//
// Nothing before the cut is aggregated again. A change there gives ErrOlderChanged, and the caller loads a
// view of all rows.

// Continue gives a new view the merged older hours, whose rows it does not load; newerFrom is their
// end, in s. The view's plan is their ContinuedPlan for a plan that begins there. Continue comes
// before the first Add, and its errors are those of Add.
func (l *Load) Continue(st *merge.OlderHours, newerFrom int64) error {
	t := l.view
	t.older, t.newerFrom = st, newerFrom*1000

	for i, members := 0, st.Members(); i < len(members); i++ {
		if i%checkSpans == 0 {
			if err := t.Check(); err != nil {
				return err
			}
		}
		if err := l.addMember(&members[i]); err != nil {
			return err
		}
	}
	return nil
}

// addMember adds the tail of a span. No part has an empty start key, so the tail comes before the
// rows of all parts.
func (l *Load) addMember(m *merge.OlderMember) error {
	sp, err := l.view.findOrAdd(m.Span)
	if err != nil || sp.group == nil {
		return err
	}
	sp.tail = m
	if m.HasData && !sp.hasData {
		sp.hasData = true
		l.view.membersChanged(sp.group)
	}

	n := int64(len(m.Time)+m.Raw.Len()) * pointBytes
	if err := l.view.Reserve(n); err != nil {
		return err
	}
	l.bytes += n
	p := partColumn{hasData: m.HasData, buckets: doubleColumn(slices.Clone(m.Time), slices.Clone(m.Value))}
	p.raw.AppendPoints(m.Raw)
	l.parts[sp] = append(l.parts[sp], p)
	return nil
}

// continueGroup gives a new group its final points, if the view began with older hours that have any for it.
func (t *View) continueGroup(g *group) error {
	if t.older == nil {
		return nil
	}
	final, cut, ok := t.older.Final(string(g.key))
	if !ok {
		return nil
	}
	if err := t.Reserve(int64(final.Len()) * pointBytes); err != nil {
		return err
	}
	g.cut = cut
	g.points.AppendPoints(final)
	return nil
}

// checkOlder returns ErrOlderChanged if a span's points in the newer hours change final points.
func (t *View) checkOlder(s *series) error {
	if t.older == nil || !s.hasData {
		return nil
	}

	var first merge.FirstPoint
	if i := indexFrom(s.base.Time, t.newerFrom); i < s.base.len() {
		first = merge.FirstPoint{Any: true, Float: s.base.Bits == nil || s.base.Float[i]}
	}
	// Covers refuses plans with fixes, so the first rates are those from 1970.
	how := merge.Arithmetic{Fills: t.grid != nil, BogusStart: t.plan.Rate != nil}
	if t.older.ChangedBy(string(s.group.key), s.tail, first, how) {
		return ErrOlderChanged
	}
	return nil
}

// NewerFrom returns the time, in s, before which the view has no rows, only what was merged from them; 0
// if it has all rows. If a row of an earlier hour has changed, a view of all rows must be loaded.
func (t *View) NewerFrom() int64 { return t.newerFrom / 1000 }

// lastTimes returns the times of the last point that a series has in the view or in the
// merged older hours, and of the one before; -1 for none.
func (s *series) lastTimes() (last, before int64) {
	known := make([]int64, 0, 4)
	if s.tail != nil {
		known = append(known, s.tail.Last[1], s.tail.Last[0])
	}
	n := s.base.len()
	known = append(known, s.base.Time[max(0, n-2):]...)
	slices.Sort(known)
	known = slices.Compact(known)

	last, before = -1, -1
	if n := len(known); n > 0 {
		last = known[n-1]
		if n > 1 {
			before = known[n-2]
		}
	}
	return last, before
}
