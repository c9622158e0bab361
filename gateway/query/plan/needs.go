package plan

import (
	"downpour/encoding"
	"downpour/gateway/query"
)

// Needs are the names that a sub-query's plan depends on. That one of them is
// unknown is for Compile to judge.
type Needs struct {
	Metric string   // "" when the sub-query lists TSUIDs
	TagKs  []string // in the order of the filters, each once
	TagVs  []string
	// Prefixes ask for the tag values that begin with them ("" for all), at
	// most Limit names each.
	Prefixes []string
	Limit    int
}

// Names are the answers to Needs.
type Names struct {
	Metric       encoding.UID            // nil if unknown
	TagKs, TagVs map[string]encoding.UID // without the unknown ones
	Lists        map[string]List         // by prefix; a missing one is incomplete
}

// List holds the tag values that begin with a prefix.
type List struct {
	Values []encoding.UIDMapping
	// Complete tells that there are no others.
	Complete bool
}

// NeedsOf tells which names the plan of a sub-query depends on.
func NeedsOf(sub *query.SubQuery, opt Options) Needs {
	n := Needs{Metric: sub.Metric, Limit: opt.limit()}
	byTSUID := len(sub.TSUIDs) > 0
	if byTSUID {
		n.Metric = ""
	}
	tagks, tagvs, prefixes := names{}, names{"": true}, names{}
	for i := range sub.Filters {
		f := &sub.Filters[i]
		n.TagKs = tagks.add(n.TagKs, f.TagK)
		switch {
		case byTSUID: // its filters look at names
		case f.Exact():
			if len(f.Literals()) <= opt.limit() {
				n.TagVs = tagvs.add(n.TagVs, f.Literals()...)
			}
		case !f.MatchesAll():
			n.Prefixes = prefixes.add(n.Prefixes, f.Prefix())
		}
	}
	return n
}

// names are the names that a list has, or is not to have.
type names map[string]bool

// add appends the names that are not there yet.
func (n names) add(list []string, more ...string) []string {
	for _, name := range more {
		if !n[name] {
			n[name] = true
			list = append(list, name)
		}
	}
	return list
}
