package plan

import (
	"fmt"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/pushdown/rollup"
)

// ComputedRollup is a table of computed rollups, those that Downpour makes of raw rows itself, from which a sub-query
// could be answered as from raw data: each of its buckets consists of whole intervals, and the values of these add up
// to that of the bucket.
type ComputedRollup struct {
	Interval *rollup.Interval
	// Align is a time in s. The borders between rollups and raw data are multiples of it:
	// they lie between buckets and between raw rows.
	Align int64

	rollup     scanplan.Rollup
	downsample scanplan.Downsample
}

// exactOver are the downsampling functions whose value over intervals has the bits of that
// over points. Sums, and averages of sums, do if a bucket is one interval.
var exactOver = map[scanplan.Aggregator]bool{"min": true, "max": true, "mimmin": true, "mimmax": true, "count": true}

// computedFunctions are the downsampling functions that can be computed from rollups.
var computedFunctions = map[scanplan.Aggregator]bool{"sum": true, "zimsum": true, "avg": true, "min": true, "max": true,
	"mimmin": true, "mimmax": true, "count": true}

// computedRollups returns the rollups that may take the place of raw data, the longest interval
// first, or why there are none.
func (c *compiler) computedRollups() (out []ComputedRollup, why string) {
	d := c.sub.Downsample
	switch {
	case c.sub.Histogram():
		return nil, "histograms are not rolled up"
	case c.sub.RollupUsage == query.RollupRaw:
		return nil, "the query asks for raw data"
	case d == nil:
		return nil, "nothing is downsampled"
	case d.All:
		return nil, "one bucket of the whole query may begin anywhere"
	case d.Calendar:
		return nil, "calendar buckets depend on the first point of each series"
	case !computedFunctions[d.Function]:
		return nil, fmt.Sprintf("%s cannot be made of sums, counts, minima and maxima", printed(d.Function))
	}

	why = fmt.Sprintf("no interval that is rolled up divides %d ms", d.Interval)
	columns, err := columnsOf(c.opt.Rollups.Config, d.Function)
	if err != nil {
		return nil, err.Error()
	}
	for _, i := range c.opt.Rollups.ComputedIntervals {
		width := i.Layout.Interval * 1000
		switch {
		case d.Interval%width != 0:
			continue
		case c.query.Mode == "strict" && d.Interval != width && !exactOver[d.Function]:
			why = "mode=strict, and sums of sums round in another order"
			continue
		}
		out = append(out, ComputedRollup{
			Interval:   i,
			Align:      multiple(d.Interval/1000, encoding.RowSeconds),
			downsample: *columns.downsample(d),
			rollup:     scanplan.Rollup{Layout: i.Layout, Column: columns.value, Count: columns.count},
		})
	}
	if len(out) > 0 {
		why = ""
	}
	return out, why
}

// multiple returns the least common multiple.
func multiple(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// PlanBetween returns the plan that reads rollups in place of the rows of p, a plan of raw
// data, from from to to, base times in s that are multiples of Align. Its rows may hold
// values of other times, too.
func (m *ComputedRollup) PlanBetween(p *scanplan.Plan, from, to int64) *scanplan.Plan {
	out := *p
	downsample, rollup := m.downsample, m.rollup
	span := rollup.Layout.Span
	out.Table, out.Downsample, out.Rollup = m.Interval.Table, &downsample, &rollup
	out.From, out.To = span.BaseTime(from), span.Next(span.BaseTime(to-1))
	out.Ranges = keyRanges(out.Schema, out.Metric, out.From, out.To)
	out = out.Untrimmed()
	return &out
}
