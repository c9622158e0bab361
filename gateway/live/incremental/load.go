package incremental

import (
	"fmt"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
)

// Load fills a table with everything that a plan's parts found.
type Load struct {
	table  *Table
	pieces map[*series][]partColumn
	bytes  int64 // of the pieces, which count as the table's
}

// partColumn is what one row of a batch says of a span.
type partColumn struct {
	part    string
	buckets column
	raw     encoding.Points
	data    bool // there are points
}

// Load begins to fill a new table.
func (t *Table) Load() *Load { return &Load{table: t, pieces: map[*series][]partColumn{}} }

// Add takes batches of a part as the executor's sink gets them.
func (l *Load) Add(part scanplan.KeyRange, records []batch.Record) error {
	var s batch.Series
	for _, rec := range records {
		r, err := batch.NewSeriesReader(rec)
		if err != nil {
			return fmt.Errorf("standing: %w", err)
		}
		for i := range r.Len() {
			if err := r.At(i, &s); err != nil {
				return fmt.Errorf("standing: %w", err)
			}
			if err := l.addSeries(string(part.Start), &s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Load) addSeries(part string, s *batch.Series) error {
	sp, err := l.table.find(s.Span)
	if err != nil || sp.group == nil {
		return err
	}
	n := int64(len(s.Time)+s.Raw.Len()) * pointBytes
	if err := l.table.Reserve(n); err != nil {
		return err
	}
	l.bytes += n
	if !sp.data && hasData(s) {
		sp.data = true
		l.table.described(sp.group)
	}
	p := partColumn{part: part, data: hasData(s), buckets: doubles(slices.Clone(s.Time), slices.Clone(s.Value))}
	p.raw.AppendPoints(s.Raw)
	l.pieces[sp] = append(l.pieces[sp], p)
	return nil
}

// hasData tells whether a row of a batch speaks of points: a row of annotations
// alone does not.
func hasData(s *batch.Series) bool {
	return len(s.Time) > 0 || s.Raw.Len() > 0 || len(s.Notes) == 0
}

// checkSpans is after how many spans it is asked whether to go on: each may have
// as many buckets as a grid.
const checkSpans = 16

// Finish makes the columns of all spans.
func (l *Load) Finish() error {
	done := 0
	for sp, pieces := range l.pieces {
		if done++; done%checkSpans == 0 {
			if err := l.table.Check(); err != nil {
				return err
			}
		}
		slices.SortStableFunc(pieces, func(a, b partColumn) int { return strings.Compare(a.part, b.part) })
		c := l.table.joined(pieces)
		for i := 1; i < c.len(); i++ {
			if c.Time[i] <= c.Time[i-1] {
				return fmt.Errorf("standing: time %d follows %d, want ascending times", c.Time[i], c.Time[i-1])
			}
		}
		if err := l.table.replace(sp, always.From, always.To, c); err != nil {
			return err
		}
		if err := l.table.begin(sp); err != nil {
			return err
		}
	}
	l.drop()
	return nil
}

// drop forgets the pieces, once they are in the columns.
func (l *Load) drop() {
	l.table.bytes -= l.bytes
	l.pieces, l.bytes = nil, 0
}

// joined makes one column of pieces in order of time.
func (t *Table) joined(pieces []partColumn) column {
	if t.bucketer == nil {
		var all encoding.Points
		for _, p := range pieces {
			all.AppendPoints(p.raw)
		}
		return stored(all)
	}
	t.bucketer.Reset()
	var values []float64
	for _, p := range pieces {
		before := p.raw.Len()
		if p.buckets.len() > 0 {
			before = from(p.raw.Time, p.buckets.Time[0])
		}
		values = p.raw.AppendDoubles(values[:0])
		t.bucketer.Points(p.raw.Time[:before], values[:before])
		t.bucketer.Buckets(p.buckets.Time, p.buckets.Value)
		t.bucketer.Points(p.raw.Time[before:], values[before:])
	}
	times, buckets := t.bucketer.Finish()
	return doubles(slices.Clone(times), slices.Clone(buckets))
}

// begin gives a span that has points and no buckets its column of fill values.
func (t *Table) begin(s *series) error {
	if !s.data || t.grid == nil || s.filled.Time != nil {
		return nil
	}
	i, j, err := t.fill(s, always)
	if err == nil && t.plan.Rate != nil {
		_, _, err = t.rate(s, &s.filled, i, j)
	}
	t.touch(s.group, always)
	return err
}

// Replace takes in what was read again: batches of the plan, or of it without
// its downsampling, made of the rows of whole units, those of rows (all rows of a
// unit of a span, or none). A span of which nothing came although the table knows
// it has lost its rows: ErrStale.
func (t *Table) Replace(rows [][]byte, records []batch.Record) error {
	l := t.Load()
	defer l.drop()
	if err := l.Add(scanplan.KeyRange{}, records); err != nil {
		return err
	}
	units, err := t.units(rows)
	if err != nil {
		return err
	}
	for sp, starts := range units {
		if err := t.replaceUnits(sp, starts, l.pieces[sp]); err != nil {
			return err
		}
	}
	return nil
}

// replaceUnits replaces the given units of a span by what was read of them.
func (t *Table) replaceUnits(sp *series, starts map[int64]bool, pieces []partColumn) error {
	c := t.joined(pieces)
	for start := range starts {
		i, j := from(c.Time, start), from(c.Time, start+t.unit)
		part := c.slice(i, j)
		if err := t.replace(sp, start, start+t.unit, part); err != nil {
			return err
		}
	}
	if sp.data && sp.base.len() == 0 && !slices.ContainsFunc(pieces, func(p partColumn) bool { return p.data }) {
		return ErrStale // nothing says that there are points any more
	}
	if err := t.begin(sp); err != nil {
		return err
	}
	t.keepTail(sp, &c, pieces)
	return nil
}

// units finds the spans of rows and the starts of the units that they lie in.
func (t *Table) units(rows [][]byte) (map[*series]map[int64]bool, error) {
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
