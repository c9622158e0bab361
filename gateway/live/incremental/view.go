// Package incremental keeps the answer of one scan plan up to date by aggregating only
// what has changed. It is pure: its input is rows as the batches of package operator,
// and its output the windows of time in which groups have changed, with their points.
//
// For each span (a series under one salt) a View keeps one column per stage of the
// arithmetic, and for each group the aggregated points of the whole scan range:
//
//	rows ──▶ base: points or buckets ──▶ filled ──▶ rates ──▶ group's points
//
// Rows are applied by unit, the smallest interval of time that holds whole rows and
// whole buckets (Unit). The points of a unit are replaced as a whole, never added to.
// From the base column on, only what differs goes to the next stage.
//
// A changed point changes its group from the member's point before it to the
// member's point after it, because of interpolation, value types and rates. The
// group is aggregated again in that window, over all members in span order, so the
// result equals that of merging everything (package merge) to the last bit.
//
// Plans that Covers refuses, and changes that take points away from rows, are not
// handled: the caller loads a new view. A view of many hours may begin after those that
// no longer change (older.go).
package incremental

import (
	"bytes"
	"fmt"
	"slices"

	"downpour/encoding/scanplan"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/downsample"
)

// View is the incrementally updated answer of one plan. It is for one goroutine.
type View struct {
	plan *scanplan.Plan
	keep func(span []byte) (bool, error)
	unit int64 // length of a unit, ms

	bucketer *downsample.Bucketer // nil without downsampling
	grid     []int64              // times of all buckets of a plan that fills, else nil
	gridLead int                  // entries of the grid before the scan range
	missing  float64              // fill value of an empty bucket

	fn       *aggregate.Function // across series
	inBucket *aggregate.Function // within a bucket

	// Scratch of extendBuckets: the doubles of the new points, and the buckets that
	// they make.
	doubles    []float64
	newBuckets column

	spans  map[string]*series
	groups map[string]*group
	dirty  map[*group]struct{} // groups with windows to aggregate again
	bytes  int64               // held now
	bounds Bounds

	older     *merge.OlderHours // with which the view began; nil if it has all rows
	newerFrom int64             // ms: the end of these hours, 0 without

	shown Window // the window that Groups or Changes has trimmed the answer to last
}

// Bounds limit the memory and the work of a view.
type Bounds struct {
	// Bytes is the most that the view may hold; 0 is no bound.
	Bytes int64
	// Guard is called before the view holds more, and to check whether to continue. Nil allows
	// everything.
	Guard aggregate.Guard
}

// New returns an empty view for a plan that Covers accepts. keep is called once for each span and
// reports whether it passes the filters on names; nil keeps all.
//
// New, and every method that makes the view larger, returns a *LimitError or the
// guard's error when a bound is reached.
func New(plan *scanplan.Plan, keep func(span []byte) (bool, error), bounds Bounds) (*View, error) {
	if reason := Covers(plan); reason != "" {
		return nil, fmt.Errorf("incremental: cannot make a view of the plan: %s", reason)
	}
	fn, ok := aggregate.Lookup(plan.Aggregator)
	if !ok {
		return nil, fmt.Errorf("No such aggregation function: %s", plan.Aggregator) // OpenTSDB's words
	}

	t := &View{plan: plan, keep: keep, fn: fn, unit: Unit(plan), bounds: bounds,
		spans: map[string]*series{}, groups: map[string]*group{}, dirty: map[*group]struct{}{}}
	t.shown = Window{plan.Start, plan.End}

	if plan.Downsample == nil {
		return t, nil
	}
	return t, t.prepareBuckets()
}

// prepareBuckets sets the fields that a plan with downsampling needs.
func (t *View) prepareBuckets() (err error) {
	p := t.plan
	t.inBucket, _ = aggregate.Lookup(p.Downsample.Function) // downsample.New refuses an unknown one
	t.bucketer, err = downsample.New(p.Downsample, p.From, p.To, p.Start, p.End)
	if err != nil || !t.bucketer.Fills() {
		return err
	}

	// Two points and a long time can make a grid of billions of buckets: refuse it
	// before it is allocated.
	if p.MaxBytes > 0 && t.bucketer.GridLen()*pointBytes > p.MaxBytes {
		return fmt.Errorf("incremental: cannot fill the plan's buckets: a grid of %d takes more than its %d bytes",
			t.bucketer.GridLen(), p.MaxBytes)
	}
	t.bucketer.Guarded(t) // the grid counts as the view's memory
	if t.grid, err = t.bucketer.Grid(); err != nil {
		return err
	}
	t.gridLead = indexFrom(t.grid, p.From*1000) // the buckets before it serve rates alone
	t.missing = t.bucketer.Missing()
	return nil
}

// Bytes returns about the memory that the view holds.
func (t *View) Bytes() int64 { return t.bytes }

// SetGuard replaces the guard, so that the changes of a tick count against the
// bounds of that tick.
func (t *View) SetGuard(g aggregate.Guard) { t.bounds.Guard = g }

// Reserve is called before the view holds n more bytes, or n fewer if n is
// negative; see aggregate.Guard. The guard gets nothing back: in a live query its
// reservations end with the tick.
func (t *View) Reserve(n int64) error {
	if limit := t.bounds.Bytes; limit > 0 && n > 0 && t.bytes+n > limit {
		return &LimitError{limit}
	}
	if n > 0 && t.bounds.Guard != nil {
		if err := t.bounds.Guard.Reserve(n); err != nil {
			return err
		}
	}
	t.bytes += n
	return nil
}

// Check returns why the work must end, or nil; see aggregate.Guard.
func (t *View) Check() error {
	if t.bounds.Guard == nil {
		return nil
	}
	return t.bounds.Guard.Check()
}

// Known reports whether a span is in the view and belongs to a group. It is false for an unknown
// and for a refused span.
func (t *View) Known(span []byte) bool {
	s := t.spans[string(span)]
	return s != nil && s.group != nil
}

// findOrAdd returns the entry of a span. The entry's group is nil if a filter
// refuses the span or it lacks a tag key of the plan's GroupBy.
func (t *View) findOrAdd(id []byte) (*series, error) {
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

	// A refused span is entered too, so that the filter is not called again.
	t.spans[string(s.id)] = s
	if key, ok := t.plan.AppendGroupKey(nil, s.id); ok && keep {
		return s, t.addMember(s, key)
	}
	return s, nil
}

// seriesBytes is about the memory of a span without its columns.
const seriesBytes = 590

// addMember makes a span a member of the group with the given key, and creates the
// group if there is none. Members stay in span order.
func (t *View) addMember(s *series, key []byte) error {
	g := t.groups[string(key)]
	if g == nil {
		g = &group{key: bytes.Clone(key)}
		t.groups[string(key)] = g
		if err := t.continueGroup(g); err != nil {
			return err
		}
	}

	i, _ := slices.BinarySearchFunc(g.members, s, func(a, b *series) int { return bytes.Compare(a.id, b.id) })
	g.members, g.edges = slices.Insert(g.members, i, s), nil
	s.group = g
	t.membersChanged(g)
	return nil
}

// membersChanged has a group described and aggregated again as a whole.
func (t *View) membersChanged(g *group) {
	g.redescribe, g.watermarks = true, nil
	t.markDirty(g, always)
}

// markDirty has a group aggregated again within w.
func (t *View) markDirty(g *group, w Window) {
	// Most members of a group change in the same window, that of the newest
	// points, so comparing with the last window avoids most duplicates.
	if n := len(g.windows); n > 0 && w.From <= g.windows[n-1].To && w.To >= g.windows[n-1].From {
		// With a window the group is among the dirty ones already.
		last := &g.windows[n-1]
		last.From, last.To = min(last.From, w.From), max(last.To, w.To)
		return
	}

	g.windows = append(g.windows, w)
	t.dirty[g] = struct{}{}
}
