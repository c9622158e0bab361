package incremental

import (
	"slices"

	"downpour/gateway/query/merge"
)

// A view can begin where a stretch of older hours ends (merge.Stretch). It then has the final
// points of the stretch's groups, and the tails of its series, and continues from there as a merger
// of the stretch would:
//
//	        stretch                 cut   seam
//	series             (not held) ...x--x--|--x--x--x    columns: tail, then rows
//	group   x--x--x--x--x--x--x--x--x--x--x|--x--x--x    points: final before the cut
//
// Nothing before the cut is aggregated again. A change there gives ErrSeam, and the caller loads a
// view of all rows.

// Continue gives a new view the older hours that it does not load; seam is their end, s. The
// view's plan is the stretch's ContinuedPlan of a plan that begins at the seam. Continue comes
// before the first Add, and its errors are those of Add.
func (l *Load) Continue(st *merge.Stretch, seam int64) error {
	t := l.view
	t.stretch, t.seam = st, seam*1000

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
func (l *Load) addMember(m *merge.StretchMember) error {
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

// continueGroup gives a new group its final points, if the view's stretch has any.
func (t *View) continueGroup(g *group) error {
	if t.stretch == nil {
		return nil
	}
	final, cut, ok := t.stretch.Final(string(g.key))
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

// checkSeam returns ErrSeam if a span's points after the seam change final points.
func (t *View) checkSeam(s *series) error {
	if t.stretch == nil || !s.hasData {
		return nil
	}

	var first merge.FirstPoint
	if i := indexFrom(s.base.Time, t.seam); i < s.base.len() {
		first = merge.FirstPoint{Any: true, Float: s.base.Bits == nil || s.base.Float[i]}
	}
	// Covers refuses plans with fixes, so the first rates are those from 1970.
	how := merge.Arithmetic{Fills: t.grid != nil, BogusStart: t.plan.Rate != nil}
	if t.stretch.ChangedBy(string(s.group.key), s.tail, first, how) {
		return ErrSeam
	}
	return nil
}

// Seam returns the time, s, before which the view has no rows, only a stretch made of them; 0 if it
// has all. If a row of an earlier hour has changed, a view of all rows must be loaded.
func (t *View) Seam() int64 { return t.seam / 1000 }

// lastTimes returns the times of the last point that a series has in the view or had before
// the seam, and of the one before; -1 for none.
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
