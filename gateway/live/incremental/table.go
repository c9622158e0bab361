// Package incremental keeps the answer of one scan plan and changes it by what
// changes in the rows, instead of making it anew. It is pure: rows come in as the
// batches that package operator makes of them, out come the windows of time in
// which groups have other points than before, with those points.
//
// It holds, for each span (a series under one salt), the columns behind each
// stage of the arithmetic, and for each group the aggregated points of all the
// scan range:
//
//	rows ──▶ base: points or buckets ──▶ filled ──▶ rates ──▶ group's points
//
// The unit in which rows are taken in is the smallest stretch of time that holds
// whole rows and whole buckets (Unit): what a unit holds is replaced as a whole,
// never added to. From there on only what differs goes further. A changed point
// changes a group from the member's point before it to the member's point after
// it, because of interpolation, the value types, and rates; those times are
// aggregated again, over all members in span order, so that the result is that of
// merging everything (package merge) to the last bit.
//
// What it does not do, see Covers, and whatever takes points away from the rows,
// is left to making the table anew.
package incremental

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/downsample"
)

// ErrStale says that a change cannot be taken in: make the table anew.
var ErrStale = errors.New("standing: rows lost points, the table must be made anew")

// Table is the standing answer of one plan. It is for one goroutine.
type Table struct {
	plan *scanplan.Plan
	keep func(span []byte) (bool, error)
	unit int64 // ms

	bucketer *downsample.Bucketer // nil without downsampling
	grid     []int64              // of a plan that fills
	early    int                  // entries of the grid before the scan range
	missing  float64

	fn       *aggregate.Function
	inBucket *aggregate.Function // of downsampling

	doubles []float64 // scratch
	grown   column    // the same

	spans  map[string]*series
	groups map[string]*group
	dirty  map[*group]struct{}
	bytes  int64
	within Bounds

	shown Window // what the answer was last trimmed to
}

// Bounds are those that a table works in.
type Bounds struct {
	// Bytes is the most that it may hold; 0 is no bound.
	Bytes int64
	// Guard is asked before it takes more, and whether to go on; nil lets it.
	Guard aggregate.Guard
}

// LimitError says that a table would take more memory than it may.
type LimitError struct{ Limit int64 }

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("standing: the table takes more than %d bytes", e.Limit)
}

// New returns an empty table for a plan that Covers accepts. keep is asked once
// for each span whether the filters on names admit it; nil admits all. Errors of
// this and of all that makes a table larger are a *LimitError and the guard's.
func New(plan *scanplan.Plan, keep func(span []byte) (bool, error), within Bounds) (*Table, error) {
	if reason := Covers(plan); reason != "" {
		return nil, fmt.Errorf("standing: plan is not covered: %s", reason)
	}
	fn, ok := aggregate.Lookup(plan.Aggregator)
	if !ok {
		return nil, fmt.Errorf("No such aggregation function: %s", plan.Aggregator)
	}
	t := &Table{plan: plan, keep: keep, fn: fn, unit: Unit(plan), within: within,
		spans: map[string]*series{}, groups: map[string]*group{}, dirty: map[*group]struct{}{}}
	t.shown = Window{plan.Start, plan.End}
	if plan.Downsample == nil {
		return t, nil
	}
	return t, t.prepareBuckets()
}

func (t *Table) prepareBuckets() (err error) {
	p := t.plan
	t.inBucket, _ = aggregate.Lookup(p.Downsample.Function)
	t.bucketer, err = downsample.New(p.Downsample, p.From, p.To, p.Start, p.End)
	if err != nil || !t.bucketer.Fills() {
		return err
	}
	if p.MaxBytes > 0 && t.bucketer.GridLen()*pointBytes > p.MaxBytes {
		return fmt.Errorf("standing: a grid of %d buckets is too large", t.bucketer.GridLen())
	}
	t.bucketer.Guarded(t)
	if t.grid, err = t.bucketer.Grid(); err != nil {
		return err
	}
	t.early = from(t.grid, p.From*1000)
	t.missing = t.bucketer.Missing()
	return nil
}

// Bytes is about the memory held.
func (t *Table) Bytes() int64 { return t.bytes }

// Within has the next changes made within another guard's bounds: that of the
// tick that they belong to.
func (t *Table) Within(g aggregate.Guard) { t.within.Guard = g }

// Reserve is asked before the table holds n more bytes, fewer if n is negative;
// see aggregate.Guard.
func (t *Table) Reserve(n int64) error {
	if limit := t.within.Bytes; limit > 0 && n > 0 && t.bytes+n > limit {
		return &LimitError{limit}
	}
	if n > 0 && t.within.Guard != nil {
		if err := t.within.Guard.Reserve(n); err != nil {
			return err
		}
	}
	t.bytes += n
	return nil
}

// Check tells why the work is to end; see aggregate.Guard.
func (t *Table) Check() error {
	if t.within.Guard == nil {
		return nil
	}
	return t.within.Guard.Check()
}

// Known tells whether a row's span is in the table; others may be, or may have
// been refused.
func (t *Table) Known(span []byte) bool {
	s := t.spans[string(span)]
	return s != nil && s.group != nil
}

// find returns the entry of a span; its group is nil if filters or the lack of a
// tag keep it out.
func (t *Table) find(id []byte) (*series, error) {
	if s, ok := t.spans[string(id)]; ok {
		return s, nil
	}
	s := &series{id: bytes.Clone(id)}
	keep := true
	if t.keep != nil {
		var err error
		if keep, err = t.keep(id); err != nil {
			return nil, err
		}
	}
	if err := t.Reserve(seriesBytes); err != nil {
		return nil, err
	}
	t.spans[string(s.id)] = s
	if key, ok := t.key(s.id); ok && keep {
		t.join(s, key)
	}
	return s, nil
}

// seriesBytes is about what a span takes beside its columns.
const seriesBytes = 590

// key is the group of a span, false if it lacks one of the tag keys.
func (t *Table) key(id []byte) (key []byte, ok bool) {
	if t.plan.Aggregator == "none" {
		return id, true
	}
	tags := t.plan.Schema.SpanTags(id)
	for _, k := range t.plan.GroupBy {
		v, ok := t.plan.Schema.Tag(tags, k)
		if !ok {
			return nil, false
		}
		key = append(key, v...)
	}
	return key, true
}

// join makes a span a member of its group, at its place in span order.
func (t *Table) join(s *series, key []byte) {
	g := t.groups[string(key)]
	if g == nil {
		g = &group{key: bytes.Clone(key)}
		t.groups[string(key)] = g
	}
	i, _ := slices.BinarySearchFunc(g.members, s, func(a, b *series) int { return bytes.Compare(a.id, b.id) })
	g.members, g.edges = slices.Insert(g.members, i, s), nil
	s.group = g
	t.described(g)
}

// described notes that a group's members are others than before.
func (t *Table) described(g *group) {
	g.anew, g.outlooks = true, nil
	t.touch(g, always)
}

// touch notes that a group is to be aggregated again within w. Most series touch
// the same windows, the ends of their group.
func (t *Table) touch(g *group, w Window) {
	if n := len(g.windows); n > 0 && w.From <= g.windows[n-1].To && w.To >= g.windows[n-1].From {
		last := &g.windows[n-1]
		last.From, last.To = min(last.From, w.From), max(last.To, w.To)
		return
	}
	g.windows = append(g.windows, w)
	t.dirty[g] = struct{}{}
}
