package plan

import (
	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/pushdown/operator/downsample"
	"downpour/pushdown/rollup"
)

// Rollups are what the choice of a table depends on.
type Rollups struct {
	Config *rollup.Config
	// TagKey is the tag that distinguishes pre-aggregates, and RawValue its value where data
	// is not aggregated. Source: tsd.rollups.agg_tag_key, tsd.rollups.raw_agg_tag_value.
	TagKey, RawValue string
	// Split reads raw data where a rollup may not be there yet. Now is the time of that, in
	// ms. Source: tsd.rollups.split_query.enable.
	Split bool
	Now   int64
	// Computed says that Downpour computes the rollups of series, and nobody else writes any: a query
	// then reads raw data, and rollups only where they are proven to equal it. They have
	// ComputedIntervals.
	Computed          bool
	ComputedIntervals []*rollup.Interval
}

// RawData is what a query that reads no rollup names as its table; see Compiled.Reads.
const RawData = "raw"

// source is one way to answer a sub-query: a table, and what the plan makes of its rows.
type source struct {
	reads      string // name of the interval, or RawData
	table      string
	rollup     *scanplan.Rollup
	downsample *scanplan.Downsample
}

// sources returns where a sub-query looks for its data, in the order in which it does: it
// goes on while the answer is empty. There is at least one. The error is a *query.Error.
// Source: TsdbQuery.transformDownSamplerToRollupQuery, FallbackRollupOnEmptyResult.
func (c *compiler) sources() ([]source, error) {
	raw := source{reads: RawData, table: c.opt.Table, downsample: c.sub.Downsample}
	r := c.opt.Rollups
	if r == nil {
		return []source{raw}, nil
	}

	preAggregates := c.wantsPreAggregates()
	if preAggregates {
		raw.table = r.Config.Raw().PreTable
	} else if r.Computed {
		c.out.ComputedRollups, c.out.WhyNoComputed = c.computedRollups()
		return []source{raw}, nil
	}
	matching := c.matchingIntervals()
	// The default interval is that of raw data.
	if len(matching) == 0 || matching[0].Default {
		return []source{raw}, nil
	}

	columns, err := columnsOf(r.Config, c.sub.Downsample.Function)
	if err != nil {
		return nil, err
	}
	rollupOf := func(i *rollup.Interval) source {
		s := source{reads: i.Name, table: i.Table, downsample: columns.downsample(c.sub.Downsample)}
		if preAggregates {
			s.table = i.PreTable
		}
		s.rollup = &scanplan.Rollup{Layout: i.Layout, Column: columns.value, Count: columns.count}
		return s
	}
	// As in OpenTSDB, raw data that is read after a table without an answer is downsampled to the interval of that
	// table, not to the one of the query.
	rawAfter := func(i *rollup.Interval) source {
		s := raw
		s.downsample = &scanplan.Downsample{
			Interval: i.Layout.Interval * 1000,
			Count:    int(i.Layout.Interval),
			Unit:     "s",
			Function: columns.function,
			Fill:     c.sub.Downsample.Fill,
		}
		return s
	}

	// A cut that is not after the query's start leaves nothing to read from rollups.
	c.splitAt(matching[0])
	if c.out.cut > 0 && c.out.cut <= c.query.Start {
		return []source{raw}, nil
	}
	c.out.afterCut = raw

	out := []source{rollupOf(matching[0])}
	switch c.sub.RollupUsage {
	case query.RollupFallbackRaw:
		out = append(out, rawAfter(matching[0]))
	case query.RollupFallback:
		for i, next := range matching[1:] {
			if next.Default {
				return append(out, rawAfter(matching[i])), nil // matching[i] is the one before next
			}
			out = append(out, rollupOf(next))
		}
	}
	return out, nil
}

// wantsPreAggregates reports whether the sub-query reads pre-aggregates: it says so, or it
// asks for a value of their tag. Source: TsdbQuery.configureFromQuery, resolveTagFilters.
func (c *compiler) wantsPreAggregates() bool {
	if c.sub.PreAggregate {
		return true
	}
	if len(c.sub.TSUIDs) > 0 {
		return false // OpenTSDB sees the tag when it resolves filters, and resolves none here
	}
	for i := range c.sub.Filters {
		f := &c.sub.Filters[i]
		isLiteral := f.Type == query.LiteralOr || f.Type == query.ILiteralOr
		if f.TagK == c.opt.Rollups.TagKey && isLiteral && f.Text != c.opt.Rollups.RawValue {
			return true
		}
	}
	return false
}

// matchingIntervals returns the intervals that can answer the sub-query, the longest first.
// OpenTSDB cuts off a fraction of a second; here such an interval reads raw data, because
// no rollup divides it.
func (c *compiler) matchingIntervals() []*rollup.Interval {
	d := c.sub.Downsample
	// Histograms are never rolled up; their rows are those of raw data.
	if c.sub.Histogram() {
		return nil
	}
	if d == nil || d.All || c.sub.RollupUsage == query.RollupRaw || d.Interval < 1000 || d.Interval%1000 != 0 {
		return nil
	}
	return c.opt.Rollups.Config.Matching(d.Interval / 1000)
}

// splitAt sets where raw data takes the place of rollups of an interval: at the start of the
// bucket in which the time lies since when a rollup may be late, so that no bucket is made
// of both. (OpenTSDB cuts at that time itself, and a bucket may be in an answer twice.)
// Source: TsdbQuery.needsSplitting, split.
func (c *compiler) splitAt(i *rollup.Interval) {
	r, d := c.opt.Rollups, c.sub.Downsample
	sure := r.Now - i.Delay*1000
	if !r.Split || i.Delay == 0 || c.query.End <= sure {
		return
	}

	// Said even if the cut leaves this query raw data alone: asked later, it reads rollups.
	c.out.MayReadRollups = true
	// A downsampling that is not known has been refused by now.
	if b, err := downsample.New(d, 0, maxBaseTime, c.query.Start, c.query.End); err == nil {
		c.out.cut = max(b.BucketStart(max(sure, 0)), 1) // 0 would be no cut
	}
}

// columns are the columns that hold what a downsampling function needs.
type columns struct {
	function scanplan.Aggregator // whose rollups they are
	value    encoding.RollupColumn
	count    *encoding.RollupColumn // with an average
}

// storedAs are functions whose rollups are those of another. Source: RollupQuery.
var storedAs = map[scanplan.Aggregator]scanplan.Aggregator{"zimsum": "sum", "mimmax": "max", "mimmin": "min"}

// columnsOf returns the columns for a downsampling function. An average is made of sums
// and counts, whether averages are stored or not.
func columnsOf(config *rollup.Config, f scanplan.Aggregator) (out columns, err error) {
	out.function = f
	if other, ok := storedAs[f]; ok {
		out.function = other
	}
	if f != "avg" {
		out.value, err = column(config, out.function)
		return out, err
	}

	if out.value, err = column(config, "sum"); err != nil {
		return out, err
	}
	count, err := column(config, "count")
	out.count = &count
	return out, err
}

// RunError is a fault of a sub-query that OpenTSDB finds only when it runs the sub-query:
// after it has found the names of all of them.
type RunError struct{ err error }

// Error implements error.
func (e *RunError) Error() string { return e.err.Error() }

// Unwrap returns the *query.Error.
func (e *RunError) Unwrap() error { return e.err }

func column(config *rollup.Config, f scanplan.Aggregator) (encoding.RollupColumn, error) {
	id, ok := config.ID(string(f))
	if !ok {
		return encoding.RollupColumn{}, &RunError{query.Bad("No ID found mapping to aggregator: %s", printed(f))}
	}
	return encoding.RollupColumn{ID: id, Name: string(f)}, nil
}

// printed returns the name that OpenTSDB prints of a function. Source: Aggregators.
func printed(f scanplan.Aggregator) string {
	switch f {
	case "mult":
		return "multiply"
	case "none":
		return "raw"
	}
	return string(f)
}

// downsample returns the downsampling of rollups: the requested one, but that the count
// of points is the sum of stored counts.
func (c columns) downsample(asked *scanplan.Downsample) *scanplan.Downsample {
	d := *asked
	if d.Function == "count" {
		d.Function = "sum"
	}
	return &d
}

// readFrom makes a plan read a source.
func (c *Compiled) readFrom(p *scanplan.Plan, s source) {
	p.Table, p.Rollup, p.Downsample = s.table, s.rollup, s.downsample
	if p.Downsample != nil {
		// A copy, because readHistograms changes it, and sub-query and source share theirs.
		d := *p.Downsample
		p.Downsample = &d
	}
	if p.Rollup == nil {
		end := p.End
		if c.wholeSeconds {
			end-- // ScanRange cuts off the fraction and adds a second: to End, not a second later
		}
		p.From, p.To = ScanRange(p.Start, end, p.Downsample)
	} else {
		p.From, p.To = rollupRange(p.Start, p.End, p.Rollup.Layout, p.Rate != nil)
	}
}

// rollupRange returns the half-open range of base times that a query from start to end
// (ms, inclusive) reads in a rollup table: from the row that holds the start, with a rate
// from the row before, to that after the end. Source: TsdbQuery.getScanStartTimeSeconds,
// getScanEndTimeSeconds; unlike there, the row that holds the end is always read.
func rollupRange(start, end int64, l encoding.RollupLayout, rate bool) (from, to int64) {
	from = min(l.Span.BaseTime(max(start/1000, 0)), l.Span.BaseTime(maxBaseTime))
	if rate && from > 0 {
		from = l.Span.BaseTime(from - 1)
	}

	last := end/1000 + 1
	// OpenTSDB adds a row's whole intervals. Where they do not fill the span, the sum may still
	// lie in the row that holds the end, and Next is the greater one.
	to = max(l.Span.BaseTime(last+l.Interval*l.Intervals()), l.Span.Next(l.Span.BaseTime(last)))
	return from, min(to, l.Span.Next(l.Span.BaseTime(maxBaseTime)))
}

// Rest returns what to execute for the times from Cut on, nil for nothing: Plan's groups then
// count before Cut alone.
func (c *Compiled) Rest() *Compiled {
	if c.cut == 0 || c.Plan.Rollup == nil {
		return nil
	}

	rest, p := *c, *c.Plan
	p.Start, p.End = c.cut, c.end
	// The rate of the first bucket needs the one before it.
	if p.Rate != nil {
		p.Start -= c.afterCut.downsample.Interval
	}
	c.readFrom(&p, c.afterCut)
	p.Start = c.cut
	p.Ranges = keyRanges(p.Schema, p.Metric, p.From, p.To)
	rest.Plan, rest.Reads, rest.fallbacks, rest.cut = &p, RawData, nil, 0
	return &rest
}

// Cut is the time in ms from which on the answer is that of Rest.
func (c *Compiled) Cut() int64 { return c.cut }

// Fallback returns what to execute if c's answer has no groups, nil for nothing.
func (c *Compiled) Fallback() *Compiled {
	if len(c.fallbacks) == 0 {
		return nil
	}

	next, p := *c, *c.Plan
	// c.Plan may have been untrimmed; the caller does that again.
	p.Start, p.End = c.start, c.lastOfPlan()
	c.readFrom(&p, c.fallbacks[0])
	p.Ranges = keyRanges(p.Schema, p.Metric, p.From, p.To)
	next.Plan, next.Reads, next.fallbacks = &p, c.fallbacks[0].reads, c.fallbacks[1:]
	return &next
}

// lastOfPlan is the last time that the answer of the plan, and not that of Rest, has.
func (c *Compiled) lastOfPlan() int64 {
	if c.cut > 0 {
		return c.cut - 1
	}
	return c.end
}
