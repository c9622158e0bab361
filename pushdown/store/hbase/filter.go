package hbase

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"downpour/encoding"
	"downpour/pushdown/store"

	"github.com/tsuna/gohbase/filter"
	"github.com/tsuna/gohbase/pb"
)

// scanFilters are the filters of a scan. Each region gets those ranges that overlap it,
// and all the others.
type scanFilters struct {
	ranges  []store.KeyRange // sorted and disjoint; empty: all keys
	rows    []filter.Filter  // of row keys
	columns filter.Filter    // nil: all columns; a cellblock.ColumnSet may replace it
	keys    []filter.Filter  // leave the key of a row and one cell
}

// Whether a bound of a range belongs to the range.
const inclusive, exclusive = true, false

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
		f.rows = append(f.rows, rowRegex(Pattern(p)))
	}
	if len(s.Columns) > 0 {
		f.columns = columnFilter(s.Columns)
	}
	if s.KeysOnly {
		if len(s.Columns) == 0 {
			// Only without column ranges: servers before 2.1 would take a cell
			// that the ranges reject for the row's first.
			first := filter.NewFirstKeyOnlyFilter()
			f.keys = append(f.keys, &first)
		}
		const lengthAsValue = false
		f.keys = append(f.keys, filter.NewKeyOnlyFilter(lengthAsValue))
	}

	return f, nil
}

// checkRanges returns an error unless the ranges are sorted, disjoint and not
// empty: HBase refuses a range that ends before it begins.
func checkRanges(what string, ranges []store.KeyRange) error {
	for i, r := range ranges {
		if len(r.Stop) != 0 && bytes.Compare(r.Start, r.Stop) >= 0 {
			return fmt.Errorf("%s: range %d: got [%x, %x), want start before stop", what, i, r.Start, r.Stop)
		}

		if i > 0 {
			if prev := ranges[i-1].Stop; len(prev) == 0 || bytes.Compare(prev, r.Start) > 0 {
				return fmt.Errorf("%s: range %d begins at %x, want it at or after %x", what, i, r.Start, prev)
			}
		}
	}
	return nil
}

// rowRegex returns a filter that admits row keys in which pattern occurs. This is
// the only form of a regular expression that loses no rows: Java's engine, one byte
// a character (ISO-8859-1). The other engine, JONI, reads the pattern as UTF-8 and
// loses rows whose keys have bytes from 80 up.
func rowRegex(pattern string) filter.Filter {
	comparator := filter.NewRegexStringComparator(pattern, 0, "ISO-8859-1", "JAVA")
	return filter.NewRowFilter(filter.NewCompareFilter(filter.Equal, comparator))
}

// columnFilter returns a filter that admits cells in any of the ranges, which are
// ascending and disjoint. Several ranges that are prefixes become one filter, which looks
// each qualifier up among them and lets the server seek over the cells in between. A list
// of filters would work for any ranges, but a server calls every filter of a list for
// each cell and remembers each result: a scan of rollups takes 1.3 to 1.8 times as long.
// Source: FilterListWithOR, MultipleColumnPrefixFilter.
func columnFilter(columns []store.KeyRange) filter.Filter {
	var list []filter.Filter
	var prefixes [][]byte
	for _, c := range columns {
		list = append(list, filter.NewColumnRangeFilter(nilIfEmpty(c.Start), nilIfEmpty(c.Stop), inclusive, exclusive))
		if isPrefix(c) {
			prefixes = append(prefixes, c.Start)
		}
	}

	switch {
	case len(list) == 1:
		return list[0]
	case len(prefixes) == len(columns):
		// HBase looks only at the last prefix that is not above a qualifier. That is
		// enough, because none begins with another: the ranges are disjoint.
		return filter.NewMultipleColumnPrefixFilter(prefixes)
	}
	return filter.NewList(filter.MustPassOne, list...)
}

// isPrefix reports whether a range is all that begins with its start.
func isPrefix(r store.KeyRange) bool {
	return len(r.Start) > 0 && bytes.Equal(r.Stop, encoding.PrefixEnd(r.Start))
}

// nilIfEmpty returns nil for an empty bound: a message then lacks the field, which
// means that there is no bound.
func nilIfEmpty(bound []byte) []byte {
	if len(bound) == 0 {
		return nil
	}
	return bound
}

// firstWanted returns the first key at or after key that the ranges admit; false
// if there is none.
func (f *scanFilters) firstWanted(key []byte) ([]byte, bool) {
	if len(f.ranges) == 0 {
		return key, true
	}

	i := f.firstEndingAfter(key)
	if i == len(f.ranges) {
		return nil, false
	}
	if bytes.Compare(f.ranges[i].Start, key) > 0 {
		return f.ranges[i].Start, true
	}
	return key, true
}

// firstEndingAfter returns the index of the first range that contains key or comes after it.
func (f *scanFilters) firstEndingAfter(key []byte) int {
	return sort.Search(len(f.ranges), func(i int) bool {
		stop := f.ranges[i].Stop
		return len(stop) == 0 || bytes.Compare(stop, key) > 0
	})
}

// forRegion returns the filter of a scan over [start, stop), which is one region or
// the rest of one, with or without that of columns; nil if there is nothing to filter.
func (f *scanFilters) forRegion(start, stop []byte, columns bool) (*pb.Filter, error) {
	// Filters of whole rows go first, then that of columns, and last those that keep only keys.
	var list []filter.Filter
	if len(f.ranges) > 0 {
		list = append(list, f.multiRange(start, stop))
	}
	list = append(list, f.rows...)
	if f.columns != nil && columns {
		list = append(list, f.columns)
	}
	list = append(list, f.keys...)

	switch len(list) {
	case 0:
		return nil, nil
	case 1:
		return list[0].ConstructPBFilter()
	}
	return filter.NewList(filter.MustPassAll, list...).ConstructPBFilter()
}

// multiRange returns a filter that admits the ranges that overlap [start, stop).
func (f *scanFilters) multiRange(start, stop []byte) filter.Filter {
	var ranges []*filter.RowRange
	for _, r := range f.ranges[f.firstEndingAfter(start):] {
		if len(stop) != 0 && bytes.Compare(r.Start, stop) >= 0 {
			break
		}
		ranges = append(ranges, filter.NewRowRange(r.Start, r.Stop, inclusive, exclusive))
	}
	return filter.NewMultiRowRangeFilter(ranges)
}

// DescribeFilter calls the function of this name, for callers that know the store
// only as an interface.
func (st *Store) DescribeFilter(f store.RowFilter) string { return DescribeFilter(f) }

// DescribeFilter returns, for an explained query, what a scan with f has the
// region servers evaluate: "none", "ranges(n)", "regex(…)" or "ranges(n) and
// regex(…)". An expression of more than 200 bytes is cut.
func DescribeFilter(f store.RowFilter) string {
	const maxPattern = 200
	var described []string
	if n := len(f.Ranges); n > 0 {
		described = append(described, fmt.Sprintf("ranges(%d)", n))
	}
	if f.Pattern != nil {
		pattern := Pattern(f.Pattern)
		if len(pattern) > maxPattern {
			pattern = fmt.Sprintf("%s… %d bytes", pattern[:maxPattern], len(pattern))
		}
		described = append(described, "regex("+pattern+")")
	}

	if len(described) == 0 {
		return "none"
	}
	return strings.Join(described, " and ")
}
