package incremental

import (
	"bytes"
	"slices"
	"sync"

	"downpour/encoding"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator/aggregate"
)

// group is one result.
type group struct {
	key     []byte
	members []*series // in span order, also those without points
	// By member; nil until they are needed.
	edges    []edge
	outlooks []outlook

	points  encoding.Points
	windows []Window // to aggregate again
	anew    bool     // members have come

	first, next int // points: first one shown, first one behind those shown
}

// Change is what became of a group.
type Change struct {
	// Group has Key, Spans, Tags and Aggregated; Points only of a group that is
	// Anew, then all of them.
	Group merge.Group
	// Anew: the group is new, or has other members than before.
	Anew bool
	// Windows hold what is new: everything that the group had in a window is
	// replaced by the window's points. Windows are ascending and disjoint and
	// their borders are those of seconds.
	Windows []WindowPoints
}

// WindowPoints are the points that a group has in a window now.
type WindowPoints struct {
	Window
	Points encoding.Points
}

// Groups trims the answer to shown and returns it whole, by key.
func (t *Table) Groups(shown Window) ([]merge.Group, error) {
	if err := t.refreshChanged(); err != nil {
		return nil, err
	}
	t.shown = shown
	points := 0
	for _, g := range t.groups {
		points += g.points.Len()
	}
	if err := t.lend(points); err != nil {
		return nil, err
	}
	out := make([]merge.Group, 0, len(t.groups))
	for _, g := range t.groups {
		g.windows, g.anew = nil, false
		t.place(g)
		out = append(out, t.whole(g))
	}
	clear(t.dirty)
	slices.SortFunc(out, func(a, b merge.Group) int { return bytes.Compare(a.Key, b.Key) })
	return out, nil
}

// Changes trims the answer to shown, which must not begin or end earlier than
// before, and returns what differs from what was returned last.
func (t *Table) Changes(shown Window) ([]Change, error) {
	if err := t.refreshChanged(); err != nil {
		return nil, err
	}
	before := t.shown
	t.shown = shown
	var out []Change
	for _, g := range t.groups {
		t.move(g, before)
		if len(g.windows) == 0 {
			continue
		}
		if g.anew {
			if err := t.lend(g.points.Len()); err != nil {
				return nil, err
			}
		}
		out = append(out, t.change(g))
		g.windows, g.anew = nil, false
	}
	clear(t.dirty)
	return out, nil
}

// lend is asked before copies of points are handed out.
func (t *Table) lend(points int) error {
	if t.within.Guard == nil {
		return nil
	}
	return t.within.Guard.Reserve(int64(points) * pointBytes)
}

// move adds the windows that the moving ends of the query uncover or cover, and
// finds the places of the ends anew.
func (t *Table) move(g *group, before Window) {
	n := len(g.points.Time)
	spliced := len(g.windows) > 0
	if spliced {
		g.first, g.next = from(g.points.Time, before.From), after(g.points.Time, before.To)
	}
	left := g.first < n && g.points.Time[g.first] < t.shown.From
	came := g.next < n && g.points.Time[g.next] <= t.shown.To
	if left {
		g.windows = append(g.windows, Window{before.From, t.shown.From - 1})
	}
	if came {
		g.windows = append(g.windows, Window{before.To + 1, t.shown.To})
	}
	if spliced || left || came {
		t.place(g)
	}
}

func (t *Table) place(g *group) {
	g.first, g.next = from(g.points.Time, t.shown.From), after(g.points.Time, t.shown.To)
}

func (t *Table) change(g *group) Change {
	if g.anew {
		return Change{Group: t.whole(g), Anew: true}
	}
	c := Change{Group: merge.Group{Key: g.key}}
	for _, w := range wholeSeconds(join(g.windows)) {
		i, j := max(g.first, from(g.points.Time, w.From)), min(g.next, after(g.points.Time, w.To))
		c.Windows = append(c.Windows, WindowPoints{w, copied(g.points, i, max(i, j))})
	}
	return c
}

// copied copies the points i to j.
func copied(p encoding.Points, i, j int) encoding.Points {
	return encoding.Points{Time: slices.Clone(p.Time[i:j]), Bits: slices.Clone(p.Bits[i:j]), Float: slices.Clone(p.Float[i:j])}
}

// whole is a group as the merger would return it, without TSUIDs and notes.
func (t *Table) whole(g *group) merge.Group {
	out := merge.Group{Key: g.key, Points: copied(g.points, g.first, max(g.first, g.next))}
	for _, s := range g.members {
		if s.data {
			out.Spans = append(out.Spans, s.id)
		}
	}
	out.Tags, out.Aggregated = describe(t.plan.Schema, out.Spans)
	return out
}

// describe finds the tags that all members with such a key share, and the keys
// that have several values. Source: SpanGroup.computeTags.
func describe(s encoding.Schema, spans [][]byte) (tags []encoding.TagPair, several []encoding.UID) {
	values := map[string]encoding.UID{} // nil: several
	var keys []encoding.UID
	var pairs []encoding.TagPair
	for _, id := range spans {
		pairs = s.AppendPairs(pairs[:0], s.SpanTags(id))
		for _, p := range pairs {
			v, known := values[string(p.K)]
			if !known {
				values[string(p.K)] = p.V
				keys = append(keys, p.K)
			} else if v != nil && !bytes.Equal(v, p.V) {
				values[string(p.K)] = nil
			}
		}
	}
	slices.SortFunc(keys, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
	for _, k := range keys {
		if v := values[string(k)]; v != nil {
			tags = append(tags, encoding.TagPair{K: k, V: v})
		} else {
			several = append(several, k)
		}
	}
	return tags, several
}

// refreshChanged aggregates all dirty windows again.
func (t *Table) refreshChanged() error {
	s := scratches.Get().(*scratch)
	defer s.give()
	s.guard = guard{table: t}
	s.folder.Guard = &s.guard
	for g := range t.dirty {
		g.windows = join(g.windows)
		for _, w := range g.windows {
			if err := t.aggregate(s, g, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// guard lets the aggregation of one group after the other reserve what it takes
// for its own time, which is not counted as the table's: the most that any took.
type guard struct {
	table        *Table
	used, leased int64
}

// Reserve asks the table's guard for what no group before has taken.
func (g *guard) Reserve(n int64) error {
	g.used += n
	if outer := g.table.within.Guard; outer != nil && g.used > g.leased {
		if err := outer.Reserve(g.used - g.leased); err != nil {
			return err
		}
		g.leased = g.used
	}
	return nil
}

// Check asks the table's guard.
func (g *guard) Check() error { return g.table.Check() }

// scratch is memory to aggregate in. Tables take turns, so that it stays in the
// processor's cache.
type scratch struct {
	folder aggregate.Group
	guard  guard
	series []aggregate.Series
	result encoding.Points
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// mostScratch is how many series a scratch may have held to be kept.
const mostScratch = 16 << 10

func (s *scratch) give() {
	s.guard = guard{}
	clear(s.series) // they are views of columns
	if cap(s.series) <= mostScratch {
		scratches.Put(s)
	}
}

// aggregate makes a group's points within a window anew.
func (t *Table) aggregate(s *scratch, g *group, w Window) error {
	p := t.plan
	s.series = t.members(s.series[:0], g, w)
	s.result.Reset()
	s.guard.used = 0
	q := aggregate.Query{From: p.From, To: p.To, Start: max(w.From, 0), End: w.To, Rate: p.Rate != nil}
	if err := s.folder.Aggregate(t.fn, q, s.series, &s.result); err != nil {
		return err
	}
	i, j := from(g.points.Time, w.From), after(g.points.Time, w.To)
	if err := t.Reserve(int64(s.result.Len()-(j-i)) * pointBytes); err != nil {
		return err
	}
	g.points.Time = spliced(g.points.Time, i, j, s.result.Time)
	g.points.Bits = spliced(g.points.Bits, i, j, s.result.Bits)
	g.points.Float = spliced(g.points.Float, i, j, s.result.Float)
	return nil
}
