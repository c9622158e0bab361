package resultcache

import (
	"crypto/sha256"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// ID names what a part, or a plan, answers as long as its rows do not change. It is
// a SHA-256 sum. The sums of parts and of plans are those of different texts: that
// of a part begins with partDomain, that of a plan with planDomain.
type ID [sha256.Size]byte

const (
	partDomain = "part\x00"
	planDomain = "plan\x00"

	// identityBytes is the room for an identity, so that those of most plans are written without
	// growing.
	identityBytes = 512
)

// PartKey returns the ID of a part: the sum of its identity, without the fields that its answer
// does not depend on.
func PartKey(part *scanplan.Part) ID {
	p := *part
	dropUnread(&p)
	return sha256.Sum256(p.AppendIdentity(append(make([]byte, 0, identityBytes), partDomain...)))
}

// PlanKey returns the ID of a caller's result of all parts of a plan. variant, a name
// without a zero byte, distinguishes several results of a plan. The ID does not depend
// on the bounds that an answer is only trimmed to, see scanplan.Plan.Untrimmed.
func PlanKey(plan *scanplan.Plan, variant string) ID {
	untrimmed := plan.Untrimmed()
	text := append(make([]byte, 0, identityBytes), planDomain...)
	text = append(append(text, variant...), 0)
	return sha256.Sum256(untrimmed.AppendIdentity(text))
}

// dropUnread removes fields that the part's operator does not read, so that parts with
// the same answer have the same identity.
func dropUnread(p *scanplan.Part) {
	// The gateway aggregates what a per-series part ships.
	if p.Mode == scanplan.PerSeries {
		p.Plan.Aggregator, p.Plan.GroupBy, p.Plan.Rate = "", nil, nil
	}
	if h := p.Plan.Histograms; h != nil {
		// The gateway computes percentiles from the histograms that a part ships.
		p.Plan.Histograms = &scanplan.Histograms{Codec: h.Codec}
	}
	p.Plan = p.Plan.Untrimmed() // the gateway trims answers to the query's bounds

	// In whole hours with buckets that divide the hour, nothing depends on the plan's
	// other hours. No row outside of the plan's hours is admitted. Rows of rollups are
	// not hours.
	hours, whole := p.Plan.WholeHours(p.Range)
	if !whole || p.Plan.Rollup != nil || hours.From < p.Plan.From || hours.To > p.Plan.To {
		return
	}
	// Of windows only those count that have points in the hours.
	if w := p.Plan.Window; w != nil {
		around, _ := w.Around(hours.From*1000, hours.To*1000) // if none does, nothing is answered
		p.Plan.Window = &around
	} else if !p.Plan.Downsample.DividesHour() {
		return
	}

	from, to := hours.From, hours.To

	// A partial aggregate, and windows, also have the points at those ends of the part where the plan continues:
	// leave an hour of the plan there.
	if p.Mode.IsPartial() || p.Plan.Window != nil {
		if p.Plan.From != hours.From {
			from -= encoding.RowSeconds
		}
		if p.Plan.To != hours.To {
			to += encoding.RowSeconds
		}
	}

	p.Plan.From, p.Plan.To = from, to
	p.Plan.Start, p.Plan.End = 0, 0 // Untrimmed has made them of From and To
	// Ranges decide whether a bucket at the part's end is whole: hour buckets are never cut.
	p.Plan.Ranges = nil //fault:answer-to-other-tags TestKey
}
