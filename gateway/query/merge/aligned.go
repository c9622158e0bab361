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

// alignedRow is what a part says of a group. Between two parts lie no times, so that their
// columns follow each other as they are, unless a series that has points on both sides
// of a part has none in it: that is interpolated, and the merge refuses.
type alignedRow struct {
	time    []int64
	bits    []uint64
	floats  bool
	members []alignedMember // ascending
}

// alignedMember is a series with points in a part.
type alignedMember struct {
	span        *seriesData
	late, early bool           // it has none in the first, in the last rows of its group
	first, last encoding.Value // at the first and the last time, for rates
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

// copyAligned copies a row, and adds a segment with the annotations of each span.
func (m *Merger) copyAligned(p *alignedPart, row *batch.Aligned) (*alignedRow, error) {
	a := &alignedRow{floats: row.Kind&batch.AlignedFloat != 0}
	if m.plan.Rate != nil && !a.floats && len(row.Time) > 0 {
		return nil, fmt.Errorf("merge: group %X has rates in the part from %X that are integers", row.Group, p.start)
	}
	if err := m.account(int64(len(row.Time)*16 + len(row.Spans)*(alignedMemberBytes+segmentBytes))); err != nil {
		return nil, err
	}

	a.time, a.bits = m.memory.points.copyOf(row.Time, m.memory.times.copy), m.memory.bits.copy(row.Bits)
	a.members = make([]alignedMember, 0, len(row.Spans))
	note, edge := 0, 0
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

		if note < len(row.Notes) && int(row.NoteSpan[note]) == i {
			s := &m.memory.segments.alloc(1)[0]
			s.part = p.start
			for ; note < len(row.Notes) && int(row.NoteSpan[note]) == i; note++ {
				s.notes = append(s.notes, m.memory.bytes.copy(row.Notes[note]))
				if err := m.account(int64(len(row.Notes[note]))); err != nil {
					return nil, err
				}
			}
			sp.addSegment(s)
		}
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
			if edge+batch.Edges(row.Flags[i]) > len(row.EdgeBits) {
				return nil, fmt.Errorf("merge: group %X lacks edges in the part from %X", row.Group, p.start)
			}
			if !member.late {
				member.first = row.Edge(edge)
				edge++
			}
			if !member.early {
				member.last = row.Edge(edge)
				edge++
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

// alignedRows returns what the parts have of a group, in time order. The error is ErrOrder if
// they cannot follow each other.
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
			case sp.alignedSeen != n || sp.alignedEnded || member.late: //fault:aligned-hole-between-parts TestAligned_everyHole
				return nil, ErrOrder
			}
			sp.alignedSeen, sp.alignedEnded = n+1, member.early
		}
	}
	return rows, nil
}

// aligned makes the points of a group of aligned rows. The error is an
// *aggregate.InfinityError, or ErrOrder.
func (a *aggregation) aligned(key []byte, out *encoding.Points) error {
	rows, err := a.alignedRows(key)
	if err != nil {
		return err
	}

	first, last := max(a.query.Start, a.query.From*1000), min(a.query.End, a.query.To*1000)
	for n, row := range rows {
		if err := a.m.Check(); err != nil {
			return err
		}
		from := 0
		switch {
		case a.query.Rate && n == 0:
			from = 1 // the rates from 1970
		case a.query.Rate:
			row.bits[0] = a.seam(rows[n-1], row)
		}
		for i := from; i < len(row.time); i++ {
			t := row.time[i]
			if t < first || t > last {
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

// seam returns the bits of the aggregated rates at the first time of a row, from the points at
// the last time of the row before it.
func (a *aggregation) seam(before, row *alignedRow) uint64 {
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
