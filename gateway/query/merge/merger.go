// Package merge makes the groups of an answer from what the parts of a scan plan
// returned: it joins the segments of each series in time, finishes buckets that a part
// left open, fills, computes rates, groups, and aggregates in OpenTSDB's order. It
// knows neither store nor network nor clock, and names only as UIDs.
//
// With per-series aggregation, parts return the columns of each series. All arithmetic
// across series then happens here, in span order, and answers equal OpenTSDB's to the
// last bit (group.go, columns.go; groups.go one group after another, for Arrow;
// describe.go their tags). With partial aggregation, parts return a partial
// aggregate for each group, and the first and last point of each series. These are
// merged here where that gives the same bits (partials.go, join.go), and taken as they are
// where one part is all of the plan (whole.go). Histograms are added up (histogram.go). Of
// plans without buckets parts may also return what they have aggregated completely, where
// series have points at the same times (aligned.go).
// Source: TsdbQuery.GroupByAndAggregateCB, SpanGroup, Span.
package merge

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// Merger collects the batches of one plan's parts and makes groups of them. Batches of
// different parts may come in any order and mixed; those of one part come in the
// part's order. No row of the table may be in two parts. A Merger is for one goroutine
// at a time.
//
// A span, as in OpenTSDB, is one series under one salt: salt, metric and tags. The same
// series is two spans if it was written under two salts.
type Merger struct {
	plan       *scanplan.Plan
	fn         *aggregate.Function // nil if the plan's aggregator is unknown
	passesName func(span []byte) (bool, error)

	spans  map[string]*seriesData // by span, those that the name filter drops included
	kept   []*seriesData          // those that the name filter keeps, in order of arrival
	latest *seriesData            // what findSeries returned last, nil before

	partialParts []*partialPart // the parts that returned partial aggregates, ascending
	allReal      []bool         // true, for parts that have a point in every bucket
	alignedParts []*alignedPart // the parts that returned aligned aggregates, ascending
	perSeries    bool           // a part returned columns of series
	whole        []wholeGroup   // of the only part, if that returned partial aggregates
	// roundingAllowed lets partial aggregates be added in any order.
	roundingAllowed bool
	// needsSpanOrder is set when an answer cannot be made of partial aggregates at all,
	// rounded or not.
	needsSpanOrder bool
	omitTSUIDs     bool // of groups

	// parts are the ends of the parts that have segments, by their starts, of a plan of windows.
	parts map[string]scanplan.KeyRange

	histograms histogramSums // of a plan of histograms
	older      *OlderHours   // that is continued; nil if there is none

	memory      memory
	bounds      Bounds
	used        int64 // bytes held now
	reserved    int64 // bytes reserved: the most that were ever held
	outputBytes int64 // bytes of used that are points of groups, which outlive the merger
}

// Bounds are those of the process and of the request that a merger works in. Each
// function may be nil.
type Bounds struct {
	// Reserve is called before n more bytes are held, Release gives them back.
	Reserve func(n int64) error
	Release func(n int64)
	// Check returns why the request has ended, nil while it has not. It is called
	// regularly during long work.
	Check func() error
	// Points is called with a number of points of the answer: before they are made
	// where their number is known by then, else afterwards.
	Points func(n int) error
}

// seriesData is what was added of one span.
type seriesData struct {
	id      []byte // the span; nil if the name filter drops it
	hasData bool   // it counts as a member; without, it has annotations alone, see HasData
	points  int    // number of stored points among what was added
	// The list of segments in order of arrival.
	first, last *segment
	runs        []run        // in the parts that returned partial aggregates; see joinRuns
	tail        *OlderMember // of the older hours that are continued; nil if they do not have the span
	// after is the series that was found after this one the last time, for findSeries.
	after *seriesData

	// Of aligned parts: the last of its group's rows, from 1 on, that has points of it, and
	// whether it has none at the end of that row.
	alignedSeen  int
	alignedEnded bool
}

// segment is what one row of a batch says of a span: a stretch of it in time. Of partial aggregates it has the
// annotations alone.
type segment struct {
	part  string // start key of the part
	next  *segment
	time  []int64 // of buckets, ms
	value []float64
	raw   encoding.Points // points that are not in a bucket yet
	notes [][]byte
}

// PointBytes is the memory of one point of a group: time, bits, type.
const PointBytes = 17

// Estimated bytes of a span and of a segment without their columns, and of one bucket
// and one point in columns.
const (
	spanBytes    = 200
	segmentBytes = 200
	runBytes     = 40
	bucketBytes  = 16
	pointBytes   = PointBytes
)

// New returns a merger for a valid plan. passesName reports whether a span passes the
// filters on names that row keys cannot express; nil passes all. Add calls it once for
// each span.
func New(plan *scanplan.Plan, passesName func(span []byte) (bool, error)) *Merger {
	fn, _ := aggregate.Lookup(plan.Aggregator)
	return &Merger{plan: plan, fn: fn, passesName: passesName, spans: map[string]*seriesData{},
		parts: map[string]scanplan.KeyRange{}}
}

// SetBounds sets the bounds that the merger works in from now on. The first call comes
// before the first Add.
func (m *Merger) SetBounds(b Bounds) { m.bounds = b }

// AllowRounding lets sums that several parts have of one bucket be added in the order
// of the parts, so that an answer's last bits may differ from those in span order.
func (m *Merger) AllowRounding() { m.roundingAllowed = true }

// OmitTSUIDs leaves Group.TSUIDs empty: few answers have them.
func (m *Merger) OmitTSUIDs() { m.omitTSUIDs = true }

// Add adds a batch of a part; it copies what it needs. The error is a *MemoryError if
// the plan's MaxBytes is exceeded, ErrOrder if partial aggregates will not give the
// answer, an error of the bounds or of the name filter, or says what is wrong with the
// batch.
func (m *Merger) Add(part scanplan.KeyRange, rec batch.Record) error {
	return m.addBetween(part, rec, math.MinInt64, math.MaxInt64)
}

// AddBetween adds a batch of a part as Add does, but of buckets of series only those that begin
// from from on and before to, in ms: of rows that other parts have the rest of.
func (m *Merger) AddBetween(part scanplan.KeyRange, rec batch.Record, from, to int64) error {
	if m.plan.Histograms != nil || m.plan.Downsample == nil || batch.IsPartial(rec) || batch.IsAligned(rec) {
		return errors.New("merge: a batch without the buckets of series cannot be cut in time")
	}
	return m.addBetween(part, rec, from, to)
}

func (m *Merger) addBetween(part scanplan.KeyRange, rec batch.Record, from, to int64) error {
	if err := m.Check(); err != nil {
		return err
	}
	if m.plan.Histograms != nil {
		return m.addHistograms(string(part.Start), rec)
	}
	if batch.IsPartial(rec) {
		return m.addPartials(part, rec)
	}
	if batch.IsAligned(rec) {
		return m.addAligned(part, rec)
	}
	m.perSeries = true

	r, err := batch.NewSeriesReader(rec)
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	partStart := string(part.Start)
	if m.plan.Window != nil {
		m.parts[partStart] = part
	}
	var s batch.Series
	for i := range r.Len() {
		if err := r.At(i, &s); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		if from > math.MinInt64 {
			if cutBuckets(&s, from, to); len(s.Time) == 0 {
				continue
			}
		}
		sp, err := m.findSeries(s.Span)
		if err != nil {
			return err
		}
		if sp.id == nil {
			continue // the name filter drops it
		}

		if err := m.account(segmentSize(&s)); err != nil {
			return err
		}
		sp.hasData = sp.hasData || HasData(&s)
		sp.points += s.Raw.Len()
		sp.addSegment(m.memory.copySegment(partStart, &s))
	}
	return nil
}

// cutBuckets leaves a series the buckets that begin from from on and before to, and nothing
// else.
func cutBuckets(s *batch.Series, from, to int64) {
	i, _ := slices.BinarySearch(s.Time, from)
	j, _ := slices.BinarySearch(s.Time, to)
	s.Time, s.Value, s.Notes = s.Time[i:j], s.Value[i:j], nil
	s.Raw.Reset()
}

// findSeries returns the entry of a span, and asks the name filter about a new one. All
// parts list their spans in the same order, so it is mostly the one that followed the
// latest one in another part, and the map need not be asked.
func (m *Merger) findSeries(id []byte) (sp *seriesData, err error) {
	if m.latest != nil {
		if sp = m.latest.after; sp != nil && sp.id != nil && bytes.Equal(sp.id, id) {
			m.latest = sp
			return sp, nil
		}
	}

	sp, ok := m.spans[string(id)]
	if !ok {
		if sp, err = m.newSeries(id); err != nil {
			return nil, err
		}
	}
	if m.latest != nil {
		m.latest.after = sp
	}
	m.latest = sp
	return sp, nil
}

// newSeries adds the entry of a span that is new. It asks the name filter; a span that
// the filter drops has an entry too, so that the filter is asked once.
func (m *Merger) newSeries(id []byte) (*seriesData, error) {
	keep := true
	if m.passesName != nil {
		var err error
		if keep, err = m.passesName(id); err != nil {
			return nil, err
		}
	}

	sp := &seriesData{}
	if keep {
		sp.id = m.memory.bytes.copy(id)
		m.kept = append(m.kept, sp)
	}
	// The id is held twice: as sp.id and as the key of the map.
	m.spans[string(id)] = sp
	return sp, m.account(int64(2*len(id)) + spanBytes)
}

// segmentSize is the memory that a row of a batch takes as a segment.
func segmentSize(s *batch.Series) int64 {
	n := int64(segmentBytes + len(s.Time)*bucketBytes + s.Raw.Len()*pointBytes)
	for _, note := range s.Notes {
		n += int64(len(note))
	}
	return n
}

// account counts n more bytes against the plan's MaxBytes and reserves them. It
// reserves only what exceeds the most that the merger has ever held, because the
// memory of one group is used again for the next.
func (m *Merger) account(n int64) error {
	m.used += n
	if limit := m.plan.MaxBytes; limit > 0 && m.used > limit {
		return &MemoryError{Need: m.used, Limit: limit}
	}
	if m.used <= m.reserved || m.bounds.Reserve == nil {
		return nil
	}
	if err := m.bounds.Reserve(m.used - m.reserved); err != nil {
		return err
	}
	m.reserved = m.used
	return nil
}

// Free releases what was reserved, except for the points of the groups that were made,
// which are the caller's. The merger must not be used afterwards.
func (m *Merger) Free() {
	if surplus := m.reserved - m.outputBytes; surplus > 0 && m.bounds.Release != nil {
		m.bounds.Release(surplus)
	}
	m.reserved, m.outputBytes = 0, 0
}

// Reserve counts memory that an aggregation takes; see aggregate.Guard.
func (m *Merger) Reserve(n int64) error { return m.account(n) }

// Check returns why the request has ended, nil while it has not; see aggregate.Guard.
func (m *Merger) Check() error {
	if m.bounds.Check == nil {
		return nil
	}
	return m.bounds.Check()
}

// countPoints counts n points of the answer.
func (m *Merger) countPoints(n int) error {
	if m.bounds.Points == nil {
		return nil
	}
	return m.bounds.Points(n)
}

// addSegment adds a segment to the list.
func (sp *seriesData) addSegment(s *segment) {
	if sp.first == nil {
		sp.first = s
	} else {
		sp.last.next = s
	}
	sp.last = s
}

// inTimeOrder appends the segments to dst in time order, which is that of their parts'
// keys, and within a part that of arrival.
func (sp *seriesData) inTimeOrder(dst []*segment) []*segment {
	sorted := true
	for s := sp.first; s != nil; s = s.next {
		sorted = sorted && (len(dst) == 0 || dst[len(dst)-1].part <= s.part)
		dst = append(dst, s)
	}
	if !sorted { //fault:parts-not-sorted TestConformance
		slices.SortStableFunc(dst, func(a, b *segment) int { return strings.Compare(a.part, b.part) })
	}
	return dst
}

// inSpanOrder returns the series that the name filter keeps, in span order.
func (m *Merger) inSpanOrder() []*seriesData {
	slices.SortFunc(m.kept, func(a, b *seriesData) int { return bytes.Compare(a.id, b.id) })
	return m.kept
}
