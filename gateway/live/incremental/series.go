package incremental

import (
	"downpour/pushdown/operator/rate"
)

// series is one series under one salt.
type series struct {
	id    []byte
	group *group // nil if the span is kept out
	place int    // among the group's edges, if it has them
	data  bool   // it has points in the scan range, maybe outside of all buckets

	base   column // points, or buckets
	tail   tail   // the last of the buckets
	filled column // of a plan that fills: a value for each time of the grid
	rates  column // of a plan with rates
}

// last is the column that the aggregation gets.
func (t *Table) last(s *series) *column {
	switch {
	case t.plan.Rate != nil:
		return &s.rates
	case t.grid != nil:
		f := s.filled.slice(min(t.early, s.filled.len()), s.filled.len())
		return &f
	}
	return &s.base
}

// replace puts with in the place of the span's base between from and to (ms,
// half-open) and carries the difference through the stages.
func (t *Table) replace(s *series, begin, end int64, with column) error {
	lo, hi := from(s.base.Time, begin), from(s.base.Time, end)
	if with.len() == 0 && hi > lo {
		return ErrStale
	}
	n := with.len()
	head := 0
	for head < n && lo+head < hi && s.base.same(lo+head, &with, head) {
		head++
	}
	tail := 0
	for tail < n-head && lo+head < hi-tail && s.base.same(hi-tail-1, &with, n-tail-1) {
		tail++
	}
	if head+tail == n && lo+n == hi {
		return nil
	}
	old, now := s.base.slice(lo+head, hi-tail), with.slice(head, n-tail)
	w := extent(&old, &now)
	if err := t.Reserve(int64(now.len()-old.len()) * pointBytes); err != nil {
		return err
	}
	s.base.replace(lo+head, hi-tail, &now)
	if err := t.stages(s, w, lo+head, lo+n-tail); err != nil {
		return err
	}
	if s.group.outlooks != nil {
		s.group.outlooks[s.place] = t.outlook(s)
	}
	return nil
}

// extent is the time of the first and of the last point of two columns, one of
// which has points.
func extent(a, b *column) (w Window) {
	w = Window{always.To, always.From}
	for _, c := range []*column{a, b} {
		if n := c.len(); n > 0 {
			w.From, w.To = min(w.From, c.Time[0]), max(w.To, c.Time[n-1])
		}
	}
	return w
}

// stages carries a change further: the base has new points i to j, and old and
// new ones lie within w.
func (t *Table) stages(s *series, w Window, i, j int) error {
	c := &s.base
	if t.grid != nil {
		var err error
		if i, j, err = t.fill(s, w); err != nil {
			return err
		}
		c = &s.filled
		if i == j {
			return nil // behind the grid's end
		}
	}
	if t.plan.Rate != nil {
		var err error
		if i, j, err = t.rate(s, c, i, j); err != nil {
			return err
		}
	} else if t.grid != nil {
		i, j = max(i-t.early, 0), max(j-t.early, 0)
	}
	t.spread(s, i, j)
	return nil
}

// fill sets the grid's values within w from the base. The grid's times are one
// column for all spans.
func (t *Table) fill(s *series, w Window) (i, j int, err error) {
	if s.filled.Time == nil {
		if err := t.Reserve(int64(len(t.grid)) * 8); err != nil {
			return 0, 0, err
		}
		values, err := t.bucketer.Fill(nil, s.base.Time, s.base.Value)
		if err != nil {
			return 0, 0, err
		}
		s.filled = doubles(t.grid, values)
		return 0, len(t.grid), nil
	}
	i, j = from(t.grid, w.From), after(t.grid, w.To)
	b := from(s.base.Time, w.From)
	for k := i; k < j; k++ {
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

// rate makes the rates anew that points i to j of c and the one behind them
// have, and returns their places. What comes before the scan range is left out.
func (t *Table) rate(s *series, c *column, i, j int) (int, int, error) {
	begin, end := always.From, always.To // of the times to replace
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
	times, values, err := t.ratesOf(&part)
	if err != nil {
		return 0, 0, err
	}
	skip := from(times, begin)
	now := doubles(times[skip:], values[skip:])
	lo, hi := from(s.rates.Time, begin), after(s.rates.Time, end)
	if err := t.Reserve(int64(now.len()-(hi-lo)) * pointBytes); err != nil {
		return 0, 0, err
	}
	s.rates.replace(lo, hi, &now)
	return lo, lo + now.len(), nil
}

func (t *Table) ratesOf(c *column) ([]int64, []float64, error) {
	if c.Bits != nil {
		return rate.Points(t.plan.Rate, c.points(), nil, nil)
	}
	return rate.Doubles(t.plan.Rate, c.Time, c.Value, nil, nil)
}

// spread notes for the span's group that points i to j of the last column are
// new, or that points between i-1 and j are gone. A member's first rate counts at
// all times before its second.
func (t *Table) spread(s *series, i, j int) {
	c := t.last(s)
	if s.group.edges != nil {
		s.group.edges[s.place].set(c)
	}
	w := always
	if first := i == 0 || t.plan.Rate != nil && i == 1; !first {
		w.From = c.Time[i-1]
	}
	if j < c.len() {
		w.To = c.Time[j]
	}
	t.touch(s.group, w)
}
