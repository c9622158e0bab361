package plan

import (
	"downpour/encoding"
	"downpour/gateway/query"
)

// Needs are the names that a sub-query's plan depends on. Whether an unknown one is an
// error is for Compile to decide.
type Needs struct {
	Metric string   // "" when the sub-query lists TSUIDs
	TagKs  []string // in the order of the filters, each once
	TagVs  []string
	// Prefixes ask for lists of the tag values that begin with them ("" for all), of at
	// most Limit names each.
	Prefixes []string
	Limit    int
}

// Names are what was found of Needs.
type Names struct {
	Metric       encoding.UID            // nil if unknown
	TagKs, TagVs map[string]encoding.UID // without the unknown ones
	Lists        map[string]List         // by prefix; a list that is not there counts as incomplete
}

// List holds the tag values that begin with a prefix.
type List struct {
	Values []encoding.UIDMapping
	// Complete reports that no other tag value begins with the prefix.
	Complete bool
}

// NeedsOf returns the names that the plan of a sub-query depends on.
func NeedsOf(sub *query.SubQuery, opt Options) Needs {
	n := Needs{Metric: sub.Metric, Limit: opt.expansionLimit()}
	byTSUID := len(sub.TSUIDs) > 0
	if byTSUID {
		n.Metric = ""
	}

	// An empty literal is refused by Compile, and never looked up.
	tagks, tagvs, prefixes := nameSet{}, nameSet{"": true}, nameSet{}
	for i := range sub.Filters {
		f := &sub.Filters[i]
		n.TagKs = tagks.add(n.TagKs, f.TagK)
		switch {
		case byTSUID: // filters next to TSUIDs are applied to names
		case f.Exact():
			if len(f.Literals()) <= opt.expansionLimit() { // else it is applied to names
				n.TagVs = tagvs.add(n.TagVs, f.Literals()...)
			}
		case !f.MatchesAll():
			n.Prefixes = prefixes.add(n.Prefixes, f.Prefix())
		}
	}
	return n
}

// nameSet holds the names that a list has already, or must not get.
type nameSet map[string]bool

// add appends the names to list that are not in the set yet.
func (s nameSet) add(list []string, more ...string) []string {
	for _, name := range more {
		if !s[name] {
			s[name] = true
			list = append(list, name)
		}
	}
	return list
}
