package merge

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// OlderHours are the groups of a plan's older hours, merged once and continued with the rows of
// newer hours again and again: dashboards query the same hours every few seconds, and only the
// last ones have changed.
//
// They have the points of each group that no newer row can change, and the tail of each member,
// the end of its columns, from which the rest is aggregated together with the newer rows:
//
//	        From                      cut       To
//	member  x----x----x----x----x----x-|-x----x|          live: goes on
//	member  x----x----x----x----x----x-x-x----x|          live
//	member  x----x----x                |       |          ended
//	group   final points ............. | again with newer rows
//
// The cut is the last point of the live member that stops first. Before it, all live
// members have points on both sides, so that nothing is interpolated towards a point that
// is not known yet. An ended member contributes nothing after its last point, unless it
// has a newer one: then the values in between were wrong, and the merger that continues
// the older hours returns ErrOlderChanged.
//
// They do not change after they were made and may be shared.
type OlderHours struct {
	tailsFrom int64 // s: where the tails begin
	members   []OlderMember
	groups    map[string]olderGroup
	bytes     int64
}

// OlderMember is a span of older hours. Its slices must not be changed.
type OlderMember struct {
	Span    []byte
	HasData bool // it has points, not annotations alone
	// The tail: buckets, or points as they are stored, before rates are made.
	Time  []int64
	Value []float64
	Raw   encoding.Points
	// Last are the times of the last value that it contributes and of the one before, ms; -1
	// for none.
	Last [2]int64

	columns bool // it contributes to the group, and newer points continue its columns
	ended   bool // a newer point would change final points
	notes   [][]byte
}

// olderGroup is a group of older hours.
type olderGroup struct {
	cut      int64           // ms: the points before it are final
	points   encoding.Points // final
	integers bool            // a final point is an integer
	members  bool            // a member contributes
}

// ErrOlderChanged is returned where newer rows change points of older hours that were final: a series has
// points again after a pause, or a new one changes values before its first point. The
// whole plan has to be merged instead.
var ErrOlderChanged = errors.New("merge: newer rows change points of older hours")

// maxEndGap is how close to the end of the rows the last point of a live member is. It
// keeps tails short; a series whose points are further apart makes ErrOlderChanged.
const maxEndGap = encoding.RowSeconds

// CanContinue reports whether older hours of the plan can be continued: the plan can be split between
// any two hours without splitting a bucket.
func CanContinue(p *scanplan.Plan) bool {
	return p.Histograms == nil && p.Rollup == nil && p.Window == nil &&
		(p.Downsample == nil || p.Downsample.DividesHour())
}

// ContinuedPlan returns the plan to merge with: the tails of the older hours, and the rows
// of a plan that begins where the older hours end.
func (st *OlderHours) ContinuedPlan(newer *scanplan.Plan) *scanplan.Plan {
	p := *newer
	p.From, p.Start = st.tailsFrom, st.tailsFrom*1000
	return &p
}

// Bytes is about the memory that the older hours take, which FinishOlder has left reserved.
func (st *OlderHours) Bytes() int64 { return st.bytes }

// FinishOlder makes OlderHours of everything added, instead of groups. The plan is
// untrimmed, and CanContinue. The memory of the result is the caller's, as that of groups
// is. Its errors are those of Finish.
func (m *Merger) FinishOlder() (*OlderHours, error) {
	a, grouped, err := m.groupAll()
	if err != nil {
		return nil, err
	}

	st := &OlderHours{tailsFrom: m.plan.To, groups: make(map[string]olderGroup, len(grouped))}
	for _, members := range grouped {
		g, err := a.group(members)
		if err == nil {
			err = a.addOlderGroup(st, members, &g)
		}
		if err != nil {
			m.outputBytes = 0 // nobody gets what was made before
			return nil, err
		}
	}
	return st, nil
}

// addOlderGroup adds a group that was just made, whose columns are in a.series.
func (a *aggregation) addOlderGroup(st *OlderHours, members groupMembers, g *Group) error {
	p := a.m.plan
	sg := olderGroup{cut: p.To * 1000}
	for i := range a.series {
		t := a.series[i].Time
		if !a.contributes(t) {
			continue
		}
		sg.members = true
		if a.reachesEnd(t) {
			sg.cut = min(sg.cut, t[len(t)-1])
		}
	}

	n, _ := slices.BinarySearch(g.Points.Time, sg.cut)
	sg.points = g.Points.Slice(0, n)
	sg.integers = slices.Contains(sg.points.Float, false)
	st.groups[string(members.key)] = sg
	st.bytes += int64(g.Points.Len()) * pointBytes // counted when they were made
	if err := a.countOlder(st, olderGroupBytes+int64(len(members.key))); err != nil {
		return err
	}

	k := 0 // of a.series, which has the members with data
	for i, sp := range members.spans {
		if i%checkSpans == 0 {
			if err := a.m.Check(); err != nil {
				return err
			}
		}
		sm := OlderMember{Span: bytes.Clone(sp.id), HasData: sp.hasData, Last: [2]int64{-1, -1}}
		a.segments = sp.inTimeOrder(a.segments[:0])
		for _, s := range a.segments {
			for _, note := range s.notes {
				sm.notes = append(sm.notes, bytes.Clone(note))
			}
		}
		if sp.hasData {
			a.setTail(st, &sm, a.series[k].Time, sg.cut)
			k++
		}
		if err := a.countOlder(st, st.add(sm)); err != nil {
			return err
		}
	}
	return nil
}

// countOlder counts memory of older hours, which outlives the merger.
func (a *aggregation) countOlder(st *OlderHours, n int64) error {
	st.bytes += n
	a.m.outputBytes += n
	return a.m.account(n)
}

// contributes reports whether a member whose columns have the times t contributes to its
// group. The first rate, from 1970, does not while it is the only one; with a second one it
// does at all times before that.
func (a *aggregation) contributes(t []int64) bool {
	return len(t) > 1 || len(t) == 1 && !a.query.BogusStart()
}

// reachesEnd reports whether a member that contributes, at the times t, goes on until the end of
// the rows.
func (a *aggregation) reachesEnd(t []int64) bool {
	if a.fillsBuckets() {
		return true // newer buckets are filled, too
	}
	return t[len(t)-1] >= (a.m.plan.To-maxEndGap)*1000
}

// setTail gives a member with the column of times t the end of its columns: from the last
// point that is not after the cut, so that what lies between it and the next one can be
// interpolated.
func (a *aggregation) setTail(st *OlderHours, sm *OlderMember, t []int64, cut int64) {
	for i := range min(2, len(t)) {
		sm.Last[i] = t[len(t)-1-i]
	}
	rates := a.m.plan.Rate != nil
	sm.columns = a.contributes(t)
	if !sm.columns {
		// It may have a point nonetheless, which the next rate is measured from.
		if rates {
			sm.Time, sm.Value, sm.Raw = a.columns.tail(a.segments, math.MaxInt64, true)
		}
		return
	}
	if sm.ended = !a.reachesEnd(t); sm.ended {
		return
	}

	i, found := slices.BinarySearch(t, cut)
	if !found {
		i = max(0, i-1)
	}
	begin := t[i]
	if rates {
		// The first rate of the tail will be one from 1970, or none where resets are dropped:
		// the one before the last must not be the first. Where that is so already, the tail
		// has all points.
		begin = 0
		if i > 0 {
			begin = t[i-1]
		}
	}
	sm.Time, sm.Value, sm.Raw = a.columns.tail(a.segments, begin, rates)

	// Empty buckets of the tail are filled again, also the one that the first rate is measured
	// from.
	if a.fillsBuckets() {
		st.beginTailsAt(max(begin-a.m.plan.Downsample.Interval, a.m.plan.From*1000))
	}
}

// tail returns a copy of a span's buckets, or else of its stored points, from the one at
// begin on, or from the one before that.
func (c *columns) tail(segments []*segment, begin int64,
	oneMore bool) (times []int64, values []float64, raw encoding.Points) {
	first := func(t []int64) int {
		i, _ := slices.BinarySearch(t, begin)
		if oneMore {
			i = max(0, i-1)
		}
		return i
	}

	if c.bucketer == nil {
		p := c.joined(segments)
		i := first(p.Time)
		raw.AppendPoints(p.Slice(i, p.Len()))
		return nil, nil, raw
	}

	c.bucketer.Reset()
	for _, s := range segments {
		c.addToBuckets(s)
	}
	times, values = c.bucketer.Finish()
	i := first(times)
	return slices.Clone(times[i:]), slices.Clone(values[i:]), raw
}

// beginTailsAt makes the tails begin in the hour of t, in ms, or earlier.
func (st *OlderHours) beginTailsAt(t int64) {
	s := t / 1000
	st.tailsFrom = min(st.tailsFrom, s-s%encoding.RowSeconds)
}

// Estimated bytes of a member and of a group without their columns.
const (
	olderMemberBytes = 200
	olderGroupBytes  = 150
)

// add adds a member and returns the memory that it takes.
func (st *OlderHours) add(sm OlderMember) (bytes int64) {
	st.members = append(st.members, sm)
	if len(sm.Time) > 0 {
		st.beginTailsAt(sm.Time[0])
	}
	if sm.Raw.Len() > 0 {
		st.beginTailsAt(sm.Raw.Time[0])
	}

	bytes = olderMemberBytes + int64(len(sm.Span)) + int64(len(sm.Time))*bucketBytes + int64(sm.Raw.Len())*pointBytes
	for _, note := range sm.notes {
		bytes += sliceBytes + int64(len(note))
	}
	return bytes
}

// Continue gives the merger older hours to continue; the merger's plan is their
// ContinuedPlan. It comes before the first Add. The errors are those of Add.
func (m *Merger) Continue(st *OlderHours) error {
	m.older = st
	for i := range st.members {
		if i%checkSpans == 0 {
			if err := m.Check(); err != nil {
				return err
			}
		}
		sm := &st.members[i]
		sp, err := m.findSeries(sm.Span)
		if err != nil {
			return err
		}
		if err := m.account(segmentBytes); err != nil {
			return err
		}
		// The columns are the older hours' own: mergers do not write to them. No part has an
		// empty start key, so that the tail comes before the segments of all parts.
		s := &m.memory.segments.alloc(1)[0]
		s.time, s.value, s.raw, s.notes = sm.Time, sm.Value, sm.Raw, sm.notes
		sp.hasData, sp.tail = sm.HasData, sm
		sp.points += sm.Raw.Len()
		sp.addSegment(s)
	}
	return nil
}

// finalPoints returns the group of the older hours that the members continue; ok is false if
// there is none with points. The error is ErrOlderChanged if the members change its points.
func (a *aggregation) finalPoints(members groupMembers) (sg olderGroup, ok bool, err error) {
	if a.m.older == nil {
		return sg, false, nil
	}

	sg = a.m.older.groups[string(members.key)]
	for _, sp := range members.spans {
		if sp.hasData && a.changesFinal(sp, &sg) {
			return sg, false, ErrOlderChanged
		}
	}
	return sg, sg.members, nil
}

// changesFinal reports whether the newer points of a member change points of its group
// before the cut.
func (a *aggregation) changesFinal(sp *seriesData, sg *olderGroup) bool {
	var first FirstPoint
	if s := sp.firstNewPoint(); s != nil {
		first = FirstPoint{Any: true, Float: len(s.time) > 0 || s.raw.Float[0]}
	}
	return sg.changedBy(sp.tail, first, Arithmetic{a.fillsBuckets(), a.query.BogusStart()})
}

// FirstPoint is the first point, or bucket, of a span in the newer hours.
type FirstPoint struct {
	Any   bool // there is one
	Float bool // it is no integer
}

// Arithmetic is what of a plan decides whether a new member changes final points.
type Arithmetic struct {
	Fills      bool // each member has a value in every bucket
	BogusStart bool // see aggregate.Query.BogusStart
}

// changedBy reports whether a member with points changes final points of its group with its newer
// points. tail is its end in the older hours, nil if they do not have it.
func (sg *olderGroup) changedBy(tail *OlderMember, first FirstPoint, how Arithmetic) bool {
	if tail != nil && tail.columns {
		// Before its new point, an ended member would have been interpolated. The tail of any other
		// is aggregated again.
		return tail.ended && first.Any
	}

	// The member is new, or has not contributed so far.
	switch {
	case how.Fills:
		return true // it has values in all buckets, also in a group that had no members
	case !first.Any:
		return false
	case how.BogusStart:
		// Its first rate contributes at all times before the second; the tail may lack the point
		// that the first one is of.
		return sg.members || tail != nil
	}
	// Integers before its first point become floats if that is one.
	return sg.integers && first.Float
}

// ChangedBy reports whether a span with points changes final points of its group with its newer
// points: then the older hours cannot be continued, and the whole plan has to be merged. tail is the
// span's end in the older hours, nil if they do not have it.
func (st *OlderHours) ChangedBy(group string, tail *OlderMember, first FirstPoint, how Arithmetic) bool {
	sg := st.groups[group]
	return sg.changedBy(tail, first, how)
}

// Final returns the points of a group that no newer row can change, all before cut, ms;
// from there on its members are to be aggregated. ok is false for a group without such
// points. They must not be changed.
func (st *OlderHours) Final(group string) (points encoding.Points, cut int64, ok bool) {
	sg := st.groups[group]
	return sg.points, sg.cut, sg.members
}

// Members returns the spans of the older hours, those of a group in span order.
func (st *OlderHours) Members() []OlderMember { return st.members }

// firstNewPoint returns the first segment of the span, in time, that has points and is no
// tail of older hours; nil if there is none.
func (sp *seriesData) firstNewPoint() (first *segment) {
	for s := sp.first; s != nil; s = s.next {
		if s.part == "" || len(s.time) == 0 && s.raw.Len() == 0 {
			continue
		}
		if first == nil || s.part < first.part {
			first = s
		}
	}
	return first
}
