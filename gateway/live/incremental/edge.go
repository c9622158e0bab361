package incremental

import (
	"math"

	"downpour/pushdown/operator/aggregate"
)

// edge is the end of a member's last column. Those of a group lie side by side:
// what has just come is aggregated again without a look at each series' columns,
// which are all over the memory.
type edge struct {
	time  [edgePoints]int64
	bits  [edgePoints]uint64
	float [edgePoints]bool
	n     uint8
	whole bool // the column has no other points
}

// edgePoints is as many as are needed when a series has a point more than the
// others: that one, the one before, from which on it counts, and one more.
const edgePoints = 3

// set makes e the end of a column.
func (e *edge) set(c *column) {
	first := max(c.len()-edgePoints, 0)
	e.n, e.whole = uint8(c.len()-first), first == 0
	copy(e.time[:], c.Time[first:])
	if c.Bits != nil {
		copy(e.bits[:], c.Bits[first:])
		copy(e.float[:], c.Float[first:])
		return
	}
	for i, v := range c.Value[first:] {
		e.bits[i], e.float[i] = math.Float64bits(v), true
	}
}

// within is column.within of the column whose end e is, false if e does not
// reach as far back.
func (e *edge) within(w Window, rates bool) (s aggregate.Series, ok bool) {
	times := e.time[:e.n]
	if !e.whole && (e.n == 0 || times[0] >= w.From) {
		return s, false
	}
	i, j := bounds(times, w, rates && e.whole)
	return aggregate.Series{Time: times[i:j], Bits: e.bits[i:j], Float: e.float[i:j]}, true
}

// within are the points that decide what a member contributes within a window:
// of either side one point more, as the value there, and its type, reach inward;
// of rates the first two, as the first is the current one before the second.
func (c *column) within(w Window, rates bool) aggregate.Series {
	i, j := bounds(c.Time, w, rates)
	return c.slice(i, j).Series
}

func bounds(times []int64, w Window, rates bool) (i, j int) {
	i, j = max(from(times, w.From)-1, 0), min(after(times, w.To)+1, len(times))
	if rates && i == 0 {
		j = max(j, min(2, len(times)))
	}
	return i, max(i, j)
}

// members makes the series of a group's members within a window, in span order.
func (t *Table) members(dst []aggregate.Series, g *group, w Window) []aggregate.Series {
	if g.edges == nil && t.grid == nil {
		t.makeEdges(g)
	}
	rates := t.plan.Rate != nil
	for i, s := range g.members {
		var part aggregate.Series
		ok := false
		if g.edges != nil {
			part, ok = g.edges[i].within(w, rates)
		}
		if !ok {
			part = t.last(s).within(w, rates)
		}
		if len(part.Time) > 0 {
			dst = append(dst, part)
		}
	}
	return dst
}

// makeEdges makes the edges of a group's members. A plan that fills has none: the
// columns end with the grid, not with what has come.
func (t *Table) makeEdges(g *group) {
	g.edges = make([]edge, len(g.members))
	for i, s := range g.members {
		s.place = i
		g.edges[i].set(t.last(s))
	}
}
