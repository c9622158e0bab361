// Package merge makes the groups of an answer from what the parts of a scan plan
// found: it puts the pieces of each series together in time, finishes buckets
// that a part left open, fills, makes rates, groups, and aggregates in OpenTSDB's
// order. It knows neither store nor network nor clock, and names only as UIDs.
//
// Strict parts send columns per series: all arithmetic across series happens here
// in span order, and answers are equal to OpenTSDB's to the last bit (group.go,
// columns.go). Partial parts send the aggregator's states per group and the
// edges of series; here they are joined where that gives the same bits
// (states.go, join.go). Source: TsdbQuery.GroupByAndAggregateCB, SpanGroup, Span.
package merge

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// MemoryError says that merging needs more memory than the plan allows.
type MemoryError struct {
	Need, Limit int64 // bytes
}

// Error says how much is needed, at least, and how much is allowed.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("merge: the result takes %d bytes or more, want at most %d", e.Need, e.Limit)
}

// Merger collects the batches of one plan's parts and makes groups of them.
// Batches of different parts may come in any order and mixed; those of one part
// come in the part's order. No row of the table may be in two parts. A Merger is
// for one goroutine at a time.
type Merger struct {
	plan *scanplan.Plan
	fn   *aggregate.Function // nil of a name that is none
	keep func(span []byte) (bool, error)

	spans  map[string]*seriesData
	kept   []*seriesData  // those of spans that the name filter keeps, as first met
	last   *seriesData    // found last, nil before
	states []*partialPart // ascending; of parts that are not strict
	// rounding allows states to be added in any order; doubt is set when an
	// answer cannot be made of them at all.
	rounding, doubt bool
	memory          memory

	bounds Bounds
	used   int64 // bytes held now
	leased int64 // bytes reserved: the most that were ever held
	made   int64 // bytes of used that are points of groups, and outlive the merger
}

// Bounds are those of the process and of the request that a merger works in. Each
// may be nil.
type Bounds struct {
	// Reserve is asked before n more bytes are held, Release gives them back.
	Reserve func(n int64) error
	Release func(n int64)
	// Check tells why the request has ended; it is asked every so many steps.
	Check func() error
	// Points is asked before n points of an answer are made, where their number
	// is known by then, and after they are made where it is not.
	Points func(n int) error
}

// seriesData is one series under one salt.
type seriesData struct {
	id      []byte // salt, metric, tags; nil if the name filter drops it
	hasData bool
	points  int // stored points among what was added
	// The chain of what was added, in order of arrival.
	first, last *segment
	after       *seriesData // that was found behind it the last time
}

// segment is what one row of a batch says of a span: a stretch of it in time.
type segment struct {
	part  string // start key of the part
	next  *segment
	time  []int64 // buckets
	value []float64
	raw   encoding.Points
	edges *edges // of a part that answered with states; then no time and raw
	notes [][]byte
}

// PointBytes is what a point of a group takes: time, bits, type.
const PointBytes = 17

// Bytes that a span and a segment take beside their columns, about, and of one
// bucket and one point.
const (
	spanBytes    = 200
	segmentBytes = 200
	bucketBytes  = 16
	pointBytes   = PointBytes
)

// New returns a merger for a valid plan. keep tells whether a span passes the
// filters on names that row keys cannot express; nil keeps all. It is called
// once for each span, by Add.
func New(plan *scanplan.Plan, keep func(span []byte) (bool, error)) *Merger {
	fn, _ := aggregate.Lookup(plan.Aggregator)
	return &Merger{plan: plan, fn: fn, keep: keep, spans: map[string]*seriesData{}}
}

// Within sets the bounds to work in; it comes before the first Add.
func (m *Merger) Within(b Bounds) { m.bounds = b }

// AllowRounding lets sums of states that several parts have of one time be added
// in the order of parts, so that an answer's last bits may differ.
func (m *Merger) AllowRounding() { m.rounding = true }

// Add takes a batch of a part; it copies what it needs. It fails with a
// *MemoryError over the plan's bound, with the errors of the bounds, and with
// keep's error.
func (m *Merger) Add(part scanplan.KeyRange, rec batch.Record) error {
	if err := m.Check(); err != nil {
		return err
	}
	if batch.IsPartial(rec) {
		return m.addPartials(part, rec)
	}
	r, err := batch.NewSeriesReader(rec)
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	start := string(part.Start)
	var s batch.Series
	for i := range r.Len() {
		if err := r.At(i, &s); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		sp, err := m.find(s.Span)
		if err != nil {
			return err
		}
		if sp.id == nil {
			continue
		}
		if err := m.addSeries(&s); err != nil {
			return err
		}
		sp.hasData = sp.hasData || HasData(&s)
		sp.points += s.Raw.Len()
		sp.add(m.memory.segment(start, &s))
	}
	return nil
}

// find returns the entry of a span, and asks the name filter about a new one. All
// parts list their spans in one order, so it mostly is the one that followed the
// last time.
func (m *Merger) find(id []byte) (sp *seriesData, err error) {
	if m.last != nil {
		if sp = m.last.after; sp != nil && sp.id != nil && bytes.Equal(sp.id, id) {
			m.last = sp
			return sp, nil
		}
	}
	sp, ok := m.spans[string(id)]
	if !ok {
		if sp, err = m.newSeries(id); err != nil {
			return nil, err
		}
	}
	if m.last != nil {
		m.last.after = sp
	}
	m.last = sp
	return sp, nil
}

func (m *Merger) newSeries(id []byte) (*seriesData, error) {
	keep := true
	if m.keep != nil {
		var err error
		if keep, err = m.keep(id); err != nil {
			return nil, err
		}
	}
	sp := &seriesData{}
	if keep {
		sp.id = m.memory.bytes.copy(id)
		m.kept = append(m.kept, sp)
	}
	m.spans[string(id)] = sp
	return sp, m.grow(int64(2*len(id)) + spanBytes)
}

// addSeries counts the memory of a row.
func (m *Merger) addSeries(s *batch.Series) error {
	n := int64(segmentBytes + len(s.Time)*bucketBytes + s.Raw.Len()*pointBytes)
	for _, note := range s.Notes {
		n += int64(len(note))
	}
	return m.grow(n)
}

// grow counts n more bytes against the plan's bound, and reserves them unless the
// merger has held as many before: memory of one group is used again for the next.
func (m *Merger) grow(n int64) error {
	m.used += n
	if limit := m.plan.MaxBytes; limit > 0 && m.used > limit {
		return &MemoryError{Need: m.used, Limit: limit}
	}
	if m.used <= m.leased || m.bounds.Reserve == nil {
		return nil
	}
	if err := m.bounds.Reserve(m.used - m.leased); err != nil {
		return err
	}
	m.leased = m.used
	return nil
}

// Free gives back what was reserved, but for the points of the groups that were
// made: those are the caller's. The merger is not used any more.
func (m *Merger) Free() {
	if surplus := m.leased - m.made; surplus > 0 && m.bounds.Release != nil {
		m.bounds.Release(surplus)
	}
	m.leased, m.made = 0, 0
}

// Reserve counts memory that an aggregation takes; see aggregate.Guard.
func (m *Merger) Reserve(n int64) error { return m.grow(n) }

// Check tells why the request has ended; see aggregate.Guard.
func (m *Merger) Check() error {
	if m.bounds.Check == nil {
		return nil
	}
	return m.bounds.Check()
}

// points counts points of the answer.
func (m *Merger) points(n int) error {
	if m.bounds.Points == nil {
		return nil
	}
	return m.bounds.Points(n)
}

// add appends a segment to the chain.
func (sp *seriesData) add(s *segment) {
	if sp.first == nil {
		sp.first = s
	} else {
		sp.last.next = s
	}
	sp.last = s
}

// joined returns the segments of a span in time order, which is that of their
// parts' keys and within a part that of arrival; dst is memory to use.
func (sp *seriesData) joined(dst []*segment) []*segment {
	sorted := true
	for s := sp.first; s != nil; s = s.next {
		sorted = sorted && (len(dst) == 0 || dst[len(dst)-1].part <= s.part)
		dst = append(dst, s)
	}
	if !sorted {
		slices.SortStableFunc(dst, func(a, b *segment) int { return strings.Compare(a.part, b.part) })
	}
	return dst
}

// ordered returns the spans that have data or annotations, in span order.
func (m *Merger) ordered() []*seriesData {
	slices.SortFunc(m.kept, func(a, b *seriesData) int { return bytes.Compare(a.id, b.id) })
	return m.kept
}
