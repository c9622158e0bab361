package operator

import (
	"bytes"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/store"
)

// admission checks row keys. The store's filter may let rows through that the plan
// does not admit; no later stage sees them.
type admission struct {
	plan   *scanplan.Plan
	bounds store.KeyRange
	reads  store.KeyRange // bounds, and the keys of off-hour rows before them that have points of the part
}

func newAdmission(part *scanplan.Part) admission {
	reads := part.Plan.Reads(part.Range)
	return admission{plan: &part.Plan, bounds: store.KeyRange{Start: part.Range.Start, Stop: part.Range.Stop},
		reads: store.KeyRange{Start: reads.Start, Stop: reads.Stop}}
}

// Admits reports whether a plan's predicates admit a series, by its span.
func Admits(p *scanplan.Plan, span []byte) bool {
	a := admission{plan: p}
	return a.span(span)
}

// row reports whether the row is in the part and in the plan's hours and metric.
func (a *admission) row(key []byte, k encoding.RowKey) bool {
	base := int64(k.BaseTime)
	return a.bounds.Contains(key) && base >= a.plan.From && base < a.plan.To && bytes.Equal(k.Metric, a.plan.Metric)
}

// span reports whether the plan's predicates admit a series.
func (a *admission) span(span []byte) bool {
	s := a.plan.Schema
	tags := s.SpanTags(span)
	for i := range a.plan.Tags {
		p := &a.plan.Tags[i]
		value, ok := s.Tag(tags, p.TagK)
		if !ok || !admitsValue(p, value) { //fault:filter-not-checked-again TestPerSeries_superset
			return false
		}
	}

	// All tags of the plan are there, so other ones would make the key longer.
	if a.plan.Exact && len(tags) != len(a.plan.Tags)*s.TagWidth() {
		return false
	}
	return len(a.plan.TSUIDs) == 0 || contains(a.plan.TSUIDs, s.SpanTSUID(span))
}

// admitsValue reports whether a predicate admits a tag value.
func admitsValue(p *scanplan.TagPredicate, value encoding.UID) bool {
	switch p.Op {
	case scanplan.In:
		return contains(p.Values, value)
	case scanplan.NotIn:
		return !contains(p.Values, value)
	}
	return true
}

// contains reports whether u is among sorted UIDs.
func contains(sorted []encoding.UID, u []byte) bool {
	_, found := slices.BinarySearchFunc(sorted, u, func(a encoding.UID, b []byte) int { return bytes.Compare(a, b) })
	return found
}
