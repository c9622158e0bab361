// Package scanplan describes what one sub-query reads, in a form that a server next to
// the region servers can execute: key ranges, predicates on row keys, and what to
// compute from the points. It has UIDs and no names. The gateway compiles a plan, the
// gateway and pushdown servers execute it, and its versioned JSON form travels between
// them.
//
// A plan says what must be read, not how. A store may return more rows than the predicates admit;
// the decoder applies them again, so a weak filter costs time and never correctness.
package scanplan

import (
	"fmt"
	"math"
	"slices"

	"downpour/encoding"
)

// Version is the plan's wire version. A server refuses a plan with a version or a
// field that it does not know.
const Version = 1

// Plan is the scan plan of one sub-query, which is over one metric.
type Plan struct {
	Version int
	Schema  encoding.Schema
	Table   string
	Metric  encoding.UID

	// From and To are the scan range: the base times of the rows, in seconds,
	// half-open, both multiples of 3600. All computation runs over this range, which
	// is wider than the query. Source: TsdbQuery.getScanStartTimeSeconds.
	From, To int64
	// Start and End are the bounds of the query in ms, both inclusive. Only the
	// answer is trimmed to them.
	Start, End int64

	// Ranges are the key ranges of the plan, one for each salt bucket, ascending
	// and disjoint.
	Ranges []KeyRange
	// Tags are predicates on row keys, ascending by tag key.
	Tags []TagPredicate
	// Exact admits only series that have no other tag keys than those of Tags.
	Exact bool
	// TSUIDs, if there are any, are the only series admitted, ascending.
	TSUIDs []encoding.UID

	// Histograms, if set, has the plan read histograms and no points.
	Histograms *Histograms `json:",omitempty"`

	Downsample *Downsample `json:",omitempty"`
	// Rollup is set for a plan that reads a rollup table.
	Rollup *Rollup `json:",omitempty"`
	Rate   *Rate   `json:",omitempty"`
	// Window is set for a plan of windows of points, which computes nothing else.
	Window     *Window `json:",omitempty"`
	Aggregator Aggregator
	// GroupBy are the tag keys, ascending, whose values separate groups.
	GroupBy []encoding.UID

	// FixDuplicates keeps the newest of different values at one time. Without it such a
	// query fails. Source: tsd.storage.fix_duplicates.
	FixDuplicates bool
	// Fix is the set of OpenTSDB's errors that are corrected. The wire form has it
	// only if it is not empty.
	Fix Fixes `json:",omitempty"`
	// SplitOffHour makes a part first read its off-hour rows, whose base time is not a full hour, and
	// split them into rows of full hours. Without it a part fails at such a row. The wire form has it,
	// as Straight, only if it is set.
	SplitOffHour bool `json:"Straight,omitempty"`
	// MaxBytes bounds the memory that the result of a part may take where it is executed, and that of all
	// parts together in the gateway; 0 is no bound. What is read has another bound, see operator.Budget.
	MaxBytes int64
}

// Untrimmed returns the plan that reads the same rows and answers with all times of the
// scan range. Plans that differ in Start and End alone have the same untrimmed plan,
// and the answer of each is that plan's answer trimmed to its bounds. The exception is
// a plan with one bucket for the whole query, whose value depends on the bounds: it is
// returned unchanged.
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

// empty reports whether r has no key.
func (r KeyRange) empty() bool {
	return len(r.Stop) != 0 && string(r.Start) >= string(r.Stop)
}

// covers reports whether r has all keys of in.
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

// TagOp is the kind of values that a predicate admits. Every predicate admits only rows
// that have the tag key.
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

// Aggregator is the name of a function that computes one value from the values that
// the series of a group have at one time. Source: Aggregators.
type Aggregator string

// None is the aggregator that does not aggregate: each series is a group of its own.
const None Aggregator = "none"

// Fill is a fill policy: what a downsampled series has in an empty bucket.
// Source: FillPolicy.
type Fill string

const (
	FillNone Fill = "none" // no point; the aggregator interpolates
	FillNaN  Fill = "nan"  // NaN, which most aggregators skip
	FillNull Fill = "null" // NaN, which answers show as null
	FillZero Fill = "zero" // 0.0
)

// Fills are all fill policies.
var Fills = []Fill{FillNone, FillNaN, FillNull, FillZero}

// Value returns what a series has in an empty bucket. fills is false if it has no point there. An empty Fill is
// FillNone.
func (f Fill) Value() (v float64, fills bool) {
	switch f {
	case FillNaN, FillNull:
		return math.NaN(), true
	case FillZero:
		return 0, true
	}
	return 0, false
}

// Downsample computes one value from the points that a series has in a bucket.
// Source: DownsamplingSpecification.
type Downsample struct {
	// All makes one bucket of the whole query, stamped with its start.
	All bool
	// Interval is the width of a bucket in ms; for calendar buckets the nominal
	// width.
	Interval int64
	// Count and Unit are the interval as the query has it; calendar buckets need
	// them. Unit is ms, s, m, h, d, w, n (month) or y.
	Count int
	Unit  string
	// Calendar aligns buckets to the calendar of Zone, an IANA name.
	Calendar bool
	Zone     string
	// Function is the name of the aggregator applied inside a bucket.
	Function Aggregator
	Fill     Fill
}

// DividesHour reports whether every bucket is inside one hour, so that no bucket has
// points of two rows and a cut between rows is a cut between buckets.
func (d *Downsample) DividesHour() bool {
	return d != nil && !d.All && !d.Calendar && d.Interval > 0 && encoding.RowSeconds*1000%d.Interval == 0
}

// Rate turns points into change per second. Source: RateOptions.
type Rate struct {
	Counter    bool
	CounterMax int64 // value at which a counter starts again from 0
	ResetValue int64 // a rate above it, when a counter starts again, is taken as 0; 0 is off
	DropResets bool  // no rate when a counter starts again
}

// Validate returns an error for a plan that cannot be executed; it names the first
// field that is wrong.
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
		return fmt.Errorf("scanplan: rows from %d to %d, want ascending multiples of %d", p.From, p.To,
			encoding.RowSeconds)
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
	if err := p.validateHistograms(); err != nil {
		return err
	}

	if err := p.Downsample.validate(); err != nil {
		return err
	}
	if err := p.Window.validate(p); err != nil {
		return err
	}
	if p.Rollup != nil {
		return p.Rollup.validate(p)
	}
	return nil
}

// validateRanges checks that there are ranges, ascending and disjoint: otherwise a row
// would be read twice.
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

		// An empty stop is the table's end: no range can follow it.
		if last := p.Ranges[i-1].Stop; len(last) == 0 || string(last) > string(r.Start) {
			return fmt.Errorf("scanplan: key range %d begins before range %d ends", i, i-1)
		}
	}
	return nil
}

// validateTags checks widths and orders: predicates are evaluated by binary search.
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
				return fmt.Errorf("scanplan: tagv %s of tagk %s is out of order or has not %d bytes", v, t.TagK,
					p.Schema.TagVWidth)
			}
		}
	}
	return nil
}

// validateSeries checks TSUIDs and GroupBy.
func (p *Plan) validateSeries() error {
	for i, t := range p.TSUIDs {
		if _, _, err := p.Schema.SplitTSUID(t); err != nil {
			return fmt.Errorf("scanplan: %w", err)
		}
		if i > 0 && string(p.TSUIDs[i-1]) >= string(t) {
			return fmt.Errorf("scanplan: TSUID %s is out of order", t)
		}
	}

	return p.validateTagKeys(p.GroupBy)
}

// validateTagKeys checks the tag keys of groups.
func (p *Plan) validateTagKeys(keys []encoding.UID) error {
	for i, k := range keys {
		if len(k) != p.Schema.TagKWidth || i > 0 && string(keys[i-1]) >= string(k) {
			return fmt.Errorf("scanplan: group-by tagk %s is out of order or has not %d bytes", k, p.Schema.TagKWidth)
		}
	}
	return nil
}

// validate checks interval and fill policy; nil, no downsampling, is valid. Function, unit and zone
// are checked by their users.
func (d *Downsample) validate() error {
	switch {
	case d == nil:
		return nil
	case !d.All && d.Interval <= 0:
		return fmt.Errorf("scanplan: downsample interval %d ms, want more than 0", d.Interval)
	}

	if d.Fill != "" && !slices.Contains(Fills, d.Fill) {
		return fmt.Errorf("scanplan: fill policy %q, want one of %q", d.Fill, Fills)
	}
	return nil
}
