package hbasefake

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
)

// rowFilter is a scan's filter and column restriction.
type rowFilter struct {
	families  map[string]bool               // empty: all
	from, to  int64                         // timestamps, half-open, ms
	rows      []func(key []byte) bool       // all must admit a row
	last      []byte                        // where the last range of rows ends; nil without one
	cells     []func(qualifier []byte) bool // all must admit a cell
	firstOnly bool                          // only the first cell of a row
	keyOnly   bool                          // cells without values
}

func newFilter(spec *pb.Scan) (*rowFilter, error) {
	f := &rowFilter{families: map[string]bool{}, to: math.MaxInt64}
	for _, col := range spec.Column {
		f.families[string(col.Family)] = true
	}

	if tr := spec.TimeRange; tr != nil {
		f.from = int64(tr.GetFrom())
		if tr.To != nil {
			f.to = int64(tr.GetTo())
		}
	}

	if spec.Filter == nil {
		return f, nil
	}
	return f, f.add(spec.Filter)
}

// add decodes a filter and adds what it demands; for lists see addList.
func (f *rowFilter) add(m *pb.Filter) error {
	body := m.GetSerializedFilter()
	// The name is that of a Java class, with its package.
	switch m.GetName()[strings.LastIndexByte(m.GetName(), '.')+1:] {
	case "FilterList":
		return f.addList(body)
	case "RowFilter":
		return f.addRegex(body)
	case "MultiRowRangeFilter":
		return f.addRanges(body)
	case "ColumnRangeFilter":
		match, err := columnRange(body)
		f.cells = append(f.cells, match)
		return err
	case "MultipleColumnPrefixFilter":
		match, err := columnPrefixes(body)
		f.cells = append(f.cells, match)
		return err
	case "FirstKeyOnlyFilter":
		f.firstOnly = true
		return nil
	case "KeyOnlyFilter":
		f.keyOnly = true
		return nil
	}

	return throw(doNotRetry, "filter %s", m.GetName())
}

func (f *rowFilter) addList(body []byte) error {
	var list pb.FilterList
	if err := proto.Unmarshal(body, &list); err != nil {
		return throw(doNotRetry, "%v", err)
	}
	if list.GetOperator() == pb.FilterList_MUST_PASS_ALL {
		for _, m := range list.Filters {
			if err := f.add(m); err != nil {
				return err
			}
		}
		return nil
	}

	// Clients use "one must pass" only for column ranges.
	var any []func([]byte) bool
	for _, m := range list.Filters {
		match, err := columnRange(m.GetSerializedFilter())
		if err != nil {
			return err
		}
		any = append(any, match)
	}

	f.cells = append(f.cells, func(q []byte) bool {
		return slices.ContainsFunc(any, func(match func([]byte) bool) bool { return match(q) })
	})
	return nil
}

// addRegex accepts only the form of an expression that is known to lose no rows: Java's
// engine with ISO-8859-1.
func (f *rowFilter) addRegex(body []byte) error {
	var rf pb.RowFilter
	var re pb.RegexStringComparator
	if err := proto.Unmarshal(body, &rf); err != nil {
		return throw(doNotRetry, "%v", err)
	}
	if err := proto.Unmarshal(rf.GetCompareFilter().GetComparator().GetSerializedComparator(), &re); err != nil {
		return throw(doNotRetry, "%v", err)
	}

	if re.GetEngine() != "JAVA" || re.GetCharset() != "ISO-8859-1" {
		return throw(doNotRetry, "engine %q, charset %q", re.GetEngine(), re.GetCharset())
	}

	expr, err := regexp.Compile(re.GetPattern())
	if err != nil {
		return throw(doNotRetry, "%v", err)
	}
	f.rows = append(f.rows, func(key []byte) bool { return expr.MatchString(latin1(key)) })
	return nil
}

// latin1 returns a string of one character for each byte.
func latin1(b []byte) string {
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return string(runes)
}

func (f *rowFilter) addRanges(body []byte) error {
	var m pb.MultiRowRangeFilter
	if err := proto.Unmarshal(body, &m); err != nil || len(m.RowRangeList) == 0 {
		return throw(doNotRetry, "row ranges: %d, %v", len(m.RowRangeList), err)
	}
	if last := m.RowRangeList[len(m.RowRangeList)-1].StopRow; len(last) > 0 {
		f.last = last
	}
	f.rows = append(f.rows, func(key []byte) bool {
		return slices.ContainsFunc(m.RowRangeList, func(r *pb.RowRange) bool {
			return bytes.Compare(key, r.StartRow) >= 0 && (len(r.StopRow) == 0 || bytes.Compare(key, r.StopRow) < 0)
		})
	})
	return nil
}

// columnRange decodes a ColumnRangeFilter.
func columnRange(body []byte) (func([]byte) bool, error) {
	var m pb.ColumnRangeFilter
	if err := proto.Unmarshal(body, &m); err != nil {
		return nil, throw(doNotRetry, "%v", err)
	}
	return func(q []byte) bool {
		return bytes.Compare(q, m.MinColumn) >= 0 && (m.MaxColumn == nil || bytes.Compare(q, m.MaxColumn) < 0)
	}, nil
}

// columnPrefixes decodes a MultipleColumnPrefixFilter. As HBase does it looks only at the
// last prefix that is not above a qualifier: of "c" and "count" the first has no "cz".
func columnPrefixes(body []byte) (func([]byte) bool, error) {
	var m pb.MultipleColumnPrefixFilter
	if err := proto.Unmarshal(body, &m); err != nil {
		return nil, throw(doNotRetry, "%v", err)
	}
	slices.SortFunc(m.SortedPrefixes, bytes.Compare)
	return func(q []byte) bool {
		above := slices.IndexFunc(m.SortedPrefixes, func(p []byte) bool { return bytes.Compare(p, q) > 0 })
		if above < 0 {
			above = len(m.SortedPrefixes)
		}
		return above > 0 && bytes.HasPrefix(q, m.SortedPrefixes[above-1])
	}, nil
}

// endsBefore reports whether a row shows that the filter admits no more rows.
func (f *rowFilter) endsBefore(key []byte) bool {
	return f.last != nil && bytes.Compare(key, f.last) >= 0
}

// ofFamily reports whether a cell is of a family that is wanted.
func (f *rowFilter) ofFamily(c cell) bool {
	return len(f.families) == 0 || f.families[string(c.family)]
}

// apply returns what a scan sees of a row; a row without cells if it sees none.
func (f *rowFilter) apply(r *row) *row {
	kept := &row{key: r.key}
	for _, match := range f.rows {
		if !match(r.key) {
			return kept
		}
	}

	for _, c := range r.cells {
		if !f.ofFamily(c) || c.timestamp < f.from || c.timestamp >= f.to {
			continue
		}
		if slices.ContainsFunc(f.cells, func(match func([]byte) bool) bool { return !match(c.qualifier) }) {
			continue
		}

		if f.keyOnly {
			c.value = nil
		}
		kept.cells = append(kept.cells, c)
		if f.firstOnly {
			break
		}
	}

	return kept
}
