package hbase

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/filter"
	"github.com/tsuna/gohbase/pb"
)

// scanFilters holds what a scan's region openings share: filters that are the
// same for every region, and the ranges, of which each region gets its own.
type scanFilters struct {
	ranges []store.KeyRange
	fixed  []filter.Filter
}

// newScanFilters checks a scan and prepares its filters.
func newScanFilters(s *store.Scan) (*scanFilters, error) {
	f := &scanFilters{ranges: s.Filter.Ranges}
	if err := checkRanges("row filter", f.ranges); err != nil {
		return nil, err
	}
	if err := checkRanges("columns", s.Columns); err != nil {
		return nil, err
	}
	if p := s.Filter.Pattern; p != nil {
		if err := checkPattern(p); err != nil {
			return nil, err
		}
		f.fixed = append(f.fixed, rowRegex(Pattern(p)))
	}
	if len(s.Columns) > 0 {
		f.fixed = append(f.fixed, columnRanges(s.Columns))
	}
	if s.KeysOnly {
		if len(s.Columns) == 0 {
			// Not behind column ranges: servers before 2.1 count the cells
			// that the ranges reject as the row's first.
			first := filter.NewFirstKeyOnlyFilter()
			f.fixed = append(f.fixed, &first)
		}
		f.fixed = append(f.fixed, filter.NewKeyOnlyFilter(false))
	}
	return f, nil
}

// checkRanges demands sorted, disjoint, non-empty ranges: HBase refuses a range
// that ends before it begins.
func checkRanges(what string, ranges []store.KeyRange) error {
	for i, r := range ranges {
		if len(r.Stop) != 0 && bytes.Compare(r.Start, r.Stop) >= 0 {
			return fmt.Errorf("%s: range %d: got [%x, %x), want start before stop", what, i, r.Start, r.Stop)
		}
		if i > 0 {
			if prev := ranges[i-1].Stop; len(prev) == 0 || bytes.Compare(prev, r.Start) > 0 {
				return fmt.Errorf("%s: range %d begins at %x, want it at or behind %x", what, i, r.Start, prev)
			}
		}
	}
	return nil
}

// rowRegex is the only form that loses no rows: Java's engine, each character
// one byte, "find" instead of "match". JONI reads the pattern as UTF-8 and
// loses rows whose keys have bytes from 80 up.
func rowRegex(pattern string) filter.Filter {
	comparator := filter.NewRegexStringComparator(pattern, 0, "ISO-8859-1", "JAVA")
	return filter.NewRowFilter(filter.NewCompareFilter(filter.Equal, comparator))
}

// columnRanges admits cells in any of the ranges.
func columnRanges(columns []store.KeyRange) filter.Filter {
	var list []filter.Filter
	for _, c := range columns {
		list = append(list, filter.NewColumnRangeFilter(unset(c.Start), unset(c.Stop), true, false))
	}
	if len(list) == 1 {
		return list[0]
	}
	return filter.NewList(filter.MustPassOne, list...)
}

// unset makes an empty bound an absent one.
func unset(bound []byte) []byte {
	if len(bound) == 0 {
		return nil
	}
	return bound
}

// skipTo gives the first key at or behind key that the ranges admit; false if
// there is none.
func (f *scanFilters) skipTo(key []byte) ([]byte, bool) {
	if len(f.ranges) == 0 {
		return key, true
	}
	i := f.firstBehind(key)
	if i == len(f.ranges) {
		return nil, false
	}
	if bytes.Compare(f.ranges[i].Start, key) > 0 {
		return f.ranges[i].Start, true
	}
	return key, true
}

// firstBehind finds the first range that does not end before key.
func (f *scanFilters) firstBehind(key []byte) int {
	return sort.Search(len(f.ranges), func(i int) bool {
		stop := f.ranges[i].Stop
		return len(stop) == 0 || bytes.Compare(stop, key) > 0
	})
}

// build makes the filter for one region's share [start, stop) of the scan; nil
// when there is nothing to filter.
func (f *scanFilters) build(start, stop []byte) (*pb.Filter, error) {
	list := f.fixed
	if len(f.ranges) > 0 {
		list = append([]filter.Filter{f.multiRange(start, stop)}, list...)
	}
	switch len(list) {
	case 0:
		return nil, nil
	case 1:
		return list[0].ConstructPBFilter()
	}
	return filter.NewList(filter.MustPassAll, list...).ConstructPBFilter()
}

// multiRange lists the ranges that touch [start, stop).
func (f *scanFilters) multiRange(start, stop []byte) filter.Filter {
	var ranges []*filter.RowRange
	for _, r := range f.ranges[f.firstBehind(start):] {
		if len(stop) != 0 && bytes.Compare(r.Start, stop) >= 0 {
			break
		}
		ranges = append(ranges, filter.NewRowRange(r.Start, r.Stop, true, false))
	}
	return filter.NewMultiRowRangeFilter(ranges)
}

// DescribeFilter is the function of this name, for those who know the store only
// by what it can do.
func (st *Store) DescribeFilter(f store.RowFilter) string { return DescribeFilter(f) }

// DescribeFilter tells, for an explained query, what a scan with f asks the
// region servers to evaluate: "none", "ranges(n)", "regex(…)" or both. A long
// expression is cut.
func DescribeFilter(f store.RowFilter) string {
	const longest = 200
	var parts []string
	if n := len(f.Ranges); n > 0 {
		parts = append(parts, fmt.Sprintf("ranges(%d)", n))
	}
	if f.Pattern != nil {
		pattern := Pattern(f.Pattern)
		if len(pattern) > longest {
			pattern = fmt.Sprintf("%s… %d bytes", pattern[:longest], len(pattern))
		}
		parts = append(parts, "regex("+pattern+")")
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " and ")
}
