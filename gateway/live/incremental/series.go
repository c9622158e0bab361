package incremental

import (
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator/rate"
)

// series is one span: a series under one salt.
type series struct {
	id      []byte
	group   *group // nil if a filter refuses the span or it lacks a tag key
	index   int    // among the group's members; set when edges or watermarks are made
	hasData bool   // it has points in the scan range, perhaps outside of all buckets

	tail *merge.OlderMember // its part of the merged older hours; nil if they have none

	base   column     // points as stored, or buckets
	open   openBucket // the last bucket of base
	filled column     // of a plan that fills: a value for each time of the grid
	rates  column     // of a plan with rates
}

// output returns the column that the aggregation across series reads.
func (t *View) output(s *series) *column {
	switch {
	case t.plan.Rate != nil:
		return &s.rates
	case t.grid != nil:
		// The grid's lead, before the scan range, is there for rates alone.
		f := s.filled.slice(min(t.gridLead, s.filled.len()), s.filled.len())
		return &f
	}
	return &s.base
}

// replaceBase replaces the base column's points from begin to end (ms, half-open) by those of with,
// and passes the difference to the later stages. It returns ErrStale if all points would be
// removed.
func (t *View) replaceBase(s *series, begin, end int64, with column) error {
	lo, hi := indexFrom(s.base.Time, begin), indexFrom(s.base.Time, end)
	if with.len() == 0 && hi > lo {
		return ErrStale
	}

	// Most of a unit that is read again has not changed: find the equal points at both ends. Only
	// the rest is passed on.
	n := with.len()
	head := 0
	for head < n && lo+head < hi && s.base.equalAt(lo+head, &with, head) {
		head++
	}
	tail := 0
	for tail < n-head && lo+head < hi-tail && s.base.equalAt(hi-tail-1, &with, n-tail-1) {
		tail++
	}
	if head+tail == n && lo+n == hi {
		return nil
	}

	// The extent of the change is taken before base is overwritten, because old is
	// a view of it.
	old, now := s.base.slice(lo+head, hi-tail), with.slice(head, n-tail)
	changed := extent(&old, &now)
	if err := t.Reserve(int64(now.len()-old.len()) * pointBytes); err != nil {
		return err
	}
	s.base.replace(lo+head, hi-tail, &now)

	if err := t.updateStages(s, changed, lo+head, lo+n-tail); err != nil {
		return err
	}
	if s.group.watermarks != nil { // otherwise FinalBefore makes all of the group
		s.group.watermarks[s.index] = t.memberWatermark(s)
	}
	return t.checkOlder(s)
}

// extent returns the window from the first to the last point of two columns. At
// least one of them has points.
func extent(a, b *column) (w Window) {
	w = Window{always.To, always.From}
	for _, c := range []*column{a, b} {
		if n := c.len(); n > 0 {
			w.From, w.To = min(w.From, c.Time[0]), max(w.To, c.Time[n-1])
		}
	}
	return w
}

// updateStages carries a change of the base column through filling and rates. The base
// has new points i to j, half-open, and old and new ones are within w.
func (t *View) updateStages(s *series, w Window, i, j int) error {
	c := &s.base
	if t.grid != nil {
		var err error
		if i, j, err = t.updateFilled(s, w); err != nil {
			return err
		}
		c = &s.filled
		if i == j {
			return nil // the change is after the grid's end
		}
	}

	if t.plan.Rate != nil {
		var err error
		if i, j, err = t.updateRates(s, c, i, j); err != nil {
			return err
		}
	} else if t.grid != nil {
		// The output column begins after the grid's lead.
		i, j = max(i-t.gridLead, 0), max(j-t.gridLead, 0)
	}
	t.outputChanged(s, i, j)
	return nil
}

// updateFilled sets the filled column's values within w from the base column, and
// returns their places, half-open. The first call makes the whole column.
func (t *View) updateFilled(s *series, w Window) (i, j int, err error) {
	if s.filled.Time == nil {
		// Only the values are counted: all spans share the grid's times.
		if err := t.Reserve(int64(len(t.grid)) * 8); err != nil {
			return 0, 0, err
		}
		values, err := t.bucketer.Fill(nil, s.base.Time, s.base.Value)
		if err != nil {
			return 0, 0, err
		}
		s.filled = doubleColumn(t.grid, values)
		return 0, len(t.grid), nil
	}

	i, j = indexFrom(t.grid, w.From), indexAfter(t.grid, w.To)
	b := indexFrom(s.base.Time, w.From)
	for k := i; k < j; k++ {
		// A bucket outside the grid has no place in the filled column.
		for b < s.base.len() && s.base.Time[b] < t.grid[k] {
			b++
		}
		s.filled.Value[k] = t.missing
		if b < s.base.len() && s.base.Time[b] == t.grid[k] {
			s.filled.Value[k] = s.base.Value[b]
		}
	}
	return i, j, nil
}

// updateRates computes again the rates of points i to j of c and of the point that
// follows them, and returns the places of these rates, half-open. Rates of times
// before the scan range are left out.
func (t *View) updateRates(s *series, c *column, i, j int) (int, int, error) {
	// begin and end bound the times of the rates to replace. A rate needs the point
	// before it, and the point after j has a new one before it.
	begin, end := always.From, always.To
	lead := max(i-1, 0)
	if i > 0 {
		begin = c.Time[i-1] + 1
	}
	if j < c.len() {
		j++
		end = c.Time[j-1]
	}
	begin = max(begin, t.plan.From*1000)

	part := c.slice(lead, j)
	times, values, err := t.computeRates(&part)
	if err != nil {
		return 0, 0, err
	}
	// The rate at the lead was computed without the point before it: the column has the right
	// one.
	skip := indexFrom(times, begin)
	now := doubleColumn(times[skip:], values[skip:])

	lo, hi := indexFrom(s.rates.Time, begin), indexAfter(s.rates.Time, end)
	if err := t.Reserve(int64(now.len()-(hi-lo)) * pointBytes); err != nil {
		return 0, 0, err
	}
	s.rates.replace(lo, hi, &now)
	return lo, lo + now.len(), nil
}

// computeRates returns the rates of a column's points.
func (t *View) computeRates(c *column) ([]int64, []float64, error) {
	if c.Bits != nil {
		return rate.Points(t.plan.Rate, c.points(), nil, nil)
	}
	return rate.Doubles(t.plan.Rate, c.Time, c.Value, nil, nil)
}

// outputChanged marks the span's group to be aggregated again where a change of the output column
// has effects: points i to j, half-open, are new, or points between i-1 and i were removed.
func (t *View) outputChanged(s *series, i, j int) {
	c := t.output(s)
	if s.group.edges != nil { // memberSeries makes them when they are first needed
		s.group.edges[s.index].set(c)
	}

	// Interpolation reaches from the point before to the point after the change.
	// The first point has none before it, and a member's first rate counts at all
	// times before its second.
	w := always
	if first := i == 0 || t.plan.Rate != nil && i == 1; !first {
		w.From = c.Time[i-1]
	}
	if j < c.len() {
		w.To = c.Time[j]
	}
	t.markDirty(s.group, w)
}
