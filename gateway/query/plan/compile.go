// Package plan makes scan plans of queries. It is pure: names come in
// resolved, and out goes a plan of UIDs, beside the filters that only names can
// decide. The steps for one sub-query are
//
//	NeedsOf   which names to look up, and which values to list
//	(gateway/uid looks them up)
//	Compile   the plan, or the error that the first unknown name is
//
// What a plan cannot say stays behind as a PostFilter, to be applied to the
// names of each series once, before it joins its group.
// Source: TsdbQuery.configureFromQuery, findGroupBys, createAndSetFilter.
package plan

import (
	"bytes"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
)

// DefaultExpansionLimit is the default of tsd.query.filter.expansion_limit.
const DefaultExpansionLimit = 4096

// Options are what a plan depends on beside its query.
type Options struct {
	Schema encoding.Schema
	Table  string // the data table
	// FixDuplicates goes into the plan. Source: tsd.storage.fix_duplicates.
	FixDuplicates bool
	// SkipUnresolved leaves out literal tag values that have no UID, which
	// otherwise fail the query. Source: tsd.query.skip_unresolved_tagvs.
	SkipUnresolved bool
	// ExpansionLimit bounds the tag values that one filter may become; beyond
	// it the filter is applied to names. It also bounds how many names are
	// listed to find them. 0 is DefaultExpansionLimit.
	// Source: tsd.query.filter.expansion_limit.
	ExpansionLimit int
	// MaxFilled bounds the buckets that a fill policy makes for each series; 0
	// is no bound. Without fill the points themselves are the bound.
	MaxFilled int64
	// MaxBytes goes into the plan: memory of the result on one server.
	MaxBytes int64
}

func (o *Options) limit() int {
	if o.ExpansionLimit > 0 {
		return o.ExpansionLimit
	}
	return DefaultExpansionLimit
}

// Compiled is one sub-query, ready to be executed.
type Compiled struct {
	Plan *scanplan.Plan
	// PostFilter is what remains to be asked of names, nil for nothing. With
	// it parts must return series, not groups.
	PostFilter *PostFilter
	// FilterTagKs are the UIDs of the filters' keys, ascending, for
	// query.SubQuery.FilterTagKs.
	FilterTagKs []encoding.UID
	// Nothing says why no row can match, "" if one can. The plan then admits
	// none; executing it is allowed and useless.
	Nothing string
}

// Compile compiles sub-query i of q. Errors are *query.Error, in the order in
// which OpenTSDB reports them: names (metric, then filter by filter), then what
// fails at run time, then limits.
func Compile(q *query.Query, i int, names Names, opt Options) (*Compiled, error) {
	sub := &q.Queries[i]
	c := &compiler{query: q, sub: sub, names: names, opt: opt, out: &Compiled{Plan: newPlan(q, sub, opt)}}
	resolve := c.byMetric
	if len(sub.TSUIDs) > 0 {
		resolve = c.byTSUID
	}
	if err := resolve(); err != nil {
		return nil, err
	}
	if sub.RunError != nil {
		return nil, sub.RunError
	}
	if err := c.limits(); err != nil {
		return nil, err
	}
	if sub.Histogram() {
		c.out.Nothing = "a plain metric has no histograms"
	}
	c.finish()
	return c.out, nil
}

func newPlan(q *query.Query, sub *query.SubQuery, opt Options) *scanplan.Plan {
	p := &scanplan.Plan{
		Version: scanplan.Version, Schema: opt.Schema, Table: opt.Table,
		Start: q.Start, End: q.End, Rate: sub.PlanRate(), Aggregator: scanplan.Aggregator(sub.Aggregator),
		FixDuplicates: opt.FixDuplicates, Fix: q.Fix.Plan(), MaxBytes: opt.MaxBytes,
	}
	if sub.Downsample != nil {
		d := *sub.Downsample
		p.Downsample = &d
	}
	p.From, p.To = ScanRange(q.Start, q.End, p.Downsample)
	return p
}

// compiler compiles one sub-query.
type compiler struct {
	query *query.Query
	sub   *query.SubQuery
	names Names
	opt   Options
	out   *Compiled
}

// finish adds what depends on the metric, and makes sure that a plan for
// nothing admits nothing.
func (c *compiler) finish() {
	p := c.out.Plan
	p.Ranges = keyRanges(p.Schema, p.Metric, p.From, p.To)
	for _, t := range p.Tags {
		if t.Op == scanplan.In && len(t.Values) == 0 && c.out.Nothing == "" {
			c.out.Nothing = fmt.Sprintf("no value of tag %s is admitted", t.TagK)
		}
	}
	if c.out.Nothing != "" {
		c.out.admitNone()
	}
}

// admitNone makes the plan one for nothing: In without values admits none.
func (c *Compiled) admitNone() {
	none := make(encoding.UID, c.Plan.Schema.TagKWidth)
	c.Plan.Tags, c.Plan.TSUIDs = []scanplan.TagPredicate{{TagK: none, Op: scanplan.In}}, nil
}

// Restrict leaves only some of the plan's TSUIDs, ascending, in it.
func (c *Compiled) Restrict(tsuids []encoding.UID) {
	if c.Plan.TSUIDs = tsuids; len(tsuids) == 0 {
		c.Nothing = "no TSUID passes the filters"
		c.admitNone()
	}
}

// limits refuses what would fill memory before any row is read.
func (c *compiler) limits() error {
	p := c.out.Plan
	d := p.Downsample
	if d == nil || d.All || d.Fill == scanplan.FillNone || c.opt.MaxFilled <= 0 {
		return nil
	}
	if n := (p.End-p.Start)/d.Interval + 1; n > c.opt.MaxFilled {
		return query.TooMuch("Downsampling %s over this time fills %d buckets for each series, at most %d", d, n, c.opt.MaxFilled)
	}
	return nil
}

// byMetric resolves a metric and its filters.
func (c *compiler) byMetric() error {
	if c.names.Metric == nil {
		return query.UnknownName(encoding.UIDMetric, c.sub.Metric)
	}
	c.out.Plan.Metric = c.names.Metric
	states, err := c.resolveFilters()
	if err != nil {
		return err
	}
	keys := arrange(states, c.opt.limit())
	if c.query.Fix.Has(query.FixFilters) {
		keys = intersect(states)
	}
	for _, k := range keys {
		c.out.FilterTagKs = append(c.out.FilterTagKs, k.tagk)
		c.out.Plan.Tags = append(c.out.Plan.Tags, c.predicate(k))
		if k.groupBy && c.sub.Aggregator != "none" {
			c.out.Plan.GroupBy = append(c.out.Plan.GroupBy, k.tagk)
		}
	}
	c.out.Plan.Exact = c.sub.ExplicitTags && len(keys) > 0
	return nil
}

// keyRanges are the rows of a metric from one base time to another, a range for
// each salt bucket. Source: TsdbQuery.getScanner, SaltScanner.
func keyRanges(s encoding.Schema, metric encoding.UID, from, to int64) []scanplan.KeyRange {
	ranges := make([]scanplan.KeyRange, 0, s.Buckets())
	for b := range s.Buckets() {
		r := scanplan.KeyRange{Start: s.AppendRangeKey(nil, b, metric, uint32(from))}
		if to > maxBaseTime {
			head := len(r.Start) - encoding.BaseTimeWidth
			r.Stop = encoding.PrefixEnd(r.Start[:head])
		} else {
			r.Stop = s.AppendRangeKey(nil, b, metric, uint32(to))
		}
		ranges = append(ranges, r)
	}
	return ranges
}

// sortUIDs sorts UIDs and removes doubles.
func sortUIDs(uids []encoding.UID) []encoding.UID {
	slices.SortFunc(uids, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
	return slices.CompactFunc(uids, func(a, b encoding.UID) bool { return bytes.Equal(a, b) })
}
