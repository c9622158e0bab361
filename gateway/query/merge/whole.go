package merge

import (
	"bytes"
	"math"
	"slices"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/aggregate"
)

// wholeGroup is a group of a plan whose partial aggregates were all returned by one part: no
// series goes on in another part, so nothing is joined, and no span is looked up. Spans may
// be a great many.
type wholeGroup struct {
	key     []byte
	buckets *buckets // nil if no member has points
	spans   [][]byte // members with points, in span order
	notes   [][]byte // of all members
}

// isWhole reports whether a part with partial aggregates is all of the plan.
func (m *Merger) isWhole(part scanplan.KeyRange) bool {
	if len(m.plan.Ranges) != 1 || m.passesName != nil || m.older != nil {
		return false
	}
	r := m.plan.Ranges[0]
	return bytes.Equal(part.Start, r.Start) && bytes.Equal(part.Stop, r.Stop)
}

// addWhole adds a row of a part that is all of the plan.
func (m *Merger) addWhole(p *partialPart, row *batch.Partial) error {
	p.groups[string(row.Group)] = &groupPartial{} // it must not come twice
	g := wholeGroup{key: bytes.Clone(row.Group)}
	var err error
	if g.buckets, err = m.copyBuckets(p, row); err != nil {
		return err
	}

	size := int64(groupBytes)
	for i, id := range row.Spans {
		size += int64(len(id))
		if row.Flags[i]&batch.EdgeAnnotationsOnly == 0 {
			size += wholeSpanBytes
		}
	}
	for _, n := range row.Notes {
		size += sliceBytes + int64(len(n))
	}
	if err := m.account(size); err != nil {
		return err
	}

	for _, n := range row.Notes {
		g.notes = append(g.notes, m.memory.bytes.copy(n))
	}
	// The reader gives each row's spans memory of their own, except for the slice of them.
	g.spans = make([][]byte, 0, len(row.Spans))
	for i, id := range row.Spans {
		if row.Flags[i]&batch.EdgeAnnotationsOnly == 0 {
			g.spans = append(g.spans, id)
		}
	}
	m.whole = append(m.whole, g)
	return nil
}

// wholeSpanBytes is the memory of a span in addition to its bytes: in its group, and as TSUID.
const wholeSpanBytes = 2 * sliceBytes

// group makes the group, without counting its points.
func (w *wholeGroup) group(a *aggregation) (Group, error) {
	g := Group{Key: w.key, Spans: w.spans, Notes: w.notes}
	a.m.describe(&g)
	if w.buckets == nil {
		return g, nil
	}

	p := a.m.plan
	a.m.receive(&a.received, w.buckets)
	values := make([]float64, len(w.buckets.live)) // those of buckets without a point are not used
	a.fn.Finish(&a.received, 0, values)
	for i, v := range values {
		t := p.From*1000 + int64(i)*p.Downsample.Interval
		if !a.received.Real[i] || t < p.Start || t > p.End {
			continue
		}
		if math.IsInf(v, 0) {
			return g, &aggregate.InfinityError{Value: v, Time: t}
		}
		g.Points.Append(t, encoding.FloatValue(v))
	}
	return g, nil
}

// wholeMembers returns the groups of a part that is all of the plan, in the order of the
// answer.
func (m *Merger) wholeMembers() (all []groupMembers) {
	for i := range m.whole {
		all = append(all, groupMembers{key: m.whole[i].key, whole: &m.whole[i]})
	}
	slices.SortFunc(all, func(a, b groupMembers) int { return bytes.Compare(a.key, b.key) })
	return all
}
