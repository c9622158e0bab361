package incremental

import (
	"bytes"
	"slices"
	"sync"

	"downpour/encoding"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator/aggregate"
)

// group is one result of the plan.
type group struct {
	key     []byte
	members []*series // in span order; also those without points

	// One entry per member. Nil until they are needed, and again when a member
	// joins.
	edges      []edge
	watermarks []watermark

	points     encoding.Points // of the whole scan range, and of the merged older hours
	cut        int64           // ms: the points before it are of merged older hours, and final; 0 without such
	windows    []Window        // to aggregate again, and then to report
	redescribe bool            // the group is new, or its members have changed

	first, next int // the shown points are points[first:next]
}

// Change is the difference of a group from the last returned one.
type Change struct {
	// Group always has Key. It has Spans, Tags, Aggregated and all Points only if
	// Full is set.
	Group merge.Group
	// Full is set if the group is new or its members have changed: Group replaces
	// everything known about it. Windows is empty then.
	Full bool
	// Windows hold the changed points: all points that the group had in a window
	// are replaced by the window's. Windows are ascending and disjoint and consist
	// of whole seconds.
	Windows []WindowPoints
}

// WindowPoints holds all points of a group within a window.
type WindowPoints struct {
	Window
	Points encoding.Points
}

// Groups trims the answer to shown and returns all of it, ascending by key.
func (t *View) Groups(shown Window) ([]merge.Group, error) {
	if err := t.aggregateDirty(); err != nil {
		return nil, err
	}

	t.shown = shown
	points := 0
	for _, g := range t.groups {
		points += g.points.Len()
	}
	if err := t.reserveCopy(points); err != nil {
		return nil, err
	}

	out := make([]merge.Group, 0, len(t.groups))
	for _, g := range t.groups {
		g.windows, g.redescribe = nil, false // all of the group is returned
		t.locateShown(g)
		out = append(out, t.fullGroup(g))
	}
	clear(t.dirty)
	slices.SortFunc(out, func(a, b merge.Group) int { return bytes.Compare(a.Key, b.Key) })
	return out, nil
}

// Changes trims the answer to shown and returns the differences since the last call of Groups or
// Changes. Neither end of shown may be before that of the last call.
func (t *View) Changes(shown Window) ([]Change, error) {
	if err := t.aggregateDirty(); err != nil {
		return nil, err
	}

	before := t.shown
	t.shown = shown
	var out []Change
	for _, g := range t.groups {
		t.moveShown(g, before)
		if len(g.windows) == 0 { // then redescribe is not set: membersChanged adds a window
			continue
		}
		if g.redescribe {
			if err := t.reserveCopy(g.points.Len()); err != nil {
				return nil, err
			}
		}
		out = append(out, t.changeOf(g))
		g.windows, g.redescribe = nil, false
	}
	clear(t.dirty)
	return out, nil
}

// Points returns the points that a group shows, none if there is no such group. They are
// the view's own: they must not be changed, and are good until the view changes.
func (t *View) Points(key string) encoding.Points {
	g := t.groups[key]
	if g == nil {
		return encoding.Points{}
	}
	i, j := g.first, max(g.first, g.next)
	return encoding.Points{Time: g.points.Time[i:j:j], Bits: g.points.Bits[i:j:j], Float: g.points.Float[i:j:j]}
}

// reserveCopy calls the guard before copies of points are returned. They do not count
// as the view's.
func (t *View) reserveCopy(points int) error {
	if t.bounds.Guard == nil {
		return nil
	}
	return t.bounds.Guard.Reserve(int64(points) * pointBytes)
}

// moveShown finds the shown points of a group after the shown window has moved from
// before, and adds windows for points that left it or came into it.
func (t *View) moveShown(g *group, before Window) {
	n := len(g.points.Time)
	changed := len(g.windows) > 0
	if changed {
		// Aggregation has moved the points: find the old places again.
		g.first, g.next = indexFrom(g.points.Time, before.From), indexAfter(g.points.Time, before.To)
	}

	left := g.first < n && g.points.Time[g.first] < t.shown.From
	if left {
		g.windows = append(g.windows, Window{before.From, t.shown.From - 1})
	}
	came := g.next < n && g.points.Time[g.next] <= t.shown.To
	if came {
		g.windows = append(g.windows, Window{before.To + 1, t.shown.To})
	}

	if changed || left || came {
		t.locateShown(g)
	}
}

// locateShown finds which points of a group are shown.
func (t *View) locateShown(g *group) {
	g.first, g.next = indexFrom(g.points.Time, t.shown.From), indexAfter(g.points.Time, t.shown.To)
}

// changeOf returns the change of a group that has windows to report.
func (t *View) changeOf(g *group) Change {
	if g.redescribe {
		return Change{Group: t.fullGroup(g), Full: true}
	}

	c := Change{Group: merge.Group{Key: g.key}}
	for _, w := range wholeSeconds(mergeWindows(g.windows)) {
		i, j := max(g.first, indexFrom(g.points.Time, w.From)), min(g.next, indexAfter(g.points.Time, w.To))
		c.Windows = append(c.Windows, WindowPoints{w, copyPoints(g.points, i, max(i, j))})
	}
	return c
}

// copyPoints copies the points i to j, half-open.
func copyPoints(p encoding.Points, i, j int) encoding.Points {
	return encoding.Points{
		Time:  slices.Clone(p.Time[i:j]),
		Bits:  slices.Clone(p.Bits[i:j]),
		Float: slices.Clone(p.Float[i:j]),
	}
}

// fullGroup returns a group with its shown points as a merger would return it, but
// without TSUIDs and annotations.
func (t *View) fullGroup(g *group) merge.Group {
	out := merge.Group{Key: g.key, Points: copyPoints(g.points, g.first, max(g.first, g.next))}
	for _, s := range g.members {
		if s.hasData {
			out.Spans = append(out.Spans, s.id)
		}
	}
	out.Tags, out.Aggregated = merge.DescribeTags(t.plan.Schema, out.Spans)
	return out
}

// aggregateDirty aggregates the dirty windows of all groups again.
func (t *View) aggregateDirty() error {
	s := scratches.Get().(*scratch)
	defer s.recycle()
	s.guard = scratchGuard{view: t}
	s.aggregator.Guard = &s.guard

	for g := range t.dirty {
		g.windows = mergeWindows(g.windows)
		for _, w := range g.windows {
			if err := t.aggregateWindow(s, g, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// scratchGuard lets aggregations, one after the other, reserve the memory that they
// need while they run. It does not count as the view's. Because the memory is used
// again, only the most that any aggregation has used is reserved.
type scratchGuard struct {
	view     *View
	used     int64 // by the present aggregation
	reserved int64 // from the view's guard
}

// Reserve reserves at the view's guard what exceeds earlier reservations.
func (g *scratchGuard) Reserve(n int64) error {
	g.used += n
	if outer := g.view.bounds.Guard; outer != nil && g.used > g.reserved {
		if err := outer.Reserve(g.used - g.reserved); err != nil {
			return err
		}
		g.reserved = g.used
	}
	return nil
}

// Check calls the view's guard.
func (g *scratchGuard) Check() error { return g.view.Check() }

// scratch is the memory that aggregations work in. All views share a pool of it,
// so that it stays in the processor's cache.
type scratch struct {
	aggregator aggregate.Group
	guard      scratchGuard
	series     []aggregate.Series
	result     encoding.Points
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxPooledSeries is the largest number of series of a scratch that goes back to the pool: one huge
// group must not keep its memory for ever.
const maxPooledSeries = 16 << 10

// recycle returns the scratch to the pool.
func (s *scratch) recycle() {
	s.guard = scratchGuard{}
	clear(s.series) // views of columns, which would keep a view alive
	if cap(s.series) <= maxPooledSeries {
		scratches.Put(s)
	}
}

// aggregateWindow aggregates a group's points within a window again.
func (t *View) aggregateWindow(s *scratch, g *group, w Window) error {
	if w.From = max(w.From, g.cut); w.From > w.To {
		return nil
	}
	p := t.plan
	s.series = t.memberSeries(s.series[:0], g, w)
	s.result.Reset()
	s.guard.used = 0

	// always begins before 1970, where there are no points. Covers refuses plans with fixes.
	q := aggregate.Query{From: p.From, To: p.To, Start: max(w.From, 0), End: w.To, Rate: p.Rate != nil}
	if err := s.aggregator.Aggregate(t.fn, q, s.series, &s.result); err != nil {
		return err
	}

	i, j := indexFrom(g.points.Time, w.From), indexAfter(g.points.Time, w.To)
	if err := t.Reserve(int64(s.result.Len()-(j-i)) * pointBytes); err != nil {
		return err
	}
	g.points.Time = replaceRange(g.points.Time, i, j, s.result.Time)
	g.points.Bits = replaceRange(g.points.Bits, i, j, s.result.Bits)
	g.points.Float = replaceRange(g.points.Float, i, j, s.result.Float)
	return nil
}
