package operator

import (
	"fmt"
	"math"
	"sort"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/window"
)

// windowDownsampler computes the values of windows that are inside the part, as soon as all of their points are
// there, and ships points of windows that reach over an end of the part: the gateway, which has those of the
// neighbouring part too, computes their values.
//
//	part    |                                    |
//	windows |   (   ]  (   ]  (   ]  (   ]     (   ]
//	        (   ]                                |
//	points  |***                                *|
type windowDownsampler struct {
	part     *scanplan.Part
	computer *window.Computer
	held     int64
}

// seriesWindows is what a part keeps of a series with windows.
type seriesWindows struct {
	next, end int   // indexes of the times that are not computed yet, and whose windows are inside the part
	headEnd   int64 // points up to it are shipped, and
	tail      int64 // those after it
	// The points that windows from next on have.
	times  []int64
	values []float64
}

// seriesWindowsBytes is about the bytes of seriesWindows without its points.
const seriesWindowsBytes = 96

func newWindowDownsampler(part *scanplan.Part) (*windowDownsampler, error) {
	c, err := window.New(part.Plan.Window)
	if err != nil {
		return nil, fmt.Errorf("operator: %w", err)
	}
	return &windowDownsampler{part: part, computer: c}, nil
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
	f.held += seriesWindowsBytes
	sp.shipped = true // a series without values has no group, so it needs no presence marker
	return s
}

func (f *windowDownsampler) add(a *arena, sp *series, row *encoding.Points) {
	s := sp.windows
	if s == nil {
		s = f.begin(sp)
		sp.windows = s
	}
	w := f.part.Plan.Window
	f.shipEdges(a, sp, row)
	if s.next == s.end {
		return
	}

	c := f.computer
	c.Reset()
	c.Add(s.times, s.values)
	c.AddPoints(*row)
	// Rows come in the order of their hours, so all points of this hour and the hours before are there.
	const hour = encoding.RowSeconds * 1000
	f.compute(a, sp, min(s.end, w.From(row.Time[0]-row.Time[0]%hour+hour)))

	before := cap(s.times)
	s.times, s.values = s.times[:0], s.values[:0]
	if s.next < s.end {
		times, values := c.After(w.At(s.next) - w.Range)
		s.times, s.values = append(s.times, times...), append(s.values, values...)
	}
	f.held += int64(cap(s.times)-before) * bucketBytes
}

// shipEdges adds to the arena those points of a row that the gateway needs.
func (f *windowDownsampler) shipEdges(a *arena, sp *series, row *encoding.Points) {
	s := sp.windows
	n := row.Len()
	head := sort.Search(n, func(i int) bool { return row.Time[i] > s.headEnd })
	tail := sort.Search(n, func(i int) bool { return row.Time[i] > s.tail }) //fault:window-edge-not-shipped TestWindows_cut
	edges := a.open()
	a.raw.AppendPoints(row.Slice(0, head))
	a.raw.AppendPoints(row.Slice(max(head, tail), n))
	a.close(sp, edges)
}

// compute adds to the arena the values of the times up to index end, of the points that the computer has.
func (f *windowDownsampler) compute(a *arena, sp *series, end int) {
	s := sp.windows
	if end <= s.next {
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
