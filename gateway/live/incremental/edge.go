package incremental

import (
	"math"

	"downpour/pushdown/operator/aggregate"
)

// edge holds copies of the last points of a member's output column. The edges of a group are
// adjacent in memory. Aggregating the newest points again reads them instead of every member's
// columns, which are scattered.
type edge struct {
	time     [edgePoints]int64
	bits     [edgePoints]uint64
	float    [edgePoints]bool
	n        uint8
	complete bool // the column has no other points
}

// edgePoints is how many points are needed when a series has one point more than
// the others: that one, the one before it, from which on it counts, and one more.
const edgePoints = 3

// set copies the last points of a column.
func (e *edge) set(c *column) {
	first := max(c.len()-edgePoints, 0)
	e.n, e.complete = uint8(c.len()-first), first == 0
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

// contribution returns what column.contribution would return for the column whose
// last points e holds. ok is false if that needs points before those.
func (e *edge) contribution(w Window, rates bool) (s aggregate.Series, ok bool) {
	times := e.time[:e.n]
	// The point before the window counts too, and e may not have a copy of it.
	if !e.complete && (e.n == 0 || times[0] >= w.From) {
		return s, false
	}

	// The series' first two points, which rates need, are here only if all its points are.
	i, j := contributing(times, w, rates && e.complete)
	return aggregate.Series{Time: times[i:j], Bits: e.bits[i:j], Float: e.float[i:j]}, true
}

// contribution returns a view of the points that decide what a member contributes
// to its group within a window.
func (c *column) contribution(w Window, rates bool) aggregate.Series {
	i, j := contributing(c.Time, w, rates)
	return c.slice(i, j).Series
}

// contributing returns the places, half-open, of the points that matter within a
// window. On either side that is one point more than the window has, because
// interpolation between that point and the next uses its value and its type. For rates
// it is at least the first two, because the first counts at all times before the
// second.
func contributing(times []int64, w Window, rates bool) (i, j int) {
	i, j = max(indexFrom(times, w.From)-1, 0), min(indexAfter(times, w.To)+1, len(times))
	if rates && i == 0 {
		j = max(j, min(2, len(times)))
	}
	return i, max(i, j)
}

// memberSeries appends what each member of a group contributes within a window, in
// span order. The result holds views of edges and columns.
func (t *View) memberSeries(dst []aggregate.Series, g *group, w Window) []aggregate.Series {
	// A plan that fills has no edges: its columns end with the grid, not with the
	// newest points.
	if g.edges == nil && t.grid == nil {
		t.makeEdges(g)
	}

	rates := t.plan.Rate != nil
	for i, s := range g.members {
		var part aggregate.Series
		ok := false
		if g.edges != nil {
			part, ok = g.edges[i].contribution(w, rates)
		}
		if !ok { // the window reaches back before the few points of the edge, or there is none
			part = t.output(s).contribution(w, rates)
		}
		if len(part.Time) > 0 {
			dst = append(dst, part)
		}
	}
	return dst
}

// makeEdges makes the edges of a group's members, and sets each member's place among them.
func (t *View) makeEdges(g *group) {
	g.edges = make([]edge, len(g.members))
	for i, s := range g.members {
		s.index = i
		g.edges[i].set(t.output(s))
	}
}
