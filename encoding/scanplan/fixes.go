package scanplan

import (
	"fmt"
	"strings"
)

// Fixes is a set of known errors of OpenTSDB that are corrected when the plan is
// computed. The empty set, the default, gives OpenTSDB's own answers. A server that
// does not know one of them refuses the plan.
type Fixes uint8

const (
	// FixRateStart gives a series its first rate at its second point. OpenTSDB has one
	// at the first point too, measured from the value 0 in 1970, and adds it to the
	// group at all times before the second point. Source: RateSpan.
	FixRateStart Fixes = 1 << iota
	// FixGaps makes count, first and last see only the series that have a point at a
	// time. In OpenTSDB each series between two of its points counts as a 0.
	// Source: Aggregators.Interpolation.ZIM.
	FixGaps
	// FixIntegers aggregates in doubles, even if all points are integers: sums do not
	// wrap, and averages and interpolation do not truncate.
	// Source: AggregationIterator.nextLongValue.
	FixIntegers
	// FixDamaged leaves out rows that cannot be read, where a query fails otherwise. OpenTSDB
	// shows what it can of some of them. Answers to such a plan are not cached.
	FixDamaged

	allFixes = FixRateStart | FixGaps | FixIntegers | FixDamaged
)

// fixNames are the names of the fixes in the order of their bits.
var fixNames = [...]string{"rate-start", "gaps", "integers", "damaged"}

// String lists the names of the fixes.
func (f Fixes) String() string {
	var names []string
	for i, name := range fixNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// validate returns an error for bits that are no fix.
func (f Fixes) validate() error {
	if f&^allFixes != 0 {
		return fmt.Errorf("scanplan: fixes %08b have bits that are not known, want only those of %08b", uint8(f),
			uint8(allFixes))
	}
	return nil
}
