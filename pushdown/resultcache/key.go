package resultcache

import (
	"crypto/sha256"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// ID names what a part answers over rows that do not change.
type ID [sha256.Size]byte

// PartKey is the ID of a part: that of its wire form, without what its answer does
// not depend on. False is a part that has no wire form.
func PartKey(part *scanplan.Part) (ID, bool) {
	p := *part
	dropUnread(&p)
	ticket, err := p.MarshalTicket()
	if err != nil {
		return ID{}, false
	}
	return sha256.Sum256(ticket), true
}

// PlanKey is the ID of what is made of all parts of a plan, in one of several
// ways that the caller has names for. It does not name the bounds that an answer
// is only trimmed to, see scanplan.Plan.Untrimmed.
func PlanKey(plan *scanplan.Plan, way string) (ID, bool) {
	p := scanplan.Part{Plan: plan.Untrimmed(), Mode: scanplan.Mode("whole " + way)} // no part has such a mode
	ticket, err := p.MarshalTicket()
	if err != nil {
		return ID{}, false
	}
	return sha256.Sum256(ticket), true
}

// dropUnread replaces fields of the plan that the operator does not read, or reads
// only as what is left in their place.
func dropUnread(p *scanplan.Part) {
	if p.Mode == scanplan.PerSeries {
		p.Plan.Aggregator, p.Plan.GroupBy, p.Plan.Rate = "", nil, nil
	}
	p.Plan = p.Plan.Untrimmed()
	hours, whole := p.Plan.WholeHours(p.Range)
	if !whole || !p.Plan.Downsample.DividesHour() || hours.From < p.Plan.From || hours.To > p.Plan.To {
		return
	}
	from, to := hours.From, hours.To
	if p.Mode == scanplan.PartialAggregation { // edges are open where the plan goes on
		if p.Plan.From != hours.From {
			from -= encoding.RowSeconds
		}
		if p.Plan.To != hours.To {
			to += encoding.RowSeconds
		}
	}
	p.Plan.From, p.Plan.To = from, to
	p.Plan.Start, p.Plan.End = 0, 0 // which Untrimmed has made of From and To
	p.Plan.Ranges = nil
}
