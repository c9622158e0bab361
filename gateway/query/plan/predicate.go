package plan

import (
	"bytes"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
)

// predicate is what row keys must hold for one tag key. Filters on names whose
// values are known become part of it; the others go to the post filter.
func (c *compiler) predicate(k keyFilters) scanplan.TagPredicate {
	set := valueSet{op: scanplan.Present}
	if k.values != nil {
		set = valueSet{scanplan.In, k.values}
	}
	for _, s := range k.names {
		known, ok := c.valuesOf(s)
		if ok {
			set = set.and(known)
			continue
		}
		if c.out.PostFilter == nil {
			c.out.PostFilter = new(PostFilter)
		}
		c.out.PostFilter.add(condition{tagk: k.tagk, filter: s.filter})
	}
	if set.op == scanplan.NotIn && len(set.values) == 0 {
		set.op = scanplan.Present
	}
	return scanplan.TagPredicate{TagK: k.tagk, Op: set.op, Values: set.values}
}

// valuesOf is what a filter on names admits, as UIDs, if that is known and not
// too much.
func (c *compiler) valuesOf(s filterState) (valueSet, bool) {
	f := s.filter
	switch {
	case f.Exact() && len(f.Literals()) > c.opt.limit():
		return valueSet{}, false
	case f.Type == query.LiteralOr:
		return valueSet{scanplan.In, s.literals}, true
	case f.Type == query.NotLiteralOr:
		return valueSet{scanplan.NotIn, c.knownLiterals(f)}, true
	}
	list := c.names.Lists[f.Prefix()]
	if !list.Complete {
		return valueSet{}, false
	}
	set := valueSet{op: scanplan.In}
	if f.Negative() {
		set.op = scanplan.NotIn
	}
	for _, m := range list.Values {
		if f.Match(m.Name) != f.Negative() {
			set.values = append(set.values, m.UID)
		}
	}
	set.values = sortUIDs(set.values)
	return set, len(set.values) <= c.opt.limit()
}

// knownLiterals are the UIDs of those literals that have one; the others are
// the value of no series.
func (c *compiler) knownLiterals(f *query.Filter) (uids []encoding.UID) {
	for _, name := range f.Literals() {
		if u, ok := c.names.TagVs[name]; ok {
			uids = append(uids, u)
		}
	}
	return sortUIDs(uids)
}

// valueSet is a set of tag values, as a plan's predicate has it.
type valueSet struct {
	op     scanplan.TagOp
	values []encoding.UID // ascending; of In wanted, of NotIn unwanted
}

// and is the intersection of two sets.
func (a valueSet) and(b valueSet) valueSet {
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
	var both []encoding.UID
	for _, u := range a.values {
		if b.has(u) {
			both = append(both, u)
		}
	}
	return valueSet{scanplan.In, both}
}

func (a valueSet) has(u encoding.UID) bool {
	if a.op == scanplan.Present {
		return true
	}
	_, found := slices.BinarySearchFunc(a.values, u, func(x, y encoding.UID) int { return bytes.Compare(x, y) })
	return found == (a.op == scanplan.In)
}
