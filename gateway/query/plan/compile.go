// Package plan compiles queries into scan plans. It is pure: names come in resolved,
// and out goes a plan of UIDs, with the filters that only names can decide. The steps
// for one sub-query are
//
//	NeedsOf   which names to look up, and which tag values to list
//	(gateway/query/engine looks them up in gateway/uid)
//	Compile   the plan, or the error for the first unknown name
//
// What a plan cannot express becomes a PostFilter, which is applied to the names of
// each series once, before the series joins its group.
// Source: TsdbQuery.configureFromQuery, findGroupBys, createAndSetFilter.
package plan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
)

// DefaultExpansionLimit is the default of tsd.query.filter.expansion_limit.
const DefaultExpansionLimit = 4096

// Options are what a plan depends on in addition to its query.
type Options struct {
	Schema encoding.Schema
	Table  string // the data table
	// FixDuplicates is copied into the plan. Source: tsd.storage.fix_duplicates.
	FixDuplicates bool
	// HistogramCodec is the codec of histograms, negative if they are not configured.
	// Source: tsd.core.histograms.config.
	HistogramCodec int
	// SkipUnresolved drops literal tag values that have no UID. Without it they fail the
	// query. Source: tsd.query.skip_unresolved_tagvs.
	SkipUnresolved bool
	// ExpansionLimit bounds the tag values into which one filter is expanded, and the
	// names that are listed to find them. A filter with more is applied to names. 0
	// means DefaultExpansionLimit. Source: tsd.query.filter.expansion_limit.
	ExpansionLimit int
	// MaxFilled bounds the buckets that a fill policy makes for each series; 0 means no
	// bound. Without fill the points themselves are the bound.
	MaxFilled int64
	// MaxBytes is copied into the plan: it bounds the memory of the result.
	MaxBytes int64
	// Rollups are what there is in addition to raw data; nil for nothing.
	Rollups *Rollups
}

func (o *Options) expansionLimit() int {
	if o.ExpansionLimit > 0 {
		return o.ExpansionLimit
	}
	return DefaultExpansionLimit
}

// Compiled is one sub-query, ready to be executed.
type Compiled struct {
	Plan *scanplan.Plan
	// PostFilter is the filter that the plan cannot express, nil for none. With it,
	// parts must return series, not partial aggregates of groups.
	PostFilter *PostFilter
	// FilterTagKs are the UIDs of the filters' keys, ascending, for
	// query.SubQuery.FilterTagKs.
	FilterTagKs []encoding.UID
	// Nothing says why no row can match, "" if one can. The plan then admits no series;
	// executing it is allowed and useless.
	Nothing string
	// Reads names the rollup interval that the plan reads, or is RawData.
	Reads string
	// ComputedRollups may take the place of raw data where they are proven to equal it, the
	// longest interval first. WhyNoComputed says why there are none; it is empty if Downpour
	// computes no rollups.
	ComputedRollups []ComputedRollup
	WhyNoComputed   string
	// MayReadRollups says that the query reads rollups, now or at a later time.
	MayReadRollups bool

	start, end   int64 // of the query, ms
	wholeSeconds bool  // of the query
	fallbacks    []source
	cut          int64  // see Cut; 0 for none
	afterCut     source // of Rest
}

// ErrUngrouped is returned for groups of windows that cannot be made where the rows are read. The same windows without
// groups can be read.
var ErrUngrouped = errors.New("windows cannot be grouped where they are read")

// Compile compiles sub-query i of q. The error is a *query.UnknownNameError, a
// *query.Error or ErrUngrouped. Of several faults it returns the one that OpenTSDB reports first: names
// (metric, then filter by filter), then what fails at run time, then limits.
func Compile(q *query.Query, i int, names Names, opt Options) (*Compiled, error) {
	sub := &q.Queries[i]
	c := &compiler{
		query: q,
		sub:   sub,
		names: names,
		opt:   opt,
		out:   &Compiled{Plan: newPlan(q, sub, opt), start: q.Start, end: q.End, wholeSeconds: q.WholeSeconds},
	}
	compileSeries := c.byMetric
	if len(sub.TSUIDs) > 0 {
		compileSeries = c.byTSUID
	}
	if err := compileSeries(); err != nil {
		return nil, err
	}

	if sub.RunError != nil {
		return nil, sub.RunError
	}
	if sub.Window != nil && sub.Window.Groups != nil && c.out.PostFilter != nil {
		return nil, fmt.Errorf("%w: its filters need the names of each series", ErrUngrouped)
	}
	sources, err := c.sources()
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if err := c.checkFill(s.downsample); err != nil {
			return nil, err
		}
	}
	if sources[0].rollup != nil {
		// Where rollups are split from raw data, this plan ends before the split.
		c.out.MayReadRollups, c.out.Plan.End = true, c.out.lastOfPlan()
	}
	c.out.readFrom(c.out.Plan, sources[0])
	c.out.Reads, c.out.fallbacks = sources[0].reads, sources[1:]

	if sub.Histogram() {
		c.readHistograms()
	}
	c.finish()
	return c.out, nil
}

// newPlan returns a plan with what depends neither on names nor on the table.
func newPlan(q *query.Query, sub *query.SubQuery, opt Options) *scanplan.Plan {
	return &scanplan.Plan{
		Version: scanplan.Version, Schema: opt.Schema,
		Start: q.Start, End: q.End, Rate: sub.PlanRate(), Window: sub.Window,
		Aggregator:    scanplan.Aggregator(sub.Aggregator),
		FixDuplicates: opt.FixDuplicates, Fix: q.Fix.Plan(), MaxBytes: opt.MaxBytes,
	}
}

// readHistograms makes the plan one of histograms. Rates, fill policies and fixes of
// points have no effect on it. Source: TsdbQuery.HistogramGroupByAndAggregateCB.
func (c *compiler) readHistograms() {
	p := c.out.Plan
	// Every negative codec means that none is configured.
	p.Histograms = &scanplan.Histograms{
		Codec:       max(scanplan.NoCodec, c.opt.HistogramCodec),
		Percentiles: c.sub.Percentiles,
		Buckets:     c.sub.ShowHistogramBuckets,
	}
	p.Rate, p.Fix, p.FixDuplicates = nil, 0, false
	if p.Downsample != nil {
		p.Downsample.Fill = scanplan.FillNone
	}
}

// compiler compiles one sub-query.
type compiler struct {
	query *query.Query
	sub   *query.SubQuery
	names Names
	opt   Options
	out   *Compiled
}

// byMetric selects series by the metric and the filters on tags.
func (c *compiler) byMetric() error {
	if c.names.Metric == nil {
		return &query.UnknownNameError{Kind: encoding.UIDMetric, Name: c.sub.Metric}
	}
	c.out.Plan.Metric = c.names.Metric

	filters, err := c.resolveFilters()
	if err != nil {
		return err
	}
	keys := filtersAsOpenTSDB(filters, c.opt.expansionLimit())
	if c.query.Fix.Contains(query.FixFilters) {
		keys = allFilters(filters)
	}

	for _, k := range keys {
		predicate, rest, err := c.splitFilters(k)
		if err != nil {
			return err
		}
		c.out.FilterTagKs = append(c.out.FilterTagKs, k.tagk)
		c.out.Plan.Tags = append(c.out.Plan.Tags, predicate)
		for _, f := range rest {
			c.addCondition(condition{tagk: k.tagk, filter: f})
		}
		if k.groupBy && c.sub.Aggregator != "none" { // with none each series is a group of its own
			c.out.Plan.GroupBy = append(c.out.Plan.GroupBy, k.tagk)
		}
	}

	// Without filters explicitTags has no effect in OpenTSDB.
	c.out.Plan.Exact = c.sub.ExplicitTags && len(keys) > 0
	return nil
}

// addCondition adds a condition to the post filter.
func (c *compiler) addCondition(cond condition) {
	if c.out.PostFilter == nil {
		c.out.PostFilter = new(PostFilter)
	}
	c.out.PostFilter.add(cond)
}

// checkFill refuses a query whose fill would take too much memory, before any row is
// read. Calendar buckets are counted by their nominal width.
func (c *compiler) checkFill(d *scanplan.Downsample) error {
	p := c.out.Plan
	if d == nil || d.All || d.Fill == scanplan.FillNone || c.opt.MaxFilled <= 0 {
		return nil
	}
	if n := (p.End-p.Start)/d.Interval + 1; n > c.opt.MaxFilled {
		return query.TooMuch("Downsampling %s over this time fills %d buckets for each series, at most %d", d, n,
			c.opt.MaxFilled)
	}
	return nil
}

// finish adds what depends on the metric, and makes sure that a plan whose Nothing is
// set admits no series.
func (c *compiler) finish() {
	p := c.out.Plan
	p.Ranges = keyRanges(p.Schema, p.Metric, p.From, p.To)
	for _, t := range p.Tags {
		if t.Op == scanplan.In && len(t.Values) == 0 && c.out.Nothing == "" {
			c.out.Nothing = fmt.Sprintf("no value of tag %s is admitted", t.TagK)
		}
	}
	if c.out.Nothing != "" {
		c.out.admitNoSeries()
	}
}

// admitNoSeries replaces the plan's predicates with one that no series satisfies: In
// without values.
func (c *Compiled) admitNoSeries() {
	anyTagK := make(encoding.UID, c.Plan.Schema.TagKWidth)
	c.Plan.Tags, c.Plan.TSUIDs = []scanplan.TagPredicate{{TagK: anyTagK, Op: scanplan.In}}, nil
}

// Restrict replaces the plan's TSUIDs with some of them, ascending. Without any the plan
// admits no series.
func (c *Compiled) Restrict(tsuids []encoding.UID) {
	c.Plan.TSUIDs = tsuids
	if len(tsuids) == 0 {
		c.Nothing = "no TSUID passes the filters"
		c.admitNoSeries()
	}
}

// keyRanges returns the rows of a metric between two base times, a range for each salt
// bucket. Source: TsdbQuery.getScanner, SaltScanner.
func keyRanges(s encoding.Schema, metric encoding.UID, from, to int64) []scanplan.KeyRange {
	ranges := make([]scanplan.KeyRange, 0, s.Buckets())
	for b := range s.Buckets() { //fault:salt-bucket-left-out TestGolden
		r := scanplan.KeyRange{Start: s.AppendRangeKey(nil, b, metric, encoding.KeyTime(from))}
		// After the last base time that four bytes hold comes the next metric.
		if to > maxBaseTime {
			head := len(r.Start) - encoding.BaseTimeWidth
			r.Stop = encoding.PrefixEnd(r.Start[:head])
		} else {
			r.Stop = s.AppendRangeKey(nil, b, metric, encoding.KeyTime(to))
		}
		ranges = append(ranges, r)
	}
	return ranges
}

// sortUIDs sorts UIDs and removes duplicates, in place.
func sortUIDs(uids []encoding.UID) []encoding.UID {
	slices.SortFunc(uids, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
	return slices.CompactFunc(uids, func(a, b encoding.UID) bool { return bytes.Equal(a, b) })
}
