package merge

import (
	"bytes"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/operator/aggregate"
)

// Group is one result of a sub-query, with names as UIDs.
type Group struct {
	// Key is the group's tag values, concatenated in the order of the plan's GroupBy.
	// With the aggregator none it is the span; of grouped windows, that of the series that stands for the group.
	Key []byte
	// Suffix is what the metric's name gets behind it in a group of histograms, which is
	// a line of their percentiles or of a bucket's counts; else it is empty.
	Suffix string
	// Spans are the members that have points, in span order. A group whose members have
	// only annotations has no spans, tags and points: OpenTSDB writes it without the
	// metric's name.
	Spans [][]byte
	// Tags are the tags with one value among the members that have the key, ascending
	// by tagk. So a tag that only some members have is one of them.
	Tags []encoding.TagPair
	// Aggregated are the tag keys with several values, ascending.
	Aggregated []encoding.UID
	// TSUIDs are the members' TSUIDs, sorted; nil after OmitTSUIDs. A series under two salts is listed twice.
	TSUIDs []encoding.UID
	// Points are those inside the query's time, possibly none.
	Points encoding.Points
	// Notes are all annotations of the scanned rows of all members, also those outside
	// the query's time: JSON as stored, in span order.
	Notes [][]byte
}

// Finish makes the groups of everything added, sorted by Key, which is the order of the
// answer. It is the last use of the merger except for Free. The error is ErrOrder, a
// *MemoryError, an *aggregate.InfinityError, an error of the bounds, or says how parts
// contradict each other.
func (m *Merger) Finish() ([]Group, error) {
	if m.plan.Histograms != nil {
		return m.histogramGroups()
	}
	a, grouped, err := m.groupAll()
	if err != nil {
		return nil, err
	}

	var groups []Group
	for _, members := range grouped {
		g, err := a.group(members)
		if err != nil {
			m.outputBytes = 0 // nobody gets the groups that were made before
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// checkSpans is after how many spans the merger asks whether the request has ended.
const checkSpans = 256

// groupMembers are the series of one group.
type groupMembers struct {
	key   []byte
	spans []*seriesData
	whole *wholeGroup // instead of spans, if one part has returned all of the plan; else nil
}

// points is the number of stored points of all members.
func (ms *groupMembers) points() (n int) {
	for _, sp := range ms.spans {
		n += sp.points
	}
	return n
}

// groupSeries divides series, which are in span order, into groups. It drops series
// without one of the plan's GroupBy keys.
func (m *Merger) groupSeries(spans []*seriesData) ([]groupMembers, error) {
	var groups []groupMembers
	index := map[string]int{}
	for i, sp := range spans {
		if i%checkSpans == 0 {
			if err := m.Check(); err != nil {
				return nil, err
			}
		}

		key, ok := m.plan.AppendGroupKey(nil, sp.id)
		if !ok {
			continue
		}
		i, known := index[string(key)]
		if !known {
			i = len(groups)
			index[string(key)] = i
			groups = append(groups, groupMembers{key: key})
		}
		groups[i].spans = append(groups[i].spans, sp)
	}

	slices.SortFunc(groups, func(a, b groupMembers) int { return bytes.Compare(a.key, b.key) })
	return groups, m.account(int64(len(groups)) * groupBytes)
}

// groupBytes is about what a group takes without its members and points.
const groupBytes = 200

// aggregation makes groups one after the other, in memory that it uses again for each.
type aggregation struct {
	m          *Merger
	fn         *aggregate.Function
	joiner     *joiner           // nil unless partial aggregates of several parts are joined
	received   aggregate.Partial // of a part that is all of the plan, one group after the other
	query      aggregate.Query
	columns    columns
	aggregator aggregate.Group

	isAligned bool              // parts returned aligned aggregates
	sums      aggregate.Aligned // of rates between two aligned parts

	segments []*segment         // of the series that addMembers is at, by time
	series   []aggregate.Series // of the group that is made, without members that have annotations alone
}

// groupAll divides everything added into groups, by ascending keys, and returns the aggregation that
// makes them.
func (m *Merger) groupAll() (*aggregation, []groupMembers, error) {
	a, err := m.newAggregation()
	if err != nil {
		return nil, nil, err
	}
	if len(m.whole) > 0 {
		return a, m.wholeMembers(), nil
	}
	grouped, err := m.groupSeries(m.inSpanOrder())
	return a, grouped, err
}

// newAggregation returns the aggregation of all groups of a plan: with a joiner if partial aggregates of several parts
// must be joined, with columns if parts returned series, and with neither if groups are finished: aligned ones, and
// those of a part that is all of the plan. The error is ErrOrder if aligned aggregates would have to be merged with
// others.
func (m *Merger) newAggregation() (*aggregation, error) {
	p := m.plan
	if m.fn == nil {
		return nil, fmt.Errorf("No such aggregation function: %s", p.Aggregator)
	}
	a := &aggregation{
		m: m, fn: m.fn, aggregator: aggregate.Group{Guard: m},
		query: aggregate.Query{From: p.From, To: p.To, Start: p.Start, End: p.End, Rate: p.Rate != nil, Fix: p.Fix},
	}
	if len(m.alignedParts) > 0 {
		// Series cannot be added to groups that are finished.
		if m.perSeries || len(m.partialParts) > 0 || m.older != nil {
			return nil, ErrOrder
		}
		a.isAligned = true
		return a, nil
	}
	switch {
	case len(m.partialParts) == 0:
		return a, a.columns.init(p, m)
	case len(m.whole) > 0: // one part is all of the plan, so nothing is joined, see wholeGroup
		return a, nil
	}

	// The joiner has a sum of all buckets, and merges another one into it.
	buckets := (p.To - p.From) * 1000 / p.Downsample.Interval
	if err := m.account(buckets * 2 * partialBytes); err != nil {
		return nil, err
	}
	a.joiner = m.newJoiner(m.fn)
	return a, nil
}

// group makes one group: its points, its tags and TSUIDs, and its annotations. Members
// without points count for the annotations alone.
func (a *aggregation) group(members groupMembers) (Group, error) {
	if members.whole != nil {
		g, err := members.whole.group(a)
		if err != nil {
			return g, err
		}
		return g, a.countGroup(&g.Points)
	}

	g := Group{Key: members.key}
	usedBefore := a.m.used
	if err := a.countPointsAhead(members); err != nil {
		return g, err
	}
	if err := a.addMembers(&g, members); err != nil {
		return g, err
	}
	a.m.describe(&g)

	var err error
	switch {
	case a.isAligned:
		err = a.aligned(members.key, &g.Points)
	case a.joiner != nil:
		err = a.joiner.group(members, a.segments[:0], &g.Points)
	default:
		err = a.aggregateSeries(members, &g.Points)
		a.m.used = usedBefore // the next group uses the memory of the columns again; a joiner lasts for all groups
	}
	if err != nil {
		return g, err
	}
	return g, a.countGroup(&g.Points)
}

// addMembers adds to a group the spans of its members that have points, and the annotations of all. If
// the parts returned series only, it makes a.series, the columns of the members with points.
func (a *aggregation) addMembers(g *Group, members groupMembers) error {
	// Aligned rows have the group's points already, and the joiner reads the segments itself.
	needsColumns := !a.isAligned && a.joiner == nil
	a.series = a.series[:0]
	a.columns.reset()
	if err := a.columns.reserve(members.points()); err != nil {
		return err
	}

	g.Spans = make([][]byte, 0, len(members.spans))
	for i, sp := range members.spans {
		if i%checkSpans == 0 {
			if err := a.m.Check(); err != nil {
				return err
			}
		}

		a.segments = sp.inTimeOrder(a.segments[:0])
		for _, s := range a.segments {
			g.Notes = append(g.Notes, s.notes...)
		}
		if !sp.hasData {
			continue
		}
		g.Spans = append(g.Spans, sp.id)
		if !needsColumns {
			continue
		}

		if err := a.m.account(a.columns.bytesNeeded(a.segments)); err != nil {
			return err
		}
		s, err := a.columns.ofSeries(sp.id, a.segments)
		if err != nil {
			return fmt.Errorf("merge: series %s: %w", encoding.UID(a.m.plan.Schema.SpanTSUID(sp.id)), err)
		}
		a.series = append(a.series, s)
	}
	return nil
}

// aggregateSeries appends the points of a group of a.series to out. If older hours are continued, those
// of their points that are final come first, and only times after them are aggregated.
func (a *aggregation) aggregateSeries(members groupMembers, out *encoding.Points) error {
	query := a.query
	final, continues, err := a.finalPoints(members)
	if err != nil {
		return err
	}
	if continues {
		query.Start = max(query.Start, final.cut)
		out.AppendPoints(final.points)
	}
	if a.m.plan.Window != nil {
		return a.columns.windows.points(a.series, out)
	}
	return a.aggregator.Aggregate(a.fn, query, a.series, out)
}

// countGroup counts the memory of a group's points, which outlive the merger, and their
// number unless countPointsAhead has.
func (a *aggregation) countGroup(p *encoding.Points) error {
	n := int64(p.Len()) * pointBytes
	a.m.outputBytes += n
	if err := a.m.account(n); err != nil || a.fillsBuckets() {
		return err
	}
	return a.m.countPoints(p.Len())
}

// fillsBuckets reports whether each group has a point in every bucket, so that their
// number is known before they are made.
func (a *aggregation) fillsBuckets() bool {
	return a.columns.bucketer != nil && a.columns.bucketer.Fills() // a joiner has no columns
}

// countPointsAhead counts the points of a group with fill before any bucket is filled:
// two stored points far apart can make billions. It may count a few less, never more.
func (a *aggregation) countPointsAhead(members groupMembers) error {
	if !a.fillsBuckets() || !slices.ContainsFunc(members.spans, func(sp *seriesData) bool { return sp.hasData }) {
		return nil
	}

	p := a.m.plan
	length := min(p.End, p.To*1000) - max(p.Start, p.From*1000)
	n := length / max(1, p.Downsample.Interval)
	if p.Downsample.Calendar {
		n = n * 30 / 31 // Interval counts a month as 30 days
	}
	if p.Rate != nil {
		n-- // the first bucket has no rate
	}
	return a.m.countPoints(int(max(0, n)))
}

// describe sets the group's tags and TSUIDs from its spans. Grouped windows have the one that stands for them.
func (m *Merger) describe(g *Group) {
	if w := m.plan.Window; w != nil && w.Groups != nil && len(g.Spans) > 0 {
		g.Spans = [][]byte{g.Key}
	}
	g.Tags, g.Aggregated = DescribeTags(m.plan.Schema, g.Spans)

	if m.omitTSUIDs {
		return
	}
	g.TSUIDs = make([]encoding.UID, 0, len(g.Spans))
	for _, id := range g.Spans {
		g.TSUIDs = append(g.TSUIDs, m.plan.Schema.SpanTSUID(id))
	}
	slices.SortFunc(g.TSUIDs, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
}
