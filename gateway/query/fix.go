package query

import (
	"fmt"
	"slices"
	"strings"

	"downpour/encoding/scanplan"
)

// Fixes are OpenTSDB's known errors that a query is answered without, a set of
// bits. Dashboards depend on them, so none is put right unless somebody asks: for
// a gateway by DOWNPOUR_FIX, for one query by the parameter fix of its request
// line. Both list names, or say all or none.
type Fixes uint16

// The fixes. The first three are the plan's.
const (
	FixRateStart = Fixes(scanplan.FixRateStart)
	FixGaps      = Fixes(scanplan.FixGaps)
	FixIntegers  = Fixes(scanplan.FixIntegers)
	// FixFilters lets every filter of a key hold, and stars match as one
	// expects. OpenTSDB unites some filters of one key and forgets others, and
	// takes only the ends of a wildcard seriously.
	// Source: TsdbQuery.findGroupBys, TagVWildcardFilter.
	FixFilters Fixes = 1 << 8
	// FixSeconds keeps of the points of one second the last, where times are
	// printed as seconds. OpenTSDB prints a key for each.
	FixSeconds Fixes = 1 << 9
	// FixTimezone reads the parameter timezone of a GET, as a POST's.
	// OpenTSDB passes over it.
	FixTimezone Fixes = 1 << 10

	allFixes = FixRateStart | FixGaps | FixIntegers | FixFilters | FixSeconds | FixTimezone
)

var fixNames = []struct {
	name string
	fix  Fixes
}{
	{"rate-start", FixRateStart}, {"gaps", FixGaps}, {"integers", FixIntegers},
	{"filters", FixFilters}, {"seconds", FixSeconds}, {"timezone", FixTimezone},
}

// ParseFixes reads a comma list of names; all and none stand alone, and an empty
// text is none.
func ParseFixes(text string) (f Fixes, err error) {
	switch text {
	case "", "none":
		return 0, nil
	case "all":
		return allFixes, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(fixNames, func(n struct {
			name string
			fix  Fixes
		}) bool {
			return n.name == strings.TrimSpace(name)
		})
		if i < 0 {
			return 0, fmt.Errorf("got %q, want a list of %s, or all or none", name, strings.Join(fixList(), ", "))
		}
		f |= fixNames[i].fix
	}
	return f, nil
}

func fixList() (names []string) {
	for _, n := range fixNames {
		names = append(names, n.name)
	}
	return names
}

// Plan are the fixes that a plan's arithmetic makes.
func (f Fixes) Plan() scanplan.Fixes { return scanplan.Fixes(f & 0xFF) }

// Has tells whether a fix is among them.
func (f Fixes) Has(fix Fixes) bool { return f&fix != 0 }

// setFix says what is put right in q.
func (q *Query) setFix(f Fixes) {
	q.Fix = f
	for i := range q.Queries {
		for j := range q.Queries[i].Filters {
			if w := q.Queries[i].Filters[j].wildcard; w != nil {
				w.strict = f.Has(FixFilters)
			}
		}
	}
}
