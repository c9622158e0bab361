package exp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"downpour/encoding"
)

// Tag is a tag that all members of a series have in common.
type Tag struct {
	K, V string
	UIDs encoding.TagPair
}

// TagKey is the key of a tag that was aggregated away.
type TagKey struct {
	Name string
	UID  encoding.UID
}

// Labels distinguish a series from others.
type Labels struct {
	Metrics    []string // sorted
	Tags       []Tag    // ascending by the UIDs of their keys
	Aggregated []TagKey // ascending by UID
}

// key returns what a join compares of a series. filterTags are the tag keys that the
// variable's filter names. Source: VariableIterator.flattenTags.
func (l *Labels) key(j Join, filterTags []filterTag) string {
	if len(l.Tags) == 0 {
		return "" // aggregated tags alone do not count
	}
	var key []byte
	for i := range l.Tags {
		if t := &l.Tags[i]; j.compares(t.K, filterTags) {
			key = append(append(key, t.UIDs.K...), t.UIDs.V...)
		}
	}
	if j.IncludeAggTags {
		for _, t := range l.Aggregated {
			key = append(key, t.UID...)
		}
	}
	return string(key)
}

// filterTag is a tag key that a filter names.
type filterTag struct {
	key     string
	grouped bool // the filter groups by it
}

// compares reports whether a join compares the values of a tag.
func (j Join) compares(key string, filterTags []filterTag) bool {
	if !j.UseQueryTags && !j.UseGroupTags {
		return true
	}
	return slices.ContainsFunc(filterTags, func(f filterTag) bool {
		return f.key == key && (f.grouped || !j.UseGroupTags)
	})
}

// row is the series that make up one series of a table.
type row struct {
	key     string
	members []int // the series of each variable, -1 where it has none
}

// join returns the series of an expression, in the order of their keys, and as steps all series
// whose times become those of the table. If two series of one variable have equal keys the later
// one counts. The error is a *DataError: an intersection is empty.
// Source: UnionIterator, IntersectionIterator.
func join(j Join, variables []*variable) (rows []row, steps []*series, err error) {
	byKey := map[string][]int{}
	keys := make([][]string, len(variables)) // of each variable's series
	for i, v := range variables {
		for s := range v.series {
			key := v.series[s].labels.key(j, v.filterTags)
			keys[i] = append(keys[i], key)
			members := byKey[key]
			if members == nil {
				members = slices.Repeat([]int{-1}, len(variables))
				byKey[key] = members
			}
			members[i] = s
		}
	}

	for key, members := range byKey {
		if j.Operator == "intersection" && slices.Contains(members, -1) {
			continue
		}
		rows = append(rows, row{key, members})
	}
	// If no variable has a series, OpenTSDB does not get to the search for common ones.
	if j.Operator == "intersection" && len(rows) == 0 && len(byKey) > 0 {
		return nil, nil, &DataError{"No intersections found: " + sizes(variables)}
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.key, b.key) })

	// A union steps through all series, also those that a later one with their key replaced; an
	// intersection through some of them, see stepped.
	order := hashOrder(variables)
	for place, i := range order {
		for s, key := range keys[i] {
			if j.Operator != "intersection" || stepped(byKey[key], order[:place], i, s) {
				steps = append(steps, &variables[i].series[s])
			}
		}
	}
	return rows, steps, nil
}

// stepped reports whether an intersection steps through series s of variable i: members
// are the last series with its key, by variable, and before are the variables that
// OpenTSDB walks before this one. It drops all series of a variable whose key an
// earlier variable lacks. If a later variable lacks the key it drops only the last
// series; those that this one replaced still give times.
func stepped(members []int, before []int, i, s int) bool {
	if !slices.Contains(members, -1) {
		return true
	}
	for _, b := range before {
		if members[b] < 0 {
			return false
		}
	}
	return members[i] != s
}

// sizes lists how many series each variable has, for the error of an empty intersection.
func sizes(variables []*variable) string {
	var parts []string
	for _, v := range variables {
		parts = append(parts, fmt.Sprintf("%s has %d series", v.id, len(v.series)))
	}
	return strings.Join(parts, ", ")
}

// joinLabels returns the labels of a row. The tags are those of the variable that comes
// first in the order of Java's hash map, none if it lacks the series.
// Source: ExpressionDataPoint.
func joinLabels(r row, variables []*variable) Labels {
	var out Labels
	for place, i := range hashOrder(variables) {
		if r.members[i] < 0 {
			continue
		}
		l := &variables[i].series[r.members[i]].labels
		if place == 0 {
			out.Tags = l.Tags
		}
		out.Metrics = append(out.Metrics, l.Metrics...)
		out.Aggregated = append(out.Aggregated, l.Aggregated...)
	}

	slices.Sort(out.Metrics)
	out.Metrics = slices.Compact(out.Metrics)
	slices.SortFunc(out.Aggregated, func(a, b TagKey) int { return bytes.Compare(a.UID, b.UID) })
	out.Aggregated = slices.CompactFunc(out.Aggregated, func(a, b TagKey) bool { return bytes.Equal(a.UID, b.UID) })
	return out
}
