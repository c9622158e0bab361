package scanplan

import (
	"fmt"
	"strings"
)

// Fixes are known errors of OpenTSDB that a plan's arithmetic puts right, a set of
// bits. None, the default, gives OpenTSDB's own answers. A server that does not
// know one refuses the plan.
type Fixes uint8

const (
	// FixRateStart gives a series its first rate at its second point. OpenTSDB
	// measures one at the first point too, from 0 in 1970, and adds it to its
	// group at all times before the second. Source: RateSpan.
	FixRateStart Fixes = 1 << iota
	// FixGaps lets count, first and last see only the series that have a point
	// at a time. OpenTSDB gives them a 0 of each series between two points.
	// Source: Aggregators.Interpolation.ZIM.
	FixGaps
	// FixIntegers aggregates in doubles whatever the points are: integers
	// neither wrap nor are cut off by averages and interpolation.
	// Source: AggregationIterator.nextLongValue.
	FixIntegers

	allFixes = FixRateStart | FixGaps | FixIntegers
)

// fixNames are the fixes in the order of their bits.
var fixNames = [...]string{"rate-start", "gaps", "integers"}

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

func (f Fixes) validate() error {
	if f&^allFixes != 0 {
		return fmt.Errorf("scanplan: fixes %08b, of which some are not known", uint8(f))
	}
	return nil
}
