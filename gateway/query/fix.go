package query

import (
	"fmt"
	"slices"
	"strings"

	"downpour/encoding/scanplan"
)

// Fixes are known errors of OpenTSDB that are corrected in an answer, as a set of bits.
// Dashboards depend on these errors, so a fix must be requested: for all queries of a
// gateway with DOWNPOUR_FIX, for one query with the parameter fix of its request line. Both
// are a list of names, all, or none.
type Fixes uint16

// The fixes. The first three are part of the scan plan.
const (
	FixRateStart = Fixes(scanplan.FixRateStart)
	FixGaps      = Fixes(scanplan.FixGaps)
	FixIntegers  = Fixes(scanplan.FixIntegers)
	// FixFilters applies every filter of a tag key, and matches wildcards as their stars
	// suggest. OpenTSDB unites some filters of one key and ignores others, and of a
	// wildcard it checks little more than the ends.
	// Source: TsdbQuery.findGroupBys, TagVWildcardFilter.
	FixFilters Fixes = 1 << 8
	// FixSeconds prints only the last point of a second where times are printed in
	// seconds. OpenTSDB prints all of them, with the same key.
	FixSeconds Fixes = 1 << 9
	// FixTimezone applies the parameter timezone of a GET as that of a POST. OpenTSDB
	// ignores it.
	FixTimezone Fixes = 1 << 10

	// FixDamaged leaves out rows that cannot be read. It is part of the scan plan, and not in all:
	// a request for it accepts missing rows, and no other fix loses any.
	FixDamaged = Fixes(scanplan.FixDamaged)

	allFixes = FixRateStart | FixGaps | FixIntegers | FixFilters | FixSeconds | FixTimezone
)

var fixNames = []struct {
	name string
	fix  Fixes
}{
	{"rate-start", FixRateStart}, {"gaps", FixGaps}, {"integers", FixIntegers},
	{"filters", FixFilters}, {"seconds", FixSeconds}, {"timezone", FixTimezone},
	{"damaged", FixDamaged},
}

// ParseFixes parses a comma-separated list of names, or all, or none. An empty text is
// none.
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

// Plan returns the fixes that are part of the scan plan.
func (f Fixes) Plan() scanplan.Fixes { return scanplan.Fixes(f & 0xFF) }

// Contains reports whether a fix is in the set.
func (f Fixes) Contains(fix Fixes) bool { return f&fix != 0 }

// setFix sets the fixes of a query. Each wildcard keeps whether it is fixed, because it
// matches values without knowing the query.
func (q *Query) setFix(f Fixes) {
	q.Fix = f
	for i := range q.Queries {
		for j := range q.Queries[i].Filters {
			if w := q.Queries[i].Filters[j].wildcard; w != nil {
				w.exact = f.Contains(FixFilters)
			}
		}
	}
}
