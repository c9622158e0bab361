package rollup

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"downpour/encoding"
)

// ComputedColumns are the aggregators whose rollups Downpour computes.
var ComputedColumns = [...]string{"sum", "count", "min", "max"}

// ComputedIntervals returns the intervals of a configuration if we make its rollups ourselves, the
// longest first, or an error that names the first that we cannot make: intervals are counted from
// 1970, as the buckets of a query are, and no row may begin inside one. Counts are always made,
// because they show whether raw rows were deleted since.
func (c *Config) ComputedIntervals() (out []*Interval, err error) {
	if _, ok := c.ID("count"); !ok {
		return nil, fmt.Errorf("rollups: aggregationIds: got no count, want it and others of %q to make",
			ComputedColumns)
	}

	for i := range c.Intervals {
		one := &c.Intervals[i]
		if one.Default {
			continue
		}
		n, align := one.Layout.Interval, one.Layout.Span.Alignment()
		if align%n != 0 || n%encoding.RowSeconds != 0 && encoding.RowSeconds%n != 0 {
			return nil, fmt.Errorf(
				"rollups: interval %q in rows of %s: cannot be made, want one that divides %d s, "+
					"and that divides an hour or is whole hours",
				one.Name, one.Layout.Span, align)
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, errors.New("rollups: got the default interval alone, want one to make")
	}
	slices.SortStableFunc(out, func(a, b *Interval) int { return cmp.Compare(b.Layout.Interval, a.Layout.Interval) })
	return out, nil
}
