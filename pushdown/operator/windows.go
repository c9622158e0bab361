package operator

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/window"
	"downpour/pushdown/store"
)

// windowDownsampler computes the values of windows that are inside the part, as soon as all of their points are
// there, and ships points of windows that reach over an end of the part: the gateway, which has those of the
// neighbouring part too, computes their values.
//
//	part    |                                    |
//	windows |   (   ]  (   ]  (   ]  (   ]     (   ]
//	        (   ]                                |
//	points  |***                                *|
//
// Where the plan groups series, the part ships one series of values for each group, and the points of each series.
type windowDownsampler struct {
	part     *scanplan.Part
	computer *window.Computer
	doubles  []float64 // of the present row
	held     int64

	groups map[string]*windowGroup
	order  []*windowGroup
	key    []byte
	// Values of the present series.
	times  []int64
	values []float64
}

// windowGroup is a group of the part.
type windowGroup struct {
	id []byte // of the series that stands for it
	window.Group
}

// windowGroupBytes is about the bytes of a windowGroup without its values and its key.
const windowGroupBytes = 500

// seriesWindows is what a part keeps of a series with windows.
type seriesWindows struct {
	next, end int   // indexes of the times that are not computed yet, and whose windows are inside the part
	headEnd   int64 // points up to it are shipped, and
	tail      int64 // those after it
	// The points that windows from next on have.
	times  []int64
	values []float64
	group  *windowGroup // nil if the plan has none
}

// seriesWindowsBytes is about the bytes of seriesWindows without its points, and of the pointer to it.
const seriesWindowsBytes = 112

func newWindowDownsampler(part *scanplan.Part) (*windowDownsampler, error) {
	c, err := window.New(part.Plan.Window)
	if err != nil {
		return nil, fmt.Errorf("operator: %w", err)
	}
	f := &windowDownsampler{part: part, computer: c}
	if g := part.Plan.Window.Groups; g != nil {
		f.groups = map[string]*windowGroup{}
		err = window.CheckGroup(g.Function)
	}
	return f, err
}

// begin returns the state of a series that has its first points.
func (f *windowDownsampler) begin(sp *series) *seriesWindows {
	p := &f.part.Plan
	w := p.Window
	from, to := p.SeriesTimes(f.part.Range, sp.id)
	s := &seriesWindows{headEnd: math.MinInt64, tail: math.MaxInt64}
	s.next, s.end = w.Inside(from, to)
	// The last time in the part whose window begins before it.
	if s.next > 0 && w.At(s.next-1) >= from {
		s.headEnd = w.At(s.next - 1)
	}
	// The first time after the part.
	if s.end < w.Len() {
		s.tail = w.At(s.end) - w.Range
	}
	if f.groups != nil {
		s.group = f.groupOf(sp)
	}
	f.held += seriesWindowsBytes
	return s
}

// groupOf returns the group of a series.
func (f *windowDownsampler) groupOf(sp *series) *windowGroup {
	f.key, _ = f.part.Plan.AppendGroupKey(f.key[:0], sp.id)
	g := f.groups[string(f.key)]
	if g == nil {
		g = &windowGroup{id: slices.Clone(f.key)}
		g.Begin(f.part.Plan.Window.Groups.Function, false)
		f.groups[string(f.key)] = g
		f.order = append(f.order, g)
		f.held += windowGroupBytes + 2*int64(len(f.key))
	}
	return g
}

// finishGroups adds the values of all groups to the arena, and calls flush after each. A group that one of the spans
// stands for, because that has no other tags, is in a batch once.
func (f *windowDownsampler) finishGroups(a *arena, spans *seriesTable, flush func()) {
	for _, g := range f.order {
		sp := spans.lookUp(g.id)
		if sp == nil {
			sp = &series{id: g.id, first: -1, last: -1}
		}
		times, values := g.Values()
		a.addBuckets(sp, times, values)
		g.Group = window.Group{}
		flush()
	}
}

// addHour decodes a row, adds the values of its hour to the arena and returns the number of its points.
func (f *windowDownsampler) addHour(a *arena, sp *series, base uint32, d *encoding.RowDecoder,
	cells []store.Cell) (points int, err error) {
	var offsets []int32
	only := false // most rows have one cell, which has a faster way
	if len(cells) == 1 {
		offsets, f.doubles, only = d.OnlyCell(cells[0].Qualifier, cells[0].Value, f.doubles)
	}
	if !only {
		if err = addCells(d, base, cells); err == nil {
			offsets, f.doubles, err = d.FinishDoubles(f.doubles)
		}
		if err != nil {
			return 0, err
		}
	}
	if len(offsets) > 0 {
		f.addPoints(a, sp, int64(base)*1000, offsets)
	}
	return len(offsets), nil
}

// addPoints adds the points of an hour, whose values are f.doubles. Rows come in the order of their hours, so all
// points of this hour and the hours before are there.
func (f *windowDownsampler) addPoints(a *arena, sp *series, base int64, offsets []int32) {
	s := sp.windows
	if s == nil {
		s = f.begin(sp)
		sp.windows = s
	}
	f.shipEdges(a, sp, base, offsets)
	if s.next == s.end {
		return
	}

	c, w := f.computer, f.part.Plan.Window
	c.Reset()
	c.Add(s.times, s.values)
	c.AddHour(base, offsets, f.doubles)
	f.compute(a, sp, min(s.end, w.From(base+encoding.RowSeconds*1000)))

	before := cap(s.times)
	s.times, s.values = s.times[:0], s.values[:0]
	if s.next < s.end {
		times, values := c.After(w.At(s.next) - w.Range)
		s.times, s.values = append(s.times, times...), append(s.values, values...)
	}
	f.held += int64(cap(s.times)-before) * bucketBytes
}

// shipEdges adds to the arena those points of an hour that the gateway needs.
func (f *windowDownsampler) shipEdges(a *arena, sp *series, base int64, offsets []int32) {
	s := sp.windows
	n := len(offsets)
	if base+int64(offsets[0]) > s.headEnd && base+int64(offsets[n-1]) <= s.tail {
		return
	}
	head := sort.Search(n, func(i int) bool { return base+int64(offsets[i]) > s.headEnd })
	tail := sort.Search(n, func(i int) bool {
		return base+int64(offsets[i]) > s.tail //fault:window-edge-not-shipped TestWindows_cut
	})
	edges := a.open()
	for i := range n {
		if i < head || i >= tail {
			a.raw.Append(base+int64(offsets[i]), encoding.FloatValue(f.doubles[i]))
		}
	}
	a.close(sp, edges)
}

// compute adds to the arena the values of the times up to index end, of the points that the computer has.
func (f *windowDownsampler) compute(a *arena, sp *series, end int) {
	s := sp.windows
	if end <= s.next {
		return
	}
	if g := s.group; g != nil {
		f.times, f.values = f.computer.Append(f.times[:0], f.values[:0], s.next, end)
		s.next = end
		before := g.Bytes()
		g.AddSeries(f.times, f.values)
		f.held += g.Bytes() - before
		return
	}
	buckets := a.open()
	a.times, a.values = f.computer.Append(a.times, a.values, s.next, end)
	a.close(sp, buckets)
	s.next = end
}

// finish computes the windows after the last point.
func (f *windowDownsampler) finish(a *arena, sp *series) {
	s := sp.windows
	if s == nil || s.next == s.end {
		return
	}
	f.computer.Reset()
	f.computer.Add(s.times, s.values)
	f.compute(a, sp, s.end)
	s.times, s.values = nil, nil
}

func (f *windowDownsampler) pending() int64 { return f.held }
