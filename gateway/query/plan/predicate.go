package plan

import (
	"bytes"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
)

// splitFilters divides the filters of one tag key into a predicate, which row keys must
// satisfy, and the rest, which must be checked on names. A filter becomes part of the
// predicate if the UIDs that it admits are known.
func (c *compiler) splitFilters(k keyFilters) (predicate scanplan.TagPredicate, rest []*query.Filter, err error) {
	set := valueSet{op: scanplan.Present}
	if k.pattern != nil { // OpenTSDB's row-key pattern lists values of the key
		set = valueSet{scanplan.In, k.pattern}
	}
	for _, f := range k.post {
		admitted, known := c.admittedValues(f)
		if err := f.filter.Err(); err != nil { //fault:slow-expression-admits-nothing TestRegexp_tooSlow
			return predicate, nil, err
		}
		if known {
			set = set.intersect(admitted)
		} else {
			rest = append(rest, f.filter)
		}
	}

	// A set that excludes nothing only demands the key.
	if set.op == scanplan.NotIn && len(set.values) == 0 {
		set.op = scanplan.Present
	}
	return scanplan.TagPredicate{TagK: k.tagk, Op: set.op, Values: set.values}, rest, nil
}

// admittedValues returns the UIDs of the values that a filter admits. known is false if
// not all of them are known, or if they are more than the expansion limit.
func (c *compiler) admittedValues(r resolvedFilter) (set valueSet, known bool) {
	f := r.filter
	switch {
	case f.Exact() && len(f.Literals()) > c.opt.expansionLimit():
		return valueSet{}, false
	case f.Type == query.LiteralOr:
		return valueSet{scanplan.In, r.literals}, true
	case f.Type == query.NotLiteralOr:
		return valueSet{scanplan.NotIn, c.knownLiterals(f)}, true
	}

	// Any other filter is applied to the listed values that begin with its prefix.
	list := c.names.Lists[f.Prefix()]
	if !list.Complete {
		return valueSet{}, false
	}
	set.op = scanplan.In
	if f.Negative() {
		set.op = scanplan.NotIn
	}
	for _, m := range list.Values {
		// Of a negative filter the values are listed that it does not match.
		if f.Match(m.Name) != f.Negative() {
			set.values = append(set.values, m.UID)
		}
	}
	set.values = sortUIDs(set.values)
	return set, len(set.values) <= c.opt.expansionLimit()
}

// knownLiterals returns the UIDs of those literals that have one. The others are the
// value of no series.
func (c *compiler) knownLiterals(f *query.Filter) (uids []encoding.UID) {
	for _, name := range f.Literals() {
		if u, ok := c.names.TagVs[name]; ok {
			uids = append(uids, u)
		}
	}
	return sortUIDs(uids)
}

// valueSet is a set of tag values, as a predicate has it.
type valueSet struct {
	op     scanplan.TagOp
	values []encoding.UID // ascending; wanted ones of In, unwanted ones of NotIn
}

// intersect returns the values that are in both sets.
func (a valueSet) intersect(b valueSet) valueSet {
	switch {
	case a.op == scanplan.Present:
		return b
	case b.op == scanplan.Present:
		return a
	case a.op == scanplan.NotIn && b.op == scanplan.NotIn:
		return valueSet{scanplan.NotIn, sortUIDs(slices.Concat(a.values, b.values))}
	case a.op == scanplan.NotIn:
		a, b = b, a
	}

	// a lists what is wanted; b decides about each value.
	var both []encoding.UID
	for _, u := range a.values {
		if b.contains(u) {
			both = append(both, u)
		}
	}
	return valueSet{scanplan.In, both}
}

func (a valueSet) contains(u encoding.UID) bool {
	if a.op == scanplan.Present {
		return true
	}
	_, found := slices.BinarySearchFunc(a.values, u, func(x, y encoding.UID) int { return bytes.Compare(x, y) })
	return found == (a.op == scanplan.In)
}
