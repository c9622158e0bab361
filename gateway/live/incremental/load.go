package incremental

import (
	"fmt"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/merge"
)

// Load fills a view with everything that a plan's parts have returned.
type Load struct {
	view  *View
	parts map[*series][]partColumn
	bytes int64 // held by parts, counted as the view's
}

// partColumn holds the data of a span in one row of a batch.
type partColumn struct {
	part    string // the part's start key, for the order
	buckets column
	raw     encoding.Points
	hasData bool // see merge.HasData
}

// Load begins to fill a new view.
func (t *View) Load() *Load { return &Load{view: t, parts: map[*series][]partColumn{}} }

// Add adds batches of one part. It copies what it needs. Parts may come in any order;
// the batches of one part come in the part's order.
func (l *Load) Add(part scanplan.KeyRange, records []batch.Record) error {
	var s batch.Series
	for _, rec := range records {
		r, err := batch.NewSeriesReader(rec)
		if err != nil {
			return fmt.Errorf("incremental: cannot read a batch of part %s: %w", part.Start, err)
		}
		for i := range r.Len() {
			if err := r.At(i, &s); err != nil {
				return fmt.Errorf("incremental: cannot read row %d of a batch of part %s: %w", i, part.Start, err)
			}
			if err := l.addSeries(string(part.Start), &s); err != nil {
				return err
			}
		}
	}
	return nil
}

// addSeries copies one row of a batch.
func (l *Load) addSeries(part string, s *batch.Series) error {
	sp, err := l.view.findOrAdd(s.Span)
	if err != nil || sp.group == nil { // no group: a filter refuses the span, or it lacks a tag key
		return err
	}

	n := int64(len(s.Time)+s.Raw.Len()) * pointBytes
	if err := l.view.Reserve(n); err != nil {
		return err
	}
	l.bytes += n

	hasData := merge.HasData(s)
	if !sp.hasData && hasData {
		// Only members with points count for the group's tags.
		sp.hasData = true
		l.view.membersChanged(sp.group)
	}

	p := partColumn{part: part, hasData: hasData, buckets: doubleColumn(slices.Clone(s.Time), slices.Clone(s.Value))}
	p.raw.AppendPoints(s.Raw)
	l.parts[sp] = append(l.parts[sp], p)
	return nil
}

// checkSpans is after how many spans Finish checks the guard. It is small because each
// span may have as many buckets as the grid.
const checkSpans = 16

// Finish makes the columns of all spans. The Load must not be used afterwards.
func (l *Load) Finish() error {
	done := 0
	for sp, parts := range l.parts {
		if done++; done%checkSpans == 0 {
			if err := l.view.Check(); err != nil {
				return err
			}
		}

		// Start keys of one span's parts differ in the base time only, so their
		// order is that of time.
		slices.SortStableFunc(parts, func(a, b partColumn) int { return strings.Compare(a.part, b.part) })
		c := l.view.joinParts(parts)

		// Parts that overlap would make an answer that looks right and is wrong.
		for i := 1; i < c.len(); i++ {
			if c.Time[i] <= c.Time[i-1] {
				return fmt.Errorf(
					"incremental: cannot join the parts of span %X: time %d follows %d, want ascending times", sp.id,
					c.Time[i], c.Time[i-1])
			}
		}

		if err := l.view.replaceBase(sp, always.From, always.To, c); err != nil {
			return err
		}
		if err := l.view.initFilled(sp); err != nil {
			return err
		}
		// Also of a series without points in buckets.
		if err := l.view.checkOlder(sp); err != nil {
			return err
		}
	}

	l.release()
	return nil
}

// release drops the parts, whose points are in the columns now.
func (l *Load) release() {
	l.view.bytes -= l.bytes
	l.parts, l.bytes = nil, 0
}

// joinParts makes one base column of a span's parts, which are in order of time.
func (t *View) joinParts(parts []partColumn) column {
	if t.bucketer == nil {
		var all encoding.Points
		for _, p := range parts {
			all.AppendPoints(p.raw)
		}
		return storedColumn(all)
	}

	// A part ships whole buckets as values, and the points of buckets that its
	// ends cut: some before its buckets, some after them.
	t.bucketer.Reset()
	var values []float64
	for _, p := range parts {
		before := p.raw.Len()
		if p.buckets.len() > 0 {
			before = indexFrom(p.raw.Time, p.buckets.Time[0])
		}
		values = p.raw.AppendDoubles(values[:0])
		t.bucketer.Points(p.raw.Time[:before], values[:before])
		t.bucketer.Buckets(p.buckets.Time, p.buckets.Value)
		t.bucketer.Points(p.raw.Time[before:], values[before:])
	}

	times, buckets := t.bucketer.Finish()
	return doubleColumn(slices.Clone(times), slices.Clone(buckets))
}

// initFilled makes the filled column of a span whose points are all outside the buckets, because no
// change of its base column does.
func (t *View) initFilled(s *series) error {
	if !s.hasData || t.grid == nil || s.filled.Time != nil {
		return nil
	}

	i, j, err := t.updateFilled(s, always)
	if err == nil && t.plan.Rate != nil {
		_, _, err = t.updateRates(s, &s.filled, i, j)
	}
	t.markDirty(s.group, always)
	return err
}

// Replace applies rows that were read again. rows are their keys: for each changed span
// all rows of a unit, or none of them. records are the batches made of these rows by
// the plan, or by the plan without its downsampling. If nothing was read of a span that
// has points in the view, its rows were deleted: the error is ErrStale.
func (t *View) Replace(rows [][]byte, records []batch.Record) error {
	l := t.Load()
	defer l.release()
	// A part's key only puts parts in order. These records, of ascending rows, are in order
	// already.
	if err := l.Add(scanplan.KeyRange{}, records); err != nil {
		return err
	}

	units, err := t.unitsOf(rows)
	if err != nil {
		return err
	}
	for sp, starts := range units {
		if err := t.replaceUnits(sp, starts, l.parts[sp]); err != nil {
			return err
		}
	}
	return nil
}

// replaceUnits replaces the units of a span that begin at starts by what was read
// of them.
func (t *View) replaceUnits(sp *series, starts map[int64]bool, parts []partColumn) error {
	c := t.joinParts(parts)
	for start := range starts {
		i, j := indexFrom(c.Time, start), indexFrom(c.Time, start+t.unit)
		if err := t.replaceBase(sp, start, start+t.unit, c.slice(i, j)); err != nil {
			return err
		}
	}

	// A span without buckets may have points outside of them. It has lost its points if no row that
	// was read shows any.
	if sp.hasData && sp.base.len() == 0 && !slices.ContainsFunc(parts, func(p partColumn) bool { return p.hasData }) {
		return ErrStale
	}
	if err := t.initFilled(sp); err != nil {
		return err
	}
	if err := t.checkOlder(sp); err != nil {
		return err
	}
	t.restoreOpenBucket(sp, &c, parts)
	return nil
}

// unitsOf returns the spans of rows, and for each the starts (ms) of its rows' units. Spans without
// a group are left out.
func (t *View) unitsOf(rows [][]byte) (map[*series]map[int64]bool, error) {
	units := map[*series]map[int64]bool{}
	var id []byte
	for _, row := range rows {
		id = t.plan.Schema.AppendSpan(id[:0], row)
		sp := t.spans[string(id)]
		if sp == nil || sp.group == nil {
			continue
		}
		if units[sp] == nil {
			units[sp] = map[int64]bool{}
		}

		k, err := t.plan.Schema.ParseRowKey(row)
		if err != nil {
			return nil, err
		}
		units[sp][int64(k.BaseTime)*1000/t.unit*t.unit] = true
	}
	return units, nil
}
