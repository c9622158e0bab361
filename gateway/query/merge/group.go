package merge

import (
	"bytes"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/operator/aggregate"
)

// Group is one result of a sub-query, names as UIDs.
type Group struct {
	// Key is the tag values that the group stands for, concatenated in the
	// order of the plan's GroupBy; of the aggregator none, the span.
	Key []byte
	// Spans are the members that have points, in span order. Of a group whose
	// members have only annotations there are none, and no tags and points:
	// OpenTSDB writes it without the metric's name.
	Spans [][]byte
	// Tags are the tags with one value among the members that have the key,
	// ascending by tagk: a tag that only some members have stays.
	Tags []encoding.TagPair
	// Aggregated are the tag keys with several values, ascending.
	Aggregated []encoding.UID
	// TSUIDs are the members' TSUIDs, sorted; twice the same when a series
	// stands under two salts.
	TSUIDs []encoding.UID
	// Points are those of the query's range, maybe none.
	Points encoding.Points
	// Notes are all annotations of the scanned rows of all members, in span
	// order, JSON as stored; also those outside the query's range.
	Notes [][]byte
}

// Finish makes the groups of everything added, in the order in which they are
// answered: by Key. Without anything there are none. It uses the merger up. It
// fails with an *aggregate.InfinityError, a *MemoryError, or when parts
// contradict each other.
func (m *Merger) Finish() ([]Group, error) {
	a, err := m.newAggregation()
	if err != nil {
		return nil, err
	}
	members, err := m.group(m.ordered())
	if err != nil {
		return nil, err
	}
	var groups []Group
	for _, ms := range members {
		g, err := a.group(ms)
		if err != nil {
			m.made = 0 // nobody gets the groups that were made before
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// checkSpans is after how many spans the bounds are asked whether to go on.
const checkSpans = 256

// members is one group to be.
type members struct {
	key   []byte
	spans []*seriesData
}

// points is the number of stored points of all members.
func (ms *members) points() (n int) {
	for _, sp := range ms.spans {
		n += sp.points
	}
	return n
}

// group deals spans in span order out to their groups; those that lack a key
// of the plan's GroupBy are dropped.
func (m *Merger) group(spans []*seriesData) ([]members, error) {
	var groups []members
	index := map[string]int{}
	for i, sp := range spans {
		if i%checkSpans == 0 {
			if err := m.Check(); err != nil {
				return nil, err
			}
		}
		key, ok := m.key(sp)
		if !ok {
			continue
		}
		i, known := index[string(key)]
		if !known {
			i = len(groups)
			index[string(key)] = i
			groups = append(groups, members{key: key})
		}
		groups[i].spans = append(groups[i].spans, sp)
	}
	slices.SortFunc(groups, func(a, b members) int { return bytes.Compare(a.key, b.key) })
	return groups, m.grow(int64(len(groups)) * groupBytes)
}

// groupBytes is about what a group takes beside its members and points.
const groupBytes = 200

// key is the group of a span, false if it lacks one of the tag keys.
func (m *Merger) key(sp *seriesData) (key []byte, ok bool) {
	return m.plan.AppendGroupKey(nil, sp.id)
}

// aggregation makes groups one after the other, in memory that it keeps.
type aggregation struct {
	m       *Merger
	fn      *aggregate.Function
	joiner  *joiner // nil if all parts are strict
	query   aggregate.Query
	columns columns
	folder  aggregate.Group
	// Scratch: the segments of one span, the members of one group.
	segments []*segment
	series   []aggregate.Series
}

func (m *Merger) newAggregation() (*aggregation, error) {
	p := m.plan
	fn := m.fn
	if fn == nil {
		return nil, fmt.Errorf("No such aggregation function: %s", p.Aggregator)
	}
	a := &aggregation{m: m, fn: fn, folder: aggregate.Group{Guard: m}, query: aggregate.Query{From: p.From, To: p.To, Start: p.Start, End: p.End, Rate: p.Rate != nil, Fix: p.Fix}}
	if len(m.states) > 0 {
		buckets := (p.To - p.From) * 1000 / p.Downsample.Interval
		if err := m.grow(buckets * 2 * partialBytes); err != nil {
			return nil, err
		}
		a.joiner = m.newJoiner(fn)
		return a, nil
	}
	return a, a.columns.init(p, m)
}

// group makes one group.
func (a *aggregation) group(ms members) (Group, error) {
	g := Group{Key: ms.key}
	before := a.m.used
	if err := a.fits(ms); err != nil {
		return g, err
	}
	a.series = a.series[:0]
	a.columns.reset()
	if err := a.columns.reserve(ms.points()); err != nil {
		return g, err
	}
	g.Spans = make([][]byte, 0, len(ms.spans))
	for i, sp := range ms.spans {
		if i%checkSpans == 0 {
			if err := a.m.Check(); err != nil {
				return g, err
			}
		}
		a.segments = sp.joined(a.segments[:0])
		for _, s := range a.segments {
			g.Notes = append(g.Notes, s.notes...)
		}
		if !sp.hasData {
			continue
		}
		g.Spans = append(g.Spans, sp.id)
		if a.joiner != nil {
			continue
		}
		if err := a.m.grow(a.columns.need(a.segments)); err != nil {
			return g, err
		}
		s, err := a.columns.of(a.segments)
		if err != nil {
			return g, fmt.Errorf("merge: series %s: %w", encoding.UID(a.m.plan.Schema.SpanTSUID(sp.id)), err)
		}
		a.series = append(a.series, s)
	}
	a.m.describe(&g)
	if a.joiner != nil {
		if err := a.joiner.group(ms, a.segments, &g.Points); err != nil {
			return g, err
		}
		return g, a.keep(&g.Points)
	}
	err := a.folder.Aggregate(a.fn, a.query, a.series, &g.Points)
	a.m.used = before
	if err != nil {
		return g, err
	}
	return g, a.keep(&g.Points)
}

// keep counts the points of a group, which stay.
func (a *aggregation) keep(p *encoding.Points) error {
	n := int64(p.Len()) * pointBytes
	a.m.made += n
	if err := a.m.grow(n); err != nil || a.filled() {
		return err
	}
	return a.m.points(p.Len())
}

// filled tells whether each group has a point for every bucket, so that their
// number is known before they are made.
func (a *aggregation) filled() bool {
	return a.joiner == nil && a.columns.bucketer != nil && a.columns.bucketer.Fills()
}

// fits counts the points of a filled group, or a few less, before anything is
// filled: two stored points and a long time can make billions.
func (a *aggregation) fits(ms members) error {
	if !a.filled() || !slices.ContainsFunc(ms.spans, func(sp *seriesData) bool { return sp.hasData }) {
		return nil
	}
	p := a.m.plan
	length := min(p.End, p.To*1000) - max(p.Start, p.From*1000)
	n := length / max(1, p.Downsample.Interval)
	if p.Downsample.Calendar {
		n = n * 30 / 31 // a month counts as 30 days
	}
	if p.Rate != nil {
		n-- // the first bucket has none
	}
	return a.m.points(int(max(0, n)))
}

// describe sets the group's tags and TSUIDs from its spans.
func (m *Merger) describe(g *Group) {
	g.Tags, g.Aggregated = DescribeTags(m.plan.Schema, g.Spans)

	g.TSUIDs = make([]encoding.UID, 0, len(g.Spans))
	for _, id := range g.Spans {
		g.TSUIDs = append(g.TSUIDs, m.plan.Schema.SpanTSUID(id))
	}
	slices.SortFunc(g.TSUIDs, func(a, b encoding.UID) int { return bytes.Compare(a, b) })
}
