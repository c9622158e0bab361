package merge

import (
	"fmt"
	"slices"
	"strings"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// partialPart is a part that answered with states.
type partialPart struct {
	start  string // its first key
	hours  scanplan.Hours
	at, to int // its buckets in the plan's grid
	groups map[string]*groupPartial
}

// groupPartial is what a part says of a group.
type groupPartial struct {
	state  *aggregate.Partial // nil without points
	listed int32              // members with points
}

// addPartials takes a batch of states.
func (m *Merger) addPartials(part scanplan.KeyRange, rec batch.Record) error {
	r, err := batch.NewPartialReader(rec)
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	if m.fn == nil || !m.fn.Mergeable() {
		return fmt.Errorf("merge: states of %s, which has none", m.plan.Aggregator)
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
	for _, p := range m.states {
		if p.start == string(part.Start) {
			return p, nil
		}
	}
	hours, ok := m.plan.WholeHours(part)
	if !ok || !m.plan.Downsample.DividesHour() {
		return nil, fmt.Errorf("merge: states of the part from %s to %s, want whole hours", part.Start, part.Stop)
	}
	p := &partialPart{start: string(part.Start), hours: hours, groups: map[string]*groupPartial{}}
	p.at = m.gridIndex(hours.From * 1000)
	p.to = p.at + hours.Grid(m.plan.Downsample)
	m.states = append(m.states, p)
	slices.SortFunc(m.states, func(a, b *partialPart) int { return strings.Compare(a.start, b.start) })
	return p, nil
}

// gridIndex is the place of a bucket's start, in ms, in the plan's grid.
func (m *Merger) gridIndex(ms int64) int {
	return int((ms - m.plan.From*1000) / m.plan.Downsample.Interval)
}

// addGroup takes one row of states.
func (m *Merger) addGroup(p *partialPart, row *batch.Partial) error {
	if p.groups[string(row.Group)] != nil {
		return fmt.Errorf("merge: group %X stands twice in the part from %X", row.Group, p.start)
	}
	g := &groupPartial{}
	if size := p.to - p.at; len(row.Live) == size {
		var err error
		if g.state, err = m.restore(row); err != nil {
			return fmt.Errorf("merge: group %X in the part from %X: %w", row.Group, p.start, err)
		}
	} else if len(row.Live) != 0 {
		return fmt.Errorf("merge: group %X has %d states in the part from %X, want %d", row.Group, len(row.Live), p.start, size)
	}
	p.groups[string(row.Group)] = g
	if err := m.grow(int64(len(row.Live)) * partialBytes); err != nil {
		return err
	}
	if !m.rounding && m.hopeless(p, string(row.Group)) {
		return ErrOrder
	}
	return m.addMembers(p, g, row)
}

// hopeless tells whether a group's states in a part and in one of another salt
// are sums that do not add up: then nothing more need be read.
func (m *Merger) hopeless(p *partialPart, key string) bool {
	if s, _ := m.fn.Mergeability(); !s.Proven || p.groups[key].state == nil {
		return false
	}
	for _, q := range m.states {
		o := q.groups[key]
		if q.hours.Salt == p.hours.Salt || o == nil || o.state == nil || q.to <= p.at || p.to <= q.at {
			continue
		}
		return m.roundTogether(p, q, key) // one is enough to guess by
	}
	return false
}

// roundTogether tells whether adding up a group's states in two parts may round
// at a time inside the query.
func (m *Merger) roundTogether(p, q *partialPart, key string) bool {
	a, b := p.groups[key].state, q.groups[key].state
	from := max(p.at, q.at, m.gridIndex(m.plan.Start+m.plan.Downsample.Interval-1))
	to := min(p.to, q.to, m.gridIndex(m.plan.End)+1)
	for i := from; i < to; i++ {
		if a.Live[i-p.at] > 0 && b.Live[i-q.at] > 0 && !a.ExactWith(i-p.at, &b.Proof, i-q.at) {
			return true
		}
	}
	return false
}

// partialBytes is about what the state of one bucket takes.
const partialBytes = 35

// restore copies the columns of a row and makes those that were left out.
func (m *Merger) restore(row *batch.Partial) (*aggregate.Partial, error) {
	p := &aggregate.Partial{
		Real: slices.Clone(row.Real), Live: slices.Clone(row.Live), N: slices.Clone(row.N),
		A: slices.Clone(row.A), B: slices.Clone(row.B),
	}
	if len(p.N) == 0 {
		p.N = slices.Clone(row.Live)
	}
	if len(p.Real) == 0 {
		p.Real = slices.Repeat([]bool{true}, len(row.Live))
	}
	if !m.fn.Holds(p) {
		return nil, fmt.Errorf("columns of %s lack", m.fn.Name)
	}
	if s, _ := m.fn.Mergeability(); s.Proven {
		p.Receive(row.Low, row.High)
	}
	return p, nil
}

// addMembers notes which spans a row speaks of, with what stands at its edges.
func (m *Merger) addMembers(p *partialPart, g *groupPartial, row *batch.Partial) error {
	edge, note := 0, 0
	point := func() (int64, float64) { edge++; return row.EdgeTime[edge-1], row.EdgeValue[edge-1] }
	for i, id := range row.Spans {
		sp, err := m.find(id)
		if err != nil {
			return err
		}
		s := &m.memory.segments.alloc(1)[0]
		s.part = p.start
		for ; note < len(row.Notes) && int(row.NoteSpan[note]) == i; note++ {
			s.notes = append(s.notes, m.memory.bytes.copy(row.Notes[note]))
		}
		sp.add(s)
		if row.Flags[i]&batch.EdgeNoData != 0 {
			continue
		}
		sp.hasData = true
		g.listed++
		e := &edges{first: m.plan.From*1000 + int64(p.at)*m.plan.Downsample.Interval}
		e.last = e.first + int64(p.to-p.at-1)*m.plan.Downsample.Interval
		if row.Flags[i]&batch.EdgeFirst != 0 {
			e.first, e.firstValue = point()
			e.knowsFirst = true
		}
		if row.Flags[i]&batch.EdgeLast != 0 {
			e.last, e.lastValue = point()
			e.knowsLast = true
		}
		s.edges = e
		if err := m.grow(segmentBytes); err != nil {
			return err
		}
	}
	return nil
}

// edges are a span's first and last point in a part that answered with states.
// The values of points at the part's border are not shipped.
type edges struct {
	first, last           int64 // ms
	firstValue, lastValue float64
	knowsFirst, knowsLast bool
}
