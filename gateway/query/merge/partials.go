package merge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// partialPart is a part that returned partial aggregates.
type partialPart struct {
	start    string // its first key
	hours    scanplan.Hours
	from, to int  // its buckets in the plan's grid, half-open
	whole    bool // it is all of the plan, see wholeGroup
	groups   map[string]*groupPartial
}

// groupPartial is what a part says of a group.
type groupPartial struct {
	buckets *buckets // nil if no member has points
	members int32    // spans with points in the part's rows
}

// buckets are the columns of a group's partial aggregate as a part has sent them. They are kept so, because this is
// half of what they take as an aggregate.Partial. See encoding/docs/partial-batch.md.
type buckets struct {
	real      []bool  // nil if all are
	live, n   []int32 // n is nil where it equals live
	a, b      []float64
	low, high []int16
}

// run is a span's first and last point in a part that returned partial aggregates, or in several that follow each
// other, if there is no bucket without a point of it between two of them. The value of a point at a border of a part is
// not shipped.
type run struct {
	first, last           int64 // ms
	firstValue, lastValue float64
	knowsFirst, knowsLast bool
}

// addPartials adds a batch of partial aggregates.
func (m *Merger) addPartials(part scanplan.KeyRange, rec batch.Record) error {
	r, err := batch.NewPartialReader(rec)
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	if m.fn == nil || !m.fn.Mergeable() {
		return fmt.Errorf("merge: cannot merge partial aggregates of %s, which has none", m.plan.Aggregator)
	}
	p, err := m.partialPart(part)
	if err != nil {
		return err
	}

	var row batch.Partial
	for i := range r.Len() {
		if err := r.At(i, &row); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		if err := m.addGroup(p, &row); err != nil {
			return err
		}
	}
	return nil
}

// partialPart returns the entry of a part.
func (m *Merger) partialPart(part scanplan.KeyRange) (*partialPart, error) {
	// They come in any order; the joiner adds them in that of their keys.
	at, found := slices.BinarySearchFunc(m.partialParts, string(part.Start),
		func(p *partialPart, start string) int { return strings.Compare(p.start, start) })
	if found {
		return m.partialParts[at], nil
	}

	hours, ok := m.plan.WholeHours(part)
	if !ok || !m.plan.Downsample.DividesHour() {
		return nil, fmt.Errorf("merge: partial aggregates of the part from %s to %s, want whole hours", part.Start,
			part.Stop)
	}
	p := &partialPart{
		start:  string(part.Start),
		hours:  hours,
		groups: map[string]*groupPartial{},
		whole:  m.isWhole(part),
	}
	p.from = m.gridIndex(hours.From * 1000)
	p.to = p.from + hours.Grid(m.plan.Downsample)
	m.partialParts = slices.Insert(m.partialParts, at, p)
	return p, nil
}

// gridIndex returns the index in the plan's grid of the bucket that starts at ms.
func (m *Merger) gridIndex(ms int64) int {
	return int((ms - m.plan.From*1000) / m.plan.Downsample.Interval)
}

// addGroup adds the partial aggregate of one group, which is one row of a batch.
func (m *Merger) addGroup(p *partialPart, row *batch.Partial) error {
	if p.groups[string(row.Group)] != nil {
		return fmt.Errorf("merge: group %X comes twice in the part from %X", row.Group, p.start)
	}

	if p.whole {
		return m.addWhole(p, row)
	}

	g := &groupPartial{}
	var err error
	if g.buckets, err = m.copyBuckets(p, row); err != nil {
		return err
	}
	p.groups[string(row.Group)] = g

	// Give up at once rather than after everything has been read.
	if !m.roundingAllowed && m.sumsRound(p, string(row.Group)) {
		return ErrOrder
	}
	return m.addMembers(p, g, row)
}

// sumsRound reports whether the sums that a part and one of another salt have of a
// group may round when they are added. It looks at one such pair only: that is enough
// to guess by.
func (m *Merger) sumsRound(p *partialPart, key string) bool {
	if s, _ := m.fn.Mergeability(); !s.Proven || p.groups[key].buckets == nil {
		return false
	}
	for _, q := range m.partialParts {
		other := q.groups[key]
		disjoint := q.to <= p.from || p.to <= q.from
		// Parts of one salt, too, have no bucket in common.
		if q.hours.Salt == p.hours.Salt || other == nil || other.buckets == nil || disjoint {
			continue
		}
		return m.pairRounds(p, q, key)
	}
	return false
}

// pairRounds reports whether adding up a group's sums of two parts may round at a time
// inside the query.
func (m *Merger) pairRounds(p, q *partialPart, key string) bool {
	var a, b aggregate.Partial
	m.receive(&a, p.groups[key].buckets)
	m.receive(&b, q.groups[key].buckets)
	// From the first bucket that begins inside the query: the others are not in the answer.
	from := max(p.from, q.from, m.gridIndex(m.plan.Start+m.plan.Downsample.Interval-1))
	to := min(p.to, q.to, m.gridIndex(m.plan.End)+1)
	for i := from; i < to; i++ {
		if a.Live[i-p.from] > 0 && b.Live[i-q.from] > 0 && !a.ExactWith(i-p.from, &b.Proof, i-q.from) {
			return true
		}
	}
	return false
}

// partialBytes is about what a bucket takes in an aggregate.Partial; columnsBytes is about what columns take without
// their elements.
const (
	partialBytes = 35
	columnsBytes = 200
)

// copyBuckets returns a copy of the buckets of a row; nil if it has none, because its spans
// have annotations alone.
func (m *Merger) copyBuckets(p *partialPart, row *batch.Partial) (*buckets, error) {
	if len(row.Live) == 0 {
		return nil, nil
	}
	if size := p.to - p.from; len(row.Live) != size {
		return nil, fmt.Errorf("merge: group %X has %d buckets in the part from %X, want %d", row.Group, len(row.Live),
			p.start, size)
	}
	if !m.fn.Holds(&aggregate.Partial{Live: row.Live, A: row.A, B: row.B}) {
		return nil, fmt.Errorf("merge: group %X in the part from %X: columns of %s are missing", row.Group, p.start,
			m.fn.Name)
	}
	c := &buckets{
		real: slices.Clone(row.Real), live: slices.Clone(row.Live), n: slices.Clone(row.N),
		a: slices.Clone(row.A), b: slices.Clone(row.B),
		low: slices.Clone(row.Low), high: slices.Clone(row.High),
	}
	return c, m.account(int64(columnsBytes + len(c.real) + 4*(len(c.live)+len(c.n)) + 8*(len(c.a)+len(c.b)) +
		2*(len(c.low)+len(c.high))))
}

// receive makes p the partial aggregate that a part has sent. The two share columns, which must not be changed.
func (m *Merger) receive(p *aggregate.Partial, sent *buckets) {
	p.Real, p.Live, p.N, p.A, p.B = sent.real, sent.live, sent.n, sent.a, sent.b
	if len(p.N) == 0 {
		p.N = sent.live
	}
	if len(p.Real) == 0 {
		for len(m.allReal) < len(sent.live) {
			m.allReal = append(m.allReal, true)
		}
		p.Real = m.allReal
	}
	// Low and High are the proof of the sums.
	if s, _ := m.fn.Mergeability(); s.Proven {
		p.Receive(sent.low, sent.high)
	}
}

// addMembers adds to each span that a row lists its annotations, and its run if it has points.
func (m *Merger) addMembers(p *partialPart, g *groupPartial, row *batch.Partial) error {
	// The row's points and annotations are those of all its spans, one after another.
	edge, note := 0, 0
	nextPoint := func() (int64, float64) { edge++; return row.EdgeTime[edge-1], row.EdgeValue[edge-1] }

	for i, id := range row.Spans {
		// The name filter drops no span here: a query with one aggregates per series, see
		// the engine's aggregationFor.
		sp, err := m.findSeries(id)
		if err != nil {
			return err
		}
		notesEnd := note
		for notesEnd < len(row.Notes) && int(row.NoteSpan[notesEnd]) == i {
			notesEnd++
		}
		if err := m.addNotes(sp, p.start, row.Notes[note:notesEnd]); err != nil {
			return err
		}
		note = notesEnd
		if row.Flags[i]&batch.EdgeAnnotationsOnly != 0 {
			continue
		}

		sp.hasData = true
		g.members++
		// An edge that is not shipped lies in the part's first or last bucket, so that no
		// bucket lies between it and the neighbouring part. Where that one has a hole
		// there, addGap needs the edge's value, and returns ErrOrder because it is not
		// known. See encoding/docs/partial-batch.md.
		s := run{first: m.plan.From*1000 + int64(p.from)*m.plan.Downsample.Interval}
		s.last = s.first + int64(p.to-p.from-1)*m.plan.Downsample.Interval
		if row.Flags[i]&batch.EdgeFirst != 0 {
			s.first, s.firstValue = nextPoint()
			s.knowsFirst = true
		}
		if row.Flags[i]&batch.EdgeLast != 0 {
			s.last, s.lastValue = nextPoint()
			s.knowsLast = true
		}
		if err := m.addRun(sp, s); err != nil {
			return err
		}
	}
	for _, live := range row.Live {
		if g.members < live {
			return fmt.Errorf("merge: group %X in the part from %X lists %d members, want %d or more", row.Group,
				p.start, g.members, live)
		}
	}
	return nil
}

// addRun adds a part's run of a span to those of the others. A series that goes on from part to part keeps one, so
// that what is held of it does not grow with the parts.
func (m *Merger) addRun(sp *seriesData, s run) error {
	if n := len(sp.runs); n > 0 && m.goesOn(&sp.runs[n-1], &s) { // parts mostly come in order
		sp.runs[n-1] = sp.runs[n-1].until(&s)
		return nil
	}

	before := cap(sp.runs)
	if len(sp.runs) == before {
		sp.runs = m.joinRuns(sp.runs)
		// Twice the room for what is left: so thousands of runs with pauses between them are sorted a few times.
		if n := len(sp.runs); n > before/2 {
			sp.runs = slices.Grow(sp.runs, max(n, 1))
		}
	}
	sp.runs = append(sp.runs, s)
	return m.account(int64(cap(sp.runs)-before) * runBytes)
}

// joinRuns sorts runs and makes one of those that go on in the next, in their memory.
func (m *Merger) joinRuns(runs []run) []run {
	slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.first, b.first) })
	joined := runs[:0]
	for i := range runs {
		if n := len(joined); n > 0 && m.goesOn(&joined[n-1], &runs[i]) {
			joined[n-1] = joined[n-1].until(&runs[i])
		} else {
			joined = append(joined, runs[i])
		}
	}
	return joined
}

// goesOn reports whether the first bucket of b is the one behind the last of a.
func (m *Merger) goesOn(a, b *run) bool { return m.gridIndex(a.last)+1 == m.gridIndex(b.first) }

// until returns the run from the beginning of a to the end of b.
func (a run) until(b *run) run {
	a.last, a.lastValue, a.knowsLast = b.last, b.lastValue, b.knowsLast
	return a
}
