package merge

import (
	"fmt"
	"math"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/window"
)

// windows makes the values of a series' windows: those that parts have computed, and those of windows that reach over
// the end of a part, of the points that the parts on both sides have shipped.
type windows struct {
	merger   *Merger
	computer *window.Computer

	cut      []stretch // times whose windows reach over an end of a part, as indexes
	computed bucketColumns
	crossing bucketColumns // values at times of cut
	joined   bucketColumns

	// group has the values of the group that is made, if the plan groups series.
	group window.Group

	times  sharedTimes // of the groups that were made
	floats []bool      // all true
}

// stretch is the times [from, to) by their indexes.
type stretch struct{ from, to int }

// bucketColumns are times with their values.
type bucketColumns struct {
	time  []int64
	value []float64
}

func (b *bucketColumns) reset() { b.time, b.value = b.time[:0], b.value[:0] }

func newWindows(m *Merger) (*windows, error) {
	c, err := window.New(m.plan.Window)
	if err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	return &windows{merger: m, computer: c}, nil
}

// begin begins a group, and counts its values.
func (w *windows) begin() error {
	g := w.merger.plan.Window.Groups
	if g == nil {
		return nil
	}
	w.group.Begin(g.Function, false)
	return w.merger.account(w.bytesOfTimes())
}

// bytesNeeded returns the most that a series takes while its values are made. Grouped series take it one after the
// other.
func (w *windows) bytesNeeded(segments []*segment) (n int64) {
	if w.merger.plan.Window.Groups != nil {
		return 0
	}
	for _, s := range segments {
		n += int64(len(s.time)+s.raw.Len()) * bucketBytes
	}
	return n + w.bytesOfTimes()
}

// bytesOfTimes returns the bytes of a value at each time, as they come and as they are merged.
func (w *windows) bytesOfTimes() int64 { return int64(2*w.merger.plan.Window.Len()) * bucketBytes }

// ofSeries returns the values of a series' windows, valid until the next call. Segments are in time order. Of grouped
// series it returns nothing, and adds the values to the group: those that parts have computed are of one already.
func (w *windows) ofSeries(span []byte, segments []*segment) (s aggregate.Series, err error) {
	w.computed.reset()
	w.crossing.reset()
	w.joined.reset()
	w.computer.Reset()
	w.cut = w.cut[:0]
	lastTime, lastPoint := int64(math.MinInt64), int64(math.MinInt64)
	part := ""
	grouped := w.merger.plan.Window.Groups != nil
	for _, s := range segments {
		// A window that reaches over an end has a point on one side, which that part ships.
		if s.raw.Len() > 0 && s.part != part {
			part = s.part
			w.addCuts(w.merger.parts[part], span)
		}
		if grouped {
			lastTime = math.MinInt64 // the segment before may be of other series
		}
		if lastTime, err = ascends(lastTime, s.time); err != nil {
			return aggregate.Series{}, err
		}
		if lastPoint, err = ascends(lastPoint, s.raw.Time); err != nil {
			return aggregate.Series{}, err
		}
		w.computer.AddPoints(s.raw)
		if grouped {
			w.group.AddGroup(s.time, s.value)
			continue
		}
		w.computed.time, w.computed.value = append(w.computed.time, s.time...), append(w.computed.value, s.value...)
	}

	for _, c := range w.cut {
		w.crossing.time, w.crossing.value = w.computer.Append(w.crossing.time, w.crossing.value, c.from, c.to)
	}
	if grouped {
		w.group.AddSeries(w.crossing.time, w.crossing.value) //fault:window-crossing-not-counted TestWindows_cut
		return aggregate.Series{}, nil
	}
	if len(w.crossing.time) == 0 {
		return aggregate.Series{Time: w.computed.time, Value: w.computed.value}, nil
	}
	w.join()
	if _, err := ascends(math.MinInt64, w.joined.time); err != nil {
		return aggregate.Series{}, err
	}
	return aggregate.Series{Time: w.joined.time, Value: w.joined.value}, nil
}

// addCuts adds the times whose windows reach over the beginning or the end of what a part has of a series. Parts
// come in the order of time.
func (w *windows) addCuts(part scanplan.KeyRange, span []byte) {
	p := w.merger.plan
	for _, at := range ends(p.SeriesTimes(part, span)) {
		// The window of t has points before the cut and from it on if t-Range+1 < cut <= t.
		from, to := p.Window.From(at), p.Window.From(at-1+p.Window.Range)
		if n := len(w.cut); n > 0 {
			from = max(from, w.cut[n-1].to)
		}
		if from < to {
			w.cut = append(w.cut, stretch{from, to})
		}
	}
}

// ends returns those ends of a part that are not those of the plan.
func ends(from, to int64) []int64 {
	switch {
	case from > math.MinInt64 && to < math.MaxInt64:
		return []int64{from, to}
	case from > math.MinInt64:
		return []int64{from}
	case to < math.MaxInt64:
		return []int64{to}
	}
	return nil
}

// ascends returns the last of times, which ascend and come after the one before, or else the error.
func ascends(before int64, times []int64) (last int64, err error) {
	for _, t := range times {
		if t <= before {
			return 0, fmt.Errorf("time %d follows %d, want ascending times", t, before)
		}
		before = t
	}
	return before, nil
}

// join joins the computed values and those of crossing windows in the order of time.
func (w *windows) join() {
	a, b, out := &w.computed, &w.crossing, &w.joined
	i := 0
	for k := range b.time {
		at, _ := slices.BinarySearch(a.time[i:], b.time[k])
		out.time, out.value = append(out.time, a.time[i:i+at]...), append(out.value, a.value[i:i+at]...)
		i += at
		out.time, out.value = append(out.time, b.time[k]), append(out.value, b.value[k])
	}
	out.time, out.value = append(out.time, a.time[i:]...), append(out.value, a.value[i:]...)
}

// points sets out to the values of the only series of a group, or of grouped series. Times are mostly those of the
// series before, and all values are doubles, so most of out is shared with the points of other groups.
func (w *windows) points(series []aggregate.Series, out *encoding.Points) error {
	if w.merger.plan.Window.Groups != nil {
		times, values := w.group.Values()
		series = []aggregate.Series{{Time: times, Value: values}}
	}
	if len(series) > 1 {
		return fmt.Errorf("merge: a group of %d series with windows, want one", len(series))
	}
	for _, s := range series {
		n := len(s.Time)
		times := w.times.copyOf(s.Time, slices.Clone)
		for len(w.floats) < n {
			w.floats = append(w.floats, true)
		}
		out.Time, out.Float, out.Bits = times[:n:n], w.floats[:n:n], make([]uint64, n)
		for i, v := range s.Value {
			out.Bits[i] = math.Float64bits(v)
		}
	}
	return nil
}
