package scanplan

import (
	"errors"
	"fmt"

	"downpour/encoding"
)

// Rollup makes a plan read a rollup table, whose rows span more than an hour or less and whose
// cells hold values of whole intervals.
type Rollup struct {
	// Layout is the table's row span and the interval of a value.
	Layout encoding.RollupLayout
	// Column holds the values that the downsampling function is applied to.
	Column encoding.RollupColumn
	// Count, for an average, is the column with the number of points in each value of Column, which
	// then has sums. A bucket's average is its sum of sums divided by its sum of counts.
	Count *encoding.RollupColumn `json:",omitempty"`
}

// Columns are the columns that the plan reads.
func (r *Rollup) Columns() []encoding.RollupColumn {
	if r.Count == nil {
		return []encoding.RollupColumn{r.Column}
	}
	return []encoding.RollupColumn{r.Column, *r.Count}
}

// String is the rollup as explain prints it.
func (r *Rollup) String() string {
	s := fmt.Sprintf("%ds in rows of %s, column %d (%s)", r.Layout.Interval, r.Layout.Span, r.Column.ID, r.Column.Name)
	if r.Count != nil {
		s += fmt.Sprintf(" and %d (%s)", r.Count.ID, r.Count.Name)
	}
	return s
}

// validate checks the layout, and that the plan is one that rollups can answer.
func (r *Rollup) validate(p *Plan) error {
	if err := r.Layout.Validate(); err != nil {
		return fmt.Errorf("scanplan: %w", err)
	}
	switch {
	case p.Downsample == nil || p.Downsample.All:
		return errors.New("scanplan: a rollup is read without a downsample interval")
	case (r.Count != nil) != (p.Downsample.Function == "avg"):
		return fmt.Errorf("scanplan: downsample function %s, want a column of counts with avg and with no other",
			p.Downsample.Function)
	case r.Count != nil && r.Count.ID == r.Column.ID:
		return fmt.Errorf("scanplan: sums and counts are both in column %d", r.Count.ID)
	}
	for _, t := range [2]int64{p.From, p.To} {
		if base := r.Layout.Span.BaseTime(t); base != t {
			return fmt.Errorf("scanplan: rows from %d to %d, want base times of rows of %s", p.From, p.To,
				r.Layout.Span)
		}
	}
	return nil
}

// RowBase returns the base time of the row that holds a time, both in seconds.
func (p *Plan) RowBase(seconds int64) int64 {
	if p.Rollup != nil {
		return p.Rollup.Layout.Span.BaseTime(seconds)
	}
	return encoding.Hour(seconds)
}

// NextRow returns the base time that follows one.
func (p *Plan) NextRow(base int64) int64 {
	if p.Rollup != nil {
		return p.Rollup.Layout.Span.Next(base)
	}
	return base + encoding.RowSeconds
}

// Rows returns the number of base times in [from, to), which are base times; of rows of
// a month or a year it is a bound.
func (p *Plan) Rows(from, to int64) int64 {
	if p.Rollup == nil {
		return (to - from) / encoding.RowSeconds
	}
	// 28 days and 365 days are the shortest; dividing by the nominal length could
	// give too few.
	switch s := p.Rollup.Layout.Span; s.Unit {
	case "n":
		return (to-from)/(28*24*encoding.RowSeconds) + 1
	case "y":
		return (to-from)/(365*24*encoding.RowSeconds) + 1
	default:
		return (to - from) / s.Alignment()
	}
}

// BucketsInRows reports whether every bucket is inside one row, so that a cut between
// rows is a cut between buckets.
func (p *Plan) BucketsInRows() bool {
	if p.Rollup == nil {
		return p.Downsample.DividesHour()
	}
	d := p.Downsample
	return !d.Calendar && p.Rollup.Layout.Span.Alignment()*1000%d.Interval == 0
}
