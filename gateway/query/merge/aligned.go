package merge

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
	"downpour/pushdown/operator/rate"
)

// alignedPart is a part that returned finished aggregates of groups whose series have points
// at the same times.
type alignedPart struct {
	start  string // its first key
	groups map[string]*alignedRow
}

// alignedRow are the aggregates of a group in a part. The times of different parts do not overlap, so that
// their columns follow each other as they are. The exception is a series that has points in the parts
// before and after one in which it has none: OpenTSDB interpolates it, and the merge returns ErrOrder.
type alignedRow struct {
	time    []int64         // ms
	bits    []uint64        // of values, or of rates; the first rate is unknown
	floats  bool            // the values are doubles; otherwise all are integers
	members []alignedMember // by ascending spans
}

// alignedMember is a series with points in a part.
type alignedMember struct {
	span        *seriesData
	late        bool           // it begins after the first time of its row
	early       bool           // it ends before the last time of its row
	first, last encoding.Value // its values at these times if it is not late or early; of rates only
}

// alignedMemberBytes is about what a member of an aligned row takes.
const alignedMemberBytes = 64

// addAligned adds a batch of aligned aggregates.
func (m *Merger) addAligned(part scanplan.KeyRange, rec batch.Record) error {
	r, err := batch.NewAlignedReader(rec)
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	if !aggregate.MayAlign(m.plan) || len(m.plan.Ranges) != 1 {
		return fmt.Errorf("merge: aligned aggregates of a plan that cannot have them")
	}

	p := m.alignedPart(string(part.Start))
	var row batch.Aligned
	for i := range r.Len() {
		if err := r.At(i, &row); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		if row.Kind&batch.AlignedNot != 0 {
			return ErrOrder
		}
		if p.groups[string(row.Group)] != nil {
			return fmt.Errorf("merge: group %X comes twice in the part from %X", row.Group, p.start)
		}
		a, err := m.copyAligned(p, &row)
		if err != nil {
			return err
		}
		p.groups[string(row.Group)] = a
	}
	return nil
}

// alignedPart returns the entry of a part.
func (m *Merger) alignedPart(start string) *alignedPart {
	i, found := slices.BinarySearchFunc(m.alignedParts, start,
		func(p *alignedPart, start string) int { return strings.Compare(p.start, start) })
	if !found {
		m.alignedParts = slices.Insert(m.alignedParts, i, &alignedPart{start: start, groups: map[string]*alignedRow{}})
	}
	return m.alignedParts[i]
}

// copyAligned returns a copy of a row of a part. It also adds the spans of the row to the merger: their
// annotations as segments, and that they have points.
func (m *Merger) copyAligned(p *alignedPart, row *batch.Aligned) (*alignedRow, error) {
	a := &alignedRow{floats: row.Kind&batch.AlignedFloat != 0}
	if m.plan.Rate != nil && !a.floats && len(row.Time) > 0 {
		return nil, fmt.Errorf("merge: group %X has rates in the part from %X that are integers", row.Group, p.start)
	}
	if err := m.account(int64(len(row.Time)*16 + len(row.Spans)*alignedMemberBytes)); err != nil {
		return nil, err
	}

	a.time, a.bits = m.memory.points.copyOf(row.Time, m.memory.times.copy), m.memory.bits.copy(row.Bits)
	a.members = make([]alignedMember, 0, len(row.Spans))
	noteAt, edgeAt := 0, 0 // in row.Notes and in the row's edges, which both are by span
	for i, id := range row.Spans {
		if i > 0 && bytes.Compare(row.Spans[i-1], id) >= 0 {
			return nil, fmt.Errorf("merge: span %X follows %X in the part from %X, want them ascending", id,
				row.Spans[i-1], p.start)
		}
		// The name filter drops no span here: a query with one aggregates per series, see
		// the engine's aggregationFor.
		sp, err := m.findSeries(id)
		if err != nil {
			return nil, err
		}

		notesEnd := noteAt
		for notesEnd < len(row.Notes) && int(row.NoteSpan[notesEnd]) == i {
			notesEnd++
		}
		if err := m.addNotes(sp, p.start, row.Notes[noteAt:notesEnd]); err != nil {
			return nil, err
		}
		noteAt = notesEnd
		if row.Flags[i]&batch.SpanAnnotationsOnly != 0 {
			continue
		}

		sp.hasData = true
		member := alignedMember{
			span:  sp,
			late:  row.Flags[i]&batch.SpanLate != 0,
			early: row.Flags[i]&batch.SpanEarly != 0,
		}
		if m.plan.Rate != nil {
			if edgeAt+batch.Edges(row.Flags[i]) > len(row.EdgeBits) {
				return nil, fmt.Errorf("merge: group %X lacks edges in the part from %X", row.Group, p.start)
			}
			if !member.late {
				member.first = row.Edge(edgeAt)
				edgeAt++
			}
			if !member.early {
				member.last = row.Edge(edgeAt)
				edgeAt++
			}
		}
		a.members = append(a.members, member)
	}
	if (len(a.members) > 0) != (len(a.time) > 0) {
		return nil, fmt.Errorf("merge: group %X has %d members with points and %d times in the part from %X",
			row.Group, len(a.members), len(a.time), p.start)
	}
	return a, nil
}

// addNotes adds copies of the annotations that a part has of a series, as a segment without points.
func (m *Merger) addNotes(sp *seriesData, part string, notes [][]byte) error {
	if len(notes) == 0 {
		return nil
	}
	s := &m.memory.segments.alloc(1)[0]
	s.part = part
	size := int64(segmentBytes)
	for _, n := range notes {
		s.notes = append(s.notes, m.memory.bytes.copy(n))
		size += sliceBytes + int64(len(n))
	}
	sp.addSegment(s)
	return m.account(size)
}

// alignedRows returns the rows of a group in all parts, in time order. The error is ErrOrder if a series
// would have to be interpolated between two of them, or if their types differ.
func (a *aggregation) alignedRows(key []byte) ([]*alignedRow, error) {
	var rows []*alignedRow
	for _, p := range a.m.alignedParts {
		row := p.groups[string(key)]
		if row == nil || len(row.time) == 0 {
			continue
		}
		n := len(rows)
		if n > 0 && rows[n-1].time[len(rows[n-1].time)-1] >= row.time[0] {
			return nil, fmt.Errorf("merge: a part begins at %d, another goes on until %d", row.time[0],
				rows[n-1].time[len(rows[n-1].time)-1])
		}
		// Integers and doubles are aggregated in doubles together.
		if n > 0 && rows[n-1].floats != row.floats {
			return nil, ErrOrder
		}
		rows = append(rows, row)
	}

	for _, row := range rows {
		for i := range row.members {
			row.members[i].span.alignedSeen = 0
		}
	}
	for n, row := range rows {
		for i := range row.members {
			member := &row.members[i]
			sp := member.span
			switch {
			case sp.alignedSeen == 0:
				// The first rate of a series, from 1970, counts for all times before it.
				if a.query.Rate && (n > 0 || member.late) {
					return nil, ErrOrder
				}
			// It has points before and after times at which it has none.
			case sp.alignedEnded || member.late ||
				sp.alignedSeen != n: //fault:aligned-hole-between-parts TestAligned_everyHole
				return nil, ErrOrder
			}
			sp.alignedSeen, sp.alignedEnded = n+1, member.early
		}
	}
	return rows, nil
}

// aligned appends the points of a group of aligned rows to out. The error is an
// *aggregate.InfinityError, or ErrOrder.
func (a *aggregation) aligned(key []byte, out *encoding.Points) error {
	rows, err := a.alignedRows(key)
	if err != nil {
		return err
	}

	for n, row := range rows {
		if err := a.m.Check(); err != nil {
			return err
		}
		from := 0
		switch {
		case a.query.Rate && n == 0:
			from = 1 // the first rates, measured from 1970, are not emitted
		case a.query.Rate:
			row.bits[0] = a.ratesBetween(rows[n-1], row)
		}
		for i := from; i < len(row.time); i++ {
			t := row.time[i]
			if t < a.query.Start || t > a.query.End {
				continue
			}
			if v := math.Float64frombits(row.bits[i]); row.floats && math.IsInf(v, 0) {
				return &aggregate.InfinityError{Value: v, Time: t}
			}
			out.Append(t, encoding.Value{Float: row.floats, Bits: row.bits[i]})
		}
	}
	return nil
}

// ratesBetween returns the bits of the aggregated rates at the first time of a row: each is measured from
// the member's point at the last time of the row before.
func (a *aggregation) ratesBetween(before, row *alignedRow) uint64 {
	seconds := []float64{rate.Seconds(before.time[len(before.time)-1], row.time[0])}
	bits, v := []uint64{0}, []float64{0}
	a.sums.Reset(a.fn, true, 1)
	k := 0
	for i := range row.members {
		member := &row.members[i]
		// All members of a row are in the one before it, see alignedRows.
		for before.members[k].span != member.span {
			k++
		}
		bits[0] = member.first.Bits
		rate.Column(a.m.plan.Rate, before.members[k].last, bits, nil, member.first.Float, seconds, v)
		a.sums.AddDoubles(v)
	}
	a.sums.Finish(bits)
	return bits[0]
}
