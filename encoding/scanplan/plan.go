// Package scanplan is a query made into data that a region-side server can
// execute: UIDs only, key ranges, predicates on row keys, and what to make of
// the points. The gateway compiles it, gateway and pushdown servers execute it,
// and its versioned JSON form travels between them.
//
// A plan states obligations, not methods. A store may return more rows than
// the predicates admit; whoever decodes a row applies them again, so that a weak
// filter costs time and never correctness.
package scanplan

import (
	"fmt"

	"downpour/encoding"
)

// Version is the plan's wire version. A server refuses a plan whose version it
// does not know; it never ignores a field.
const Version = 1

// Plan is one sub-query over one metric.
type Plan struct {
	Version int
	Schema  encoding.Schema
	Table   string
	Metric  encoding.UID

	// From and To bound the base times of the rows, seconds, half-open, both
	// multiples of 3600. All iterators run over this range, which is wider
	// than the query. Source: TsdbQuery.getScanStartTimeSeconds.
	From, To int64
	// Start and End are the query's own bounds in ms, both inclusive; only the
	// answer is trimmed to them.
	Start, End int64

	// Ranges are the key ranges of the plan, one per salt bucket, ascending
	// and disjoint.
	Ranges []KeyRange
	// Tags restrict row keys, ascending by tag key.
	Tags []TagPredicate
	// Exact admits only series without other tag keys than those of Tags.
	Exact bool
	// TSUIDs, if any, list the series wanted, ascending.
	TSUIDs []encoding.UID

	Downsample *Downsample `json:",omitempty"`
	Rate       *Rate       `json:",omitempty"`
	Aggregator Aggregator
	// GroupBy lists the tag keys, ascending, whose values separate groups.
	GroupBy []encoding.UID

	// FixDuplicates lets the newest of two values of one time win, where a
	// query otherwise fails. Source: tsd.storage.fix_duplicates.
	FixDuplicates bool
	// Fix lists the known errors that are put right. It stands in the wire form
	// only where it is not empty.
	Fix Fixes `json:",omitempty"`
	// MaxBytes bounds the memory that the plan's result may take on one
	// server; 0 is no bound.
	MaxBytes int64
}

// Untrimmed is the plan that reads the same rows and answers with all their
// times. Two plans that differ in Start and End alone have the same untrimmed
// plan, and the answer of each is what lies inside its bounds of that plan's
// answer: only one bucket for the whole query is made of its bounds, and stays
// as it is.
func (p *Plan) Untrimmed() Plan {
	out := *p
	if p.Downsample == nil || !p.Downsample.All {
		out.Start, out.End = p.From*1000, p.To*1000-1
	}
	return out
}

// KeyRange is a half-open interval of row keys; an empty Stop is the table's
// end.
type KeyRange struct{ Start, Stop HexBytes }

func (r KeyRange) empty() bool {
	return len(r.Stop) != 0 && string(r.Start) >= string(r.Stop)
}

func (r KeyRange) covers(in KeyRange) bool {
	return string(r.Start) <= string(in.Start) &&
		(len(r.Stop) == 0 || len(in.Stop) != 0 && string(in.Stop) <= string(r.Stop))
}

// TagPredicate restricts one tag of a row key.
type TagPredicate struct {
	TagK encoding.UID
	Op   TagOp
	// Values are tag value UIDs, ascending; empty for Present.
	Values []encoding.UID
}

// TagOp says how a predicate judges the tag's value. Every predicate demands
// that the row has the tag key.
type TagOp uint8

const (
	Present TagOp = iota // any value
	In                   // one of Values
	NotIn                // none of Values
)

// String is the operator in a plan's text.
func (o TagOp) String() string {
	if o > NotIn {
		return fmt.Sprintf("TagOp(%d)", uint8(o))
	}
	return [...]string{"present", "in", "not in"}[o]
}

// Aggregator is the name of a function that makes one value of the values of
// all series of a group. Source: Aggregators.
type Aggregator string

// Fill says what a downsampled series has in an empty bucket.
// Source: FillPolicy.
type Fill string

const (
	FillNone Fill = "none" // no point; the aggregator interpolates
	FillNaN  Fill = "nan"  // NaN, which most aggregators skip
	FillNull Fill = "null" // NaN that is written as null
	FillZero Fill = "zero" // 0.0
)

// Downsample makes one value of each bucket of one series.
// Source: DownsamplingSpecification.
type Downsample struct {
	// All makes one bucket of the whole query, stamped with its start.
	All bool
	// Interval is the bucket width in ms; of calendar buckets the nominal one.
	Interval int64
	// Count and Unit are the interval as written, for calendar buckets: unit
	// is ms, s, m, h, d, w, n or y.
	Count int
	Unit  string
	// Calendar aligns buckets to the calendar of Zone, an IANA name.
	Calendar bool
	Zone     string
	// Function is the name of the aggregator applied inside a bucket.
	Function Aggregator
	Fill     Fill
}

// DividesHour tells whether no bucket can hold points of two rows, so that any
// cut between rows is a cut between buckets.
func (d *Downsample) DividesHour() bool {
	return d != nil && !d.All && !d.Calendar && d.Interval > 0 && encoding.RowSeconds*1000%d.Interval == 0
}

// Rate turns points into change per second. Source: RateOptions.
type Rate struct {
	Counter    bool
	CounterMax int64 // value at which a counter starts again from 0
	ResetValue int64 // a rollover rate above it counts as 0; 0 is off
	DropResets bool
}

// Validate returns an error that names the first field that no server can
// execute.
func (p *Plan) Validate() error {
	if p.Version != Version {
		return fmt.Errorf("scanplan: version %d, want %d", p.Version, Version)
	}
	if err := p.Schema.Validate(); err != nil {
		return fmt.Errorf("scanplan: %w", err)
	}
	if len(p.Metric) != p.Schema.MetricWidth {
		return fmt.Errorf("scanplan: metric %s has %d bytes, want %d", p.Metric, len(p.Metric), p.Schema.MetricWidth)
	}
	if p.From < 0 || p.From >= p.To || p.From%encoding.RowSeconds != 0 || p.To%encoding.RowSeconds != 0 {
		return fmt.Errorf("scanplan: rows from %d to %d, want ascending multiples of %d", p.From, p.To, encoding.RowSeconds)
	}
	if err := p.validateRanges(); err != nil {
		return err
	}
	if err := p.validateTags(); err != nil {
		return err
	}
	if err := p.validateSeries(); err != nil {
		return err
	}
	if err := p.Fix.validate(); err != nil {
		return err
	}
	return p.Downsample.validate()
}

func (p *Plan) validateRanges() error {
	if len(p.Ranges) == 0 {
		return fmt.Errorf("scanplan: no key ranges")
	}
	for i, r := range p.Ranges {
		if r.empty() {
			return fmt.Errorf("scanplan: key range %d from %s to %s is empty", i, r.Start, r.Stop)
		}
		if i == 0 {
			continue
		}
		if last := p.Ranges[i-1].Stop; len(last) == 0 || string(last) > string(r.Start) {
			return fmt.Errorf("scanplan: key range %d begins before range %d ends", i, i-1)
		}
	}
	return nil
}

func (p *Plan) validateTags() error {
	for i, t := range p.Tags {
		if len(t.TagK) != p.Schema.TagKWidth {
			return fmt.Errorf("scanplan: tagk %s has %d bytes, want %d", t.TagK, len(t.TagK), p.Schema.TagKWidth)
		}
		if i > 0 && string(p.Tags[i-1].TagK) >= string(t.TagK) {
			return fmt.Errorf("scanplan: tagk %s is out of order", t.TagK)
		}
		if t.Op > NotIn || t.Op == Present && len(t.Values) > 0 {
			return fmt.Errorf("scanplan: tagk %s has operator %s with %d values", t.TagK, t.Op, len(t.Values))
		}
		for j, v := range t.Values {
			if len(v) != p.Schema.TagVWidth || j > 0 && string(t.Values[j-1]) >= string(v) {
				return fmt.Errorf("scanplan: tagv %s of tagk %s is out of order or has not %d bytes", v, t.TagK, p.Schema.TagVWidth)
			}
		}
	}
	return nil
}

func (p *Plan) validateSeries() error {
	for i, t := range p.TSUIDs {
		if _, _, err := p.Schema.SplitTSUID(t); err != nil {
			return fmt.Errorf("scanplan: %w", err)
		}
		if i > 0 && string(p.TSUIDs[i-1]) >= string(t) {
			return fmt.Errorf("scanplan: TSUID %s is out of order", t)
		}
	}
	for i, k := range p.GroupBy {
		if len(k) != p.Schema.TagKWidth || i > 0 && string(p.GroupBy[i-1]) >= string(k) {
			return fmt.Errorf("scanplan: group-by tagk %s is out of order or has not %d bytes", k, p.Schema.TagKWidth)
		}
	}
	return nil
}

func (d *Downsample) validate() error {
	switch {
	case d == nil:
		return nil
	case !d.All && d.Interval <= 0:
		return fmt.Errorf("scanplan: downsample interval %d ms, want more than 0", d.Interval)
	}
	switch d.Fill {
	case "", FillNone, FillNaN, FillNull, FillZero:
		return nil
	}
	return fmt.Errorf("scanplan: fill policy %q, want none, nan, null or zero", d.Fill)
}
