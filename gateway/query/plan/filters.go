package plan

import (
	"bytes"
	"slices"

	"downpour/encoding"
	"downpour/gateway/query"
)

// filterState is a filter as the reference holds it after names are resolved.
type filterState struct {
	filter   *query.Filter
	tagk     encoding.UID
	literals []encoding.UID // resolved values of literal_or, ascending
	// postScan tells that names are checked against the filter.
	postScan bool
}

// resolveFilters resolves filters in the order of the request. An empty literal
// is found before anything is looked up, so it comes first.
// Source: TagVFilter.resolveTags, TagVLiteralOrFilter.resolveTagkName.
func (c *compiler) resolveFilters() ([]filterState, error) {
	for i := range c.sub.Filters {
		if f := &c.sub.Filters[i]; c.resolvesLiterals(f) && slices.Contains(f.Literals(), "") {
			return nil, query.RunFault("Missing UID name")
		}
	}
	states := make([]filterState, len(c.sub.Filters))
	for i := range states {
		f := &c.sub.Filters[i]
		s := filterState{filter: f, postScan: !f.MatchesAll()}
		if c.resolvesLiterals(f) {
			for _, name := range f.Literals() {
				u, known := c.names.TagVs[name]
				if !known && !c.opt.SkipUnresolved {
					return nil, query.UnknownName(encoding.UIDTagV, name)
				}
				if known {
					s.literals = append(s.literals, u)
				}
			}
			s.literals = sortUIDs(s.literals)
		}
		if s.tagk = c.names.TagKs[f.TagK]; s.tagk == nil {
			return nil, query.UnknownName(encoding.UIDTagK, f.TagK)
		}
		states[i] = s
	}
	return states, nil
}

// resolvesLiterals tells whether the reference looks a filter's values up.
func (c *compiler) resolvesLiterals(f *query.Filter) bool {
	return f.Type == query.LiteralOr && len(f.Literals()) <= c.opt.limit()
}

// keyFilters are the filters of one tag key, as they take effect.
type keyFilters struct {
	tagk    encoding.UID
	groupBy bool
	// values are what row keys may have; nil is any value.
	values []encoding.UID
	// names are the filters that names are still checked against.
	names []filterState
}

// arrange decides, key by key in ascending order, which filters take effect. It
// keeps the reference's ways with several filters on one key: of the first key
// literals are united; of later keys each filter is looked at alone and the last
// one says what row keys may have, while an earlier literal filter, thought to
// be in the row-key pattern, is no longer checked. Source: TsdbQuery.findGroupBys.
func arrange(states []filterState, limit int) []keyFilters {
	states = slices.Clone(states)
	slices.SortStableFunc(states, func(a, b filterState) int { return bytes.Compare(a.tagk, b.tagk) })
	var keys []keyFilters
	total := 0 // values in the reference's pattern, overwritten ones included
	for len(states) > 0 {
		n := 1
		if len(keys) == 0 {
			for n < len(states) && bytes.Equal(states[n].tagk, states[0].tagk) {
				n++
			}
		}
		run := states[:n]
		states = states[n:]
		if len(keys) == 0 || !bytes.Equal(keys[len(keys)-1].tagk, run[0].tagk) {
			keys = append(keys, keyFilters{tagk: run[0].tagk})
		}
		total = keys[len(keys)-1].takeRun(run, total, limit)
	}
	return keys
}

// intersect lets all filters of each key take effect (query.FixFilters).
func intersect(states []filterState) (keys []keyFilters) {
	states = slices.Clone(states)
	slices.SortStableFunc(states, func(a, b filterState) int { return bytes.Compare(a.tagk, b.tagk) })
	for _, s := range states {
		if len(keys) == 0 || !bytes.Equal(keys[len(keys)-1].tagk, s.tagk) {
			keys = append(keys, keyFilters{tagk: s.tagk})
		}
		k := &keys[len(keys)-1]
		k.groupBy = k.groupBy || s.filter.GroupBy
		if s.postScan {
			k.names = append(k.names, s)
		}
	}
	return keys
}

// takeRun lets filters that are looked at together take effect.
func (k *keyFilters) takeRun(run []filterState, total, limit int) int {
	var union []encoding.UID
	for _, s := range run {
		k.groupBy = k.groupBy || s.filter.GroupBy
		union = append(union, s.literals...)
	}
	union = sortUIDs(union)
	inPattern := len(union) > 0 && total+len(union) <= limit
	switch {
	case inPattern:
		k.values = union
		total += len(union)
	case len(union) == 0:
		k.values = nil
	}
	for _, s := range run {
		if s.postScan && !(inPattern && len(s.literals) > 0) {
			k.names = append(k.names, s)
		}
	}
	return total
}
